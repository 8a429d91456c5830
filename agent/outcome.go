package agent

import (
	"catenary/agent/driver"
	"catenary/commands"
	"catenary/events"
)

// Done is what came of a deed.
type Done struct {
	// Driver is what has done it, or was tried last; nil when none was.
	Driver  *events.Driver
	Outputs map[string]string
	// Failure says why it failed, with the last lines of output; empty when it did not.
	Failure string
}

// End takes what came of the deed that was begun.
func (s *State) End(done Done) {
	doing := s.Doing
	if doing == nil {
		return
	}
	s.Doing = nil
	name := doing.Instruction.Module
	m := s.Modules[name]
	// What was told meanwhile is still open.
	latest := m.Told.Source == doing.Instruction.Source
	about := m
	about.Told = doing.Instruction
	switch {
	case done.Failure != "":
		s.failed(*doing, &m, about, done, latest)
		s.Modules[name] = m
		return
	case doing.Deed == Apply:
		m.Applied = &Applied{Instruction: doing.Instruction, Outputs: done.Outputs}
		if done.Driver != nil {
			m.Applied.Driver = *done.Driver
		}
		m.Health, m.Drift = "", ""
		about.Applied = m.Applied
		s.say(about, commands.OutcomeApplied, "")
	case doing.Deed == Remove:
		about.Applied = nil
		if done.Driver != nil {
			about.Applied = &Applied{Driver: *done.Driver}
		}
		s.say(about, commands.OutcomeRemoved, "")
		m.Touched, m.Applied, m.Health, m.Drift = false, nil, "", ""
	}
	if latest {
		m.Settled, m.Failure = doing.Instruction.Source, ""
	}
	s.Modules[name] = m
}

// failed takes a failure. What a rollout told is not tried again here: the rollout says how often.
func (s *State) failed(doing Doing, m *Module, about Module, done Done, latest bool) {
	outcome := commands.OutcomeApplyFailed
	if doing.Deed == Remove {
		outcome = commands.OutcomeRemoveFailed
	}
	about.Applied = nil
	if done.Driver != nil {
		about.Applied = &Applied{Driver: *done.Driver}
	}
	s.say(about, outcome, done.Failure)
	if !latest {
		return
	}
	m.Failure = done.Failure
	if doing.Instruction.Rollout != "" {
		m.Settled = doing.Instruction.Source
	}
}

// Observe takes what a driver has found of what is applied. Something is said once of each thing that is found, not each time.
func (s *State) Observe(module string, source uint64, found driver.Finding) (said bool) {
	m, ok := s.Modules[module]
	if !ok || m.Applied == nil || m.Applied.Instruction.Source != source || s.busyWith(module) {
		return false
	}
	drift := ""
	switch found.State {
	case driver.Unknown:
		return false
	case driver.AsTold:
	case driver.Absent:
		drift = "nothing of it is there"
	case driver.Other:
		drift = found.Found
	}
	if drift == m.Drift {
		return false
	}
	m.Drift = drift
	about := m
	about.Told = m.Applied.Instruction
	if drift == "" {
		s.say(about, commands.OutcomeApplied, "it is again as it was told")
		if m.Health != "" {
			// Of a node's reports the newest counts: that it runs does not say that it is well.
			s.say(about, string(m.Health), "")
		}
	} else {
		s.say(about, commands.OutcomeDrifted, "")
	}
	s.Modules[module] = m
	return true
}

// Judge takes a verdict on what is applied.
func (s *State) Judge(module string, source uint64, v Verdict, reason string) (said bool) {
	m, ok := s.Modules[module]
	if !ok || m.Applied == nil || m.Applied.Instruction.Source != source || s.busyWith(module) || v == m.Health {
		return false
	}
	m.Health = v
	about := m
	about.Told = m.Applied.Instruction
	s.say(about, string(v), reason)
	s.Modules[module] = m
	return true
}

func (s *State) busyWith(module string) bool {
	return s.Doing != nil && s.Doing.Instruction.Module == module
}
