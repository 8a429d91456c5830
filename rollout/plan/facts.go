package plan

import (
	"time"

	"github.com/cockroachdb/errors"

	"catenary/chain"
	"catenary/events"
)

// Facts is what a plan is made on.
type Facts struct {
	Nodes   map[string]chain.Node
	Modules map[string]chain.Module
	// Told is what stands.
	Told map[events.StepName]events.Version
	// Published holds the publications that are recorded, by [events.Reference.String].
	Published map[string]chain.Published
	Freezes   []chain.Freeze
	// Commits are those of the repositories that are carried.
	Commits []chain.Commit
	// Tried counts the failed tries of earlier plans for the same change.
	Tried map[Change]int
}

// Change is what a step leads to.
type Change struct {
	events.StepName
	// To is what shall run, in the form of [events.Version.String]; empty for nothing.
	To string
}

// at gives what stands somewhere; nil when nothing does.
func (f Facts) at(n events.StepName) *events.Version {
	if v, ok := f.Told[n]; ok {
		return &v
	}
	return nil
}

// frost is a freeze that holds at the moment of a plan.
type frost struct {
	name     string
	selector events.Selector
	// until is zero when that is not known.
	until time.Time
}

// frosts gives the freezes that hold. It gives an error for a window that can't be read.
func (f Facts) frosts(now time.Time) ([]frost, error) {
	var list []frost
	for _, z := range f.Freezes {
		if !z.Stands() {
			continue
		}
		w := frost{name: z.Name, selector: z.Selector}
		if z.Window != nil {
			schedule, err := z.Window.Schedule(time.LoadLocation)
			if err != nil {
				return nil, errors.Wrapf(err, "freeze %s", z.Name)
			}
			if !schedule.Holds(now) {
				continue
			}
			w.until, _ = schedule.Opens(now)
		}
		list = append(list, w)
	}
	return list, nil
}
