package hammer

import (
	"context"
	"iter"
	"sync"

	"github.com/cockroachdb/errors"

	"catenary/commands"
	"catenary/es"
	"catenary/events"
)

// Nodes stands for nodes that do at once what they are told, and report it.
type Nodes struct {
	// Follow gives all events after a sequence, as they come.
	Follow   func(ctx context.Context, after uint64) iter.Seq2[es.Message, error]
	Registry *es.Registry
	// Sender takes their reports.
	Sender Sender
	// Outcome says how a node fares with what it is told: one of the outcomes of commands, or empty for a node that says nothing. Nil
	// means that all is applied, or removed.
	Outcome func(t events.Told, ended bool) string
}

// Run reports until the context ends. It gives the first error of a report that was not taken.
func (n Nodes) Run(ctx context.Context) error {
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	var open sync.WaitGroup
	for m, err := range n.Follow(ctx, 0) {
		if err != nil {
			break
		}
		told, ended, err := n.told(m)
		if err != nil {
			fail(err)
			break
		}
		if told.Rollout == "" {
			continue
		}
		report, ok := n.report(told, ended, m.Sequence)
		if !ok {
			continue
		}
		open.Add(1)
		n.Sender.Send(report, func(a es.Answer, err error) {
			defer open.Done()
			if err == nil && a.Status != es.StatusAccepted && a.Status != es.StatusUnchanged {
				err = errors.Newf("report of %s about %s: %s %+v", told.Node, told.Module, a.Status, a.Error)
			}
			if err != nil {
				fail(err)
			}
		})
	}
	open.Wait()
	if err := context.Cause(ctx); !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// told gives what an event tells a node; nothing for any other.
func (n Nodes) told(m es.Message) (t events.Told, ended bool, err error) {
	if kind := m.Header[es.HeaderType]; len(kind) != 1 || kind[0] != events.TypeAssignmentAssigned && kind[0] != events.TypeAssignmentEnded {
		return events.Told{}, false, nil
	}
	e, err := n.Registry.Decode(m)
	switch f := e.Data.(type) {
	case events.AssignmentAssigned:
		return f.Told, false, err
	case events.AssignmentEnded:
		return events.Told{Node: f.Node, Module: f.Module, Rollout: f.Rollout}, true, err
	}
	return events.Told{}, false, err
}

func (n Nodes) report(t events.Told, ended bool, sequence uint64) (es.Payload, bool) {
	outcome := commands.OutcomeApplied
	if ended {
		outcome = commands.OutcomeRemoved
	}
	if n.Outcome != nil {
		outcome = n.Outcome(t, ended)
	}
	return commands.Observe{
		Seen:    events.Seen{Node: t.Node, Module: t.Module, Reference: t.Reference, Build: t.Build, Rollout: t.Rollout, Source: sequence},
		Outcome: outcome,
	}, outcome != ""
}
