package freeze

import (
	"time"

	"catenary/aggregates/content"
	"catenary/events"
)

// Status is how a freeze stands.
type Status uint8

// The statuses of a freeze.
const (
	Unknown Status = iota
	Declared
	Lifted
)

// State is what rules need of a freeze.
type State struct {
	Status   Status
	Selector events.Selector
	Window   *events.Window
	// Content stands for all that was declared.
	Content content.Digest
}

// Place is what a freeze may select: a module on a node, with the labels of both.
type Place struct {
	Node, Module string
	Labels       []map[string]string
}

// Holds says whether the freeze selects the place and holds at the moment. It gives an error for a time zone that is not
// known.
func (s State) Holds(p Place, at time.Time, zones events.Zones) (bool, error) {
	if s.Status != Declared || !s.Selector.Picks(events.StepName{Node: p.Node, Module: p.Module}, p.Labels...) {
		return false, nil
	}
	if s.Window == nil {
		return true, nil
	}
	schedule, err := s.Window.Schedule(zones)
	return err == nil && schedule.Holds(at), err
}

// Opens gives the first moment from then on at which the freeze does not hold, if there is one before it is lifted. It gives an
// error for a time zone that is not known.
func (s State) Opens(at time.Time, zones events.Zones) (time.Time, bool, error) {
	if s.Window == nil {
		return time.Time{}, false, nil
	}
	schedule, err := s.Window.Schedule(zones)
	if err != nil {
		return time.Time{}, false, err
	}
	opens, ok := schedule.Opens(at)
	return opens, ok, nil
}

// Evolve gives the state after a fact.
func Evolve(s State, fact events.Freeze) State {
	switch e := fact.(type) {
	case events.FreezeDeclared:
		return State{Status: Declared, Selector: e.Selector, Window: e.Window, Content: content.Of(e)}
	case events.FreezeLifted:
		return State{Status: Lifted}
	}
	return s
}
