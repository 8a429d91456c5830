package walk

import (
	"fmt"
	"slices"
	"time"

	"catenary/commands"
	"catenary/events"
)

// Blocked says of a step, of a tier or of a rollout as a whole why it does not move.
type Blocked struct {
	Rollout string `json:"rollout"`
	Tier    string `json:"tier,omitempty"`
	// Node and Module are empty for a rollout or a tier as a whole.
	Node   string `json:"node,omitempty"`
	Module string `json:"module,omitempty"`
	// Reason is one of the Hold constants of events and of this package, or the code with which the writer refused. It is stable.
	Reason string `json:"reason"`
	// WaitsFor says in words what has to happen, Until when that is, if it is known.
	WaitsFor string    `json:"waits-for,omitempty"`
	Until    time.Time `json:"until,omitzero"`
}

// Blocked lists what of a rollout does not move at a moment, and why: the rollout or its tier as a whole first, then each step without an
// outcome, in the order of the plan. It gives none for a rollout that is not walked.
func (s *State) Blocked(id string, now time.Time) []Blocked {
	r, ok := s.rollouts[id]
	if !ok {
		return nil
	}
	l := look{State: s, now: now}
	return l.blocked(r)
}

// Waits is a reason for which something of a rollout does not move: how often it holds, and the first that it holds for.
type Waits struct {
	Blocked
	Count int `json:"count"`
}

// Waits lists the reasons for which a rollout does not move, in the order in which [State.Blocked] gives them first.
func (s *State) Waits(id string, now time.Time) []Waits {
	var list []Waits
	for _, b := range s.Blocked(id, now) {
		at := slices.IndexFunc(list, func(w Waits) bool { return w.Reason == b.Reason })
		if at < 0 {
			at = len(list)
			list = append(list, Waits{Blocked: b})
		}
		list[at].Count++
	}
	return list
}

// BlockedCount counts what does not move at a moment, of all rollouts that are walked, by the reason.
func (s *State) BlockedCount(now time.Time) map[string]int {
	l := look{State: s, now: now}
	count := map[string]int{}
	for _, r := range s.order {
		l.eachBlocked(r, func(v verdict, _ *tier, _ events.StepName) { count[v.reason]++ })
	}
	return count
}

func (l *look) blocked(r *rollout) []Blocked {
	var list []Blocked
	l.eachBlocked(r, func(v verdict, t *tier, n events.StepName) {
		b := Blocked{Rollout: r.id, Node: n.Node, Module: n.Module, Reason: v.reason, Until: v.until}
		if t != nil {
			b.Tier = t.Name
		}
		if v.words != nil {
			b.WaitsFor = v.words()
		}
		list = append(list, b)
	})
	return list
}

// eachBlocked gives what of a rollout does not move. It makes no words.
func (l *look) eachBlocked(r *rollout, add func(verdict, *tier, events.StepName)) {
	switch r.status {
	case planning:
		add(verdict{reason: "planning", words: func() string { return "the rest of its plan" }}, nil, events.StepName{})
		return
	case planned:
		add(verdict{reason: "planned", words: func() string { return "somebody to start it" }}, nil, events.StepName{})
	case waitingApproval:
		add(verdict{reason: events.HoldApproval, words: func() string { return "somebody to approve it" }}, nil, events.StepName{})
	case paused:
		add(verdict{reason: events.HoldPaused, words: func() string { return "somebody to resume it" }}, nil, events.StepName{})
	case running:
		if r.entered > 0 {
			if v := l.through(r); v.reason != "" {
				add(v, r.tiers[r.entered-1], events.StepName{})
			}
		}
		if r.hindrance.holds(l.now) {
			add(verdict{reason: r.code, words: func() string { return r.message }}, nil, events.StepName{})
		}
	case final:
	}
	for _, st := range r.inOrder {
		if st.phase.ended() || r.status == final && st.phase != pending {
			continue
		}
		if v := l.why(r, st); v.reason != "" {
			add(v, st.tier, st.name)
		}
	}
}

// why says why a step without an outcome does not move.
func (l *look) why(r *rollout, st *step) verdict {
	switch {
	case st.phase == pending:
		v := verdict{reason: events.HoldPending, words: func() string {
			words := "a report of the node that names rollout " + r.id
			if st.hindrance.holds(l.now) {
				words += "; the writer has said: " + st.message
			}
			return words
		}}
		if r.status != paused {
			v.until = r.deadline(st, l.now)
		}
		return v
	case st.tier.place >= r.entered:
		return verdict{reason: events.HoldTier, words: func() string { return fmt.Sprintf("tier %s to be entered", st.tier.Name) }}
	case st.left > 0:
		return verdict{reason: events.HoldDependency, words: func() string {
			at := slices.IndexFunc(st.waitsFor, func(w *step) bool { return w.phase != done })
			return fmt.Sprintf("%s, which is %s", st.waitsFor[at].name, st.waitsFor[at].phase)
		}}
	case r.status == paused:
		return verdict{reason: events.HoldPaused, words: func() string { return "somebody to resume the rollout" }}
	case st.asked.number == 0:
		if v := l.consider(st); v.reason != "" {
			return v
		}
	}
	return verdict{reason: events.StepWaiting, words: func() string { return "its turn" }}
}

// summed gives what is recorded of reasons: one entry for each reason in each tier, with the first steps and the number of all.
func summed(list []Blocked) []events.Hold {
	var holds []events.Hold
	for _, b := range list {
		at := slices.IndexFunc(holds, func(h events.Hold) bool {
			return h.Reason == b.Reason && h.Tier == b.Tier && (len(h.Steps) == 0) == (b.Node == "")
		})
		if at < 0 {
			if len(holds) == commands.MaxHolds {
				continue
			}
			at = len(holds)
			holds = append(holds, events.Hold{Reason: b.Reason, Tier: b.Tier, WaitsFor: b.WaitsFor, Until: b.Until})
		}
		h := &holds[at]
		if b.Node == "" {
			continue
		}
		h.Count++
		if len(h.Steps) < commands.MaxHeldSteps {
			h.Steps = append(h.Steps, events.StepName{Node: b.Node, Module: b.Module})
		}
	}
	return holds
}
