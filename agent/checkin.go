package agent

import (
	"time"
)

// CheckIn is what an agent says to the desk every few seconds: that it is there, how far it knows the chain, and how it stands. It
// leaves no event.
type CheckIn struct {
	Node string `json:"node"`
	// Run names this run of the agent: two agents of one node are told apart by it.
	Run     string `json:"run"`
	Version string `json:"version,omitempty"`
	// Every is how long it is until the next one.
	Every time.Duration `json:"every"`
	// Known is the edition that the agent has; empty asks for everything.
	Known string `json:"known,omitempty"`
	// After is the source of a value that the agent has heard of: the answer waits, for a little, until the desk has it too.
	After uint64 `json:"after,omitempty"`
	// Cursor asks for the rest of an answer.
	Cursor string `json:"cursor,omitempty"`
	Status Status `json:"status"`
}

// Status is how an agent stands.
type Status struct {
	// Edition is what it knows of the chain, and Converged says that all of that is so.
	Edition   string `json:"edition,omitempty"`
	Converged bool   `json:"converged"`
	Held      string `json:"held,omitempty"`
	// Doing is what it is at.
	Doing *DoingNow `json:"doing,omitempty"`
	// Failed, Waiting, Drifted and Unhealthy name modules, at most MaxNamed each.
	Failed    []Failed  `json:"failed,omitempty"`
	Waiting   []Waiting `json:"waiting,omitempty"`
	Drifted   []string  `json:"drifted,omitempty"`
	Unhealthy []string  `json:"unhealthy,omitempty"`
	// Unsent counts the reports that the bus does not have yet.
	Unsent int `json:"unsent,omitempty"`
	// Stale counts instructions that were refused as older than what is known; LastStale is the last of them.
	Stale     uint64     `json:"stale,omitempty"`
	LastStale *StaleTold `json:"last-stale,omitempty"`
	// Drivers are those it has.
	Drivers []string `json:"drivers,omitempty"`
}

// MaxNamed bounds each list of a status, and MaxReasonBytes each reason in it: a check-in is small, however much is wrong.
const (
	MaxNamed       = 20
	MaxReasonBytes = 512
)

// DoingNow is what an agent is at.
type DoingNow struct {
	Deed    Deed   `json:"deed"`
	Module  string `json:"module"`
	Source  uint64 `json:"source"`
	Rollout string `json:"rollout,omitempty"`
	Attempt int    `json:"attempt"`
}

// Failed is a module whose instruction could not be brought about.
type Failed struct {
	Module string `json:"module"`
	Source uint64 `json:"source"`
	Reason string `json:"reason"`
}

// Answer is what the desk says.
type Answer struct {
	Node string `json:"node"`
	// Known says that the chain knows the node, and ManagedBy who acts on it.
	Known     bool   `json:"known"`
	ManagedBy string `json:"managed-by,omitempty"`
	// Edition stands for all that is said of the node and its modules: another one means that something has changed.
	Edition string `json:"edition,omitempty"`
	// Unchanged says that the agent knows all of it.
	Unchanged bool `json:"unchanged,omitempty"`
	// Told is what the node is told, or the part of it up to Next, which gets the rest.
	Told []Instruction `json:"told,omitempty"`
	Next string        `json:"next,omitempty"`
}

// status says how the state stands.
func (s *State) status(rests func(module string) bool, unsent int, drivers []string) Status {
	st := Status{
		Edition: s.Edition, Converged: s.Converged() && unsent == 0, Held: s.Held, Unsent: unsent + len(s.Reports), Stale: s.Stale, LastStale: s.LastStale, Drivers: drivers,
	}
	if d := s.Doing; d != nil {
		i := d.Instruction
		st.Doing = &DoingNow{Deed: d.Deed, Module: i.Module, Source: i.Source, Rollout: i.Rollout, Attempt: d.Attempt}
	}
	for _, name := range s.names() {
		m := s.Modules[name]
		if m.Failure != "" && len(st.Failed) < MaxNamed {
			st.Failed = append(st.Failed, Failed{Module: name, Source: m.Told.Source, Reason: cut(m.Failure, MaxReasonBytes)})
		}
		if m.Drift != "" && len(st.Drifted) < MaxNamed {
			st.Drifted = append(st.Drifted, name)
		}
		if m.Health == Unhealthy && len(st.Unhealthy) < MaxNamed {
			st.Unhealthy = append(st.Unhealthy, name)
		}
	}
	st.Waiting = s.Waits(rests)
	st.Waiting = st.Waiting[:min(len(st.Waiting), MaxNamed)]
	for i := range st.Waiting {
		st.Waiting[i].Reason = cut(st.Waiting[i].Reason, MaxReasonBytes)
	}
	return st
}
