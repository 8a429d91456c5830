package agent

import (
	"slices"

	"catenary/agent/driver"
)

// Action is what an agent does next.
type Action struct {
	Doing
	// Settle says that it was begun before the agent was started: what came of it is to be found out first.
	Settle bool
	// By names the driver that takes the module away; empty when that is not known.
	By string
}

// Waiting is a module that something keeps from being acted on.
type Waiting struct {
	Module string `json:"module"`
	// For is the module that it waits for; empty for one that is tried again later.
	For    string `json:"for,omitempty"`
	Reason string `json:"reason,omitempty"`
}

// Next gives what is to be done, none when there is nothing. rests says of a module whose last try failed that it is too early for
// another. What ends goes first, each before what it requires; then what is to run, each after what it requires.
func (s *State) Next(rests func(module string) bool) (Action, bool) {
	switch {
	case s.Held != "":
		return Action{}, false
	case s.Doing != nil:
		return Action{Doing: *s.Doing, Settle: true, By: s.by(s.Doing.Instruction.Module)}, true
	}
	for _, name := range s.names() {
		if m := s.Modules[name]; s.leaves(m) && !rests(name) && s.heldBack(m) == "" {
			return Action{Doing: Doing{Deed: Remove, Instruction: m.Told, Attempt: m.Attempts + 1}, By: s.by(name)}, true
		}
	}
	for _, name := range s.names() {
		if m := s.Modules[name]; m.open() && m.Told.Stands && !rests(name) && s.heldBack(m) == "" {
			return Action{Doing: Doing{Deed: Apply, Instruction: m.Told, Attempt: m.Attempts + 1}}, true
		}
	}
	return Action{}, false
}

// Waits lists the modules that Next does not give yet, with what they wait for.
func (s *State) Waits(rests func(module string) bool) []Waiting {
	var found []Waiting
	for _, name := range s.names() {
		m := s.Modules[name]
		if !m.open() || s.Doing != nil && s.Doing.Instruction.Module == name {
			continue
		}
		if before := s.heldBack(m); before != "" {
			found = append(found, Waiting{Module: name, For: before, Reason: s.Modules[before].Failure})
		} else if rests(name) {
			found = append(found, Waiting{Module: name, Reason: m.Failure})
		}
	}
	return found
}

func (s *State) by(module string) string {
	if a := s.Modules[module].Applied; a != nil {
		return a.Driver.Name
	}
	return ""
}

// leaves says whether a module is to be taken away.
func (s *State) leaves(m Module) bool { return m.open() && !m.Told.Stands }

// heldBack names the module that must be dealt with before this one; empty when there is none. Modules that require each other wait for
// none of them: somebody must begin.
func (s *State) heldBack(m Module) string {
	name := m.Told.Module
	if m.Told.Stands {
		for _, required := range m.Told.Requires {
			other, here := s.Modules[required]
			if here && other.Told.Stands && (other.open() || other.Failure != "") && !s.reaches(required, name) {
				return required
			}
		}
		return ""
	}
	for _, other := range s.names() {
		o := s.Modules[other]
		switch {
		case other == name:
		case s.leaves(o) && slices.Contains(o.Told.Requires, name) && !s.reaches(name, other):
			return other
		// What was pulled in stays until those that it was pulled in for have become what they shall be.
		case o.open() && o.Told.Stands && o.Failure == "" && slices.Contains(m.Told.RequiredBy, other):
			return other
		}
	}
	return ""
}

// reaches says whether a module requires another one, over any number of others.
func (s *State) reaches(from, to string) bool {
	seen := map[string]bool{}
	ahead := []string{from}
	for len(ahead) > 0 {
		name := ahead[0]
		ahead = ahead[1:]
		if name == to {
			return true
		}
		if seen[name] {
			continue
		}
		seen[name] = true
		ahead = append(ahead, s.Modules[name].Told.Requires...)
	}
	return false
}

// Begin notes that a deed begins. The state MUST be on disk before it does.
func (s *State) Begin(a Action) {
	m := s.Modules[a.Instruction.Module]
	m.Attempts, m.Touched = a.Attempt, true
	s.Modules[a.Instruction.Module] = m
	doing := a.Doing
	s.Doing = &doing
}

// Settle takes what a driver has found of a deed that was begun and maybe done. It says whether that is its outcome; else the deed is
// to be done again, should it still be called for.
func (s *State) Settle(found driver.Finding, by Done) bool {
	doing := s.Doing
	switch {
	case doing == nil:
		return false
	case doing.Deed == Apply && found.State == driver.AsTold, doing.Deed == Remove && found.State == driver.Absent:
		s.End(by)
		return true
	}
	s.Doing = nil
	return false
}
