package agent

import (
	"fmt"

	"catenary/commands"
	"catenary/events"
)

// Learn takes in what the desk says, and tells which modules have another instruction now. What is not later than what is known is
// refused: an answer that was on its way for long changes nothing.
func (s *State) Learn(a Answer) (changed []string) {
	if a.Node != s.Node || a.Unchanged {
		return nil
	}
	s.Held = a.held()
	if s.Held != "" {
		return nil
	}
	if s.Modules == nil {
		s.Modules = map[string]Module{}
	}
	for _, told := range a.Told {
		if s.learn(told) {
			changed = append(changed, told.Module)
		}
	}
	if a.Next == "" {
		s.Edition = a.Edition
	}
	return changed
}

// held says why nothing may be done on the node.
func (a Answer) held() string {
	switch {
	case !a.Known:
		return fmt.Sprintf("the chain does not know the node %s", a.Node)
	case a.ManagedBy == events.ManagedByExternal:
		return fmt.Sprintf("somebody else manages the node %s", a.Node)
	}
	return ""
}

func (s *State) learn(told Instruction) bool {
	m, known := s.Modules[told.Module]
	switch before := m.Told; {
	case known && told.Source < before.Source:
		s.Stale++
		s.LastStale = &StaleTold{Module: told.Module, Source: told.Source, Known: before.Source}
		return false
	case known && told.Source == before.Source:
		// Only what is said of the module may have changed.
		m.Told.Requires, m.Told.Delivery = told.Requires, told.Delivery
		if m.Applied != nil {
			m.Applied.Instruction.Delivery = told.Delivery
		}
		s.Modules[told.Module] = m
		return false
	}
	done := known && !m.open() && m.Failure == ""
	before := m.Told
	m.Told, m.Attempts, m.Failure = told, 0, ""
	switch {
	case done && m.Applied != nil && sameWork(before, told):
		s.adopt(&m)
	case !told.Stands && !told.Ended && !m.Touched:
		m.Settled = told.Source // what waits is nothing to act on
	}
	s.Modules[told.Module] = m
	return true
}

// adopt takes over an instruction that is brought about already. What was reported of the one before says nothing of it, so it is
// reported again.
func (s *State) adopt(m *Module) {
	m.Settled = m.Told.Source
	applied := *m.Applied
	applied.Instruction = m.Told
	m.Applied = &applied
	s.say(*m, commands.OutcomeApplied, "")
	if m.Health != "" {
		s.say(*m, string(m.Health), "")
	}
}
