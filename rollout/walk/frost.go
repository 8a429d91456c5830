package walk

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"catenary/events"
)

// freeze is one that was declared.
type freeze struct {
	name     string
	selector events.Selector
	window   *events.Window
	declared bool
	// schedule is the window as it was read, err why it can't be.
	schedule events.Schedule
	err      error
}

func (s *State) foldFreeze(key string, fact events.Freeze) {
	z := at(s.freezes, key)
	switch e := fact.(type) {
	case events.FreezeDeclared:
		*z = freeze{name: e.Name, selector: e.Selector, window: e.Window, declared: true}
		if e.Window != nil {
			z.schedule, z.err = e.Window.Schedule(s.zones)
		}
	case events.FreezeLifted:
		*z = freeze{}
	}
}

// frost is a freeze that holds at a moment.
type frost struct {
	*freeze
	// until is when it opens; zero when that is not known.
	until time.Time
}

// frosts gives the freezes that hold at a moment, by name.
func (s *State) frosts(now time.Time) []frost {
	var list []frost
	for _, key := range slices.Sorted(maps.Keys(s.freezes)) {
		z := s.freezes[key]
		switch {
		case !z.declared:
		case z.window == nil, z.err != nil: // whether it holds can't be told: the writer does not begin either
			list = append(list, frost{freeze: z})
		case z.schedule.Holds(now):
			f := frost{freeze: z}
			f.until, _ = z.schedule.Opens(now)
			list = append(list, f)
		}
	}
	return list
}

// picks says whether the freeze is about a step.
func (f frost) picks(st *step) bool {
	return f.err != nil || f.selector.Picks(st.name, st.node.labels, st.module.labels)
}

// words says what the freeze waits for.
func (f frost) words() string {
	switch {
	case f.err != nil:
		return fmt.Sprintf("freeze %s to be lifted: %v", f.name, f.err)
	case f.until.IsZero():
		return fmt.Sprintf("freeze %s to be lifted", f.name)
	case f.window.Recurring != nil:
		return fmt.Sprintf("freeze %s to open, by the clock of %s", f.name, f.window.Recurring.Zone)
	}
	return fmt.Sprintf("freeze %s to open", f.name)
}
