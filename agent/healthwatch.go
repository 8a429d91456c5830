package agent

import (
	"context"
	"reflect"

	"catenary/events"
)

// healthWatch is the checking of one module on its way.
type healthWatch struct {
	source uint64
	check  events.Check
	cancel context.CancelFunc
}

// watchChecks lets what is applied be checked, and nothing else.
func (a *Agent) watchChecks(ctx context.Context) {
	for name, w := range a.checks {
		applied := a.state.Modules[name].Applied
		if applied == nil || a.state.Held != "" || applied.Instruction.Source != w.source || !reflect.DeepEqual(checkOf(*applied), &w.check) {
			w.cancel()
			delete(a.checks, name)
		}
	}
	if a.state.Held != "" {
		return
	}
	for _, name := range a.state.names() {
		applied := a.state.Modules[name].Applied
		if applied == nil || checkOf(*applied) == nil || a.checks[name] != nil {
			continue
		}
		checking, cancel := context.WithCancel(ctx)
		watched := *applied
		a.checks[name] = &healthWatch{source: watched.Instruction.Source, check: *checkOf(watched), cancel: cancel}
		a.tasks.Go(func() {
			watchHealth(checking, a.cfg.Node, a.delivery.dir(watched), watched, func(j judged) {
				select {
				case a.verdicts <- j:
				case <-checking.Done():
				}
			})
		})
	}
}

func checkOf(applied Applied) *events.Check {
	if d := applied.Instruction.Delivery; d != nil {
		return d.Check
	}
	return nil
}

func (a *Agent) endChecks() {
	for _, w := range a.checks {
		w.cancel()
	}
}
