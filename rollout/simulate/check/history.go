package check

import (
	"fmt"
	"time"

	"catenary/es"
	"catenary/events"
)

// History is all that happened.
type History struct {
	// Events is every event, in order.
	Events []es.Event
	// Fences holds the fence of each command that carried one, by its id.
	Fences map[string]uint64
	// Told is what reached nodes, Ran what they have brought about of that, both in order.
	Told, Ran []Told
	// Engines names the actors that walk rollouts.
	Engines map[string]bool
	// Lease is how long the engine's lease holds without renewal; zero where holders die all the time.
	Lease time.Duration
	// Quiet is when the faults stopped, Settled when everything had had the time that it may take without them. Nobody helps between the two.
	Quiet, Settled time.Time
	// Waiting says of each rollout why it does not move, as known when all had settled.
	Waiting map[string][]Reason
	// Tracks says of each track why it does not plan, as known when all had settled.
	Tracks []Idle
	// Kept says of rollouts that failed why they need no way back.
	Kept map[string]string
	// Away holds when nodes were not there. An engine may act on what it knows of that for as long as Stale, and what it has decided on may be
	// done for as long as Late.
	Away        []Absence
	Late, Stale time.Duration
}

// Absence is a stretch of time in which a node was not there.
type Absence struct {
	Node     string
	From, To time.Time
}

// Idle is why a track does not plan; without a reason it has something to plan.
type Idle struct{ Track, Reason, WaitsFor string }

// Told is an instruction that reached its node.
type Told struct {
	events.StepName
	// Source is the sequence of its event, At when it arrived.
	Source uint64
	At     time.Time
}

// Reason is what was said to hold a rollout, a tier of it, or a step.
type Reason struct {
	Tier string
	events.StepName
	Reason string
}

func (r Reason) String() string {
	if r.Node == "" {
		return fmt.Sprintf("%s (%s)", r.Reason, r.Tier)
	}
	return fmt.Sprintf("%s: %s (%s)", r.StepName, r.Reason, r.Tier)
}

// Violation is something that must not be.
type Violation struct {
	// Rule is stable; it is what a shorter history of the same fault has in common with a longer one.
	Rule string
	// Sequence is that of the event at which it was seen; zero where it is about all of them.
	Sequence uint64
	Text     string
}

func (v Violation) String() string {
	if v.Sequence == 0 {
		return v.Rule + ": " + v.Text
	}
	return fmt.Sprintf("%s: event %d: %s", v.Rule, v.Sequence, v.Text)
}

// All gives what is wrong with a history, in the order in which it happened.
func All(h History) []Violation {
	c := &judge{history: h, model: newModel()}
	settled := false
	for i, e := range h.Events {
		if !settled && !h.Settled.IsZero() && e.Recorded.After(h.Settled) {
			settled = true
			c.settled()
		}
		c.at = i
		c.judge(e)
		c.take(e)
	}
	if !settled && !h.Settled.IsZero() {
		c.settled()
	}
	c.told()
	c.ran()
	c.ended()
	return c.found
}

// judge holds each event to the rules before it takes it in.
type judge struct {
	*model
	history History
	// at is the place of the event that is judged.
	at    int
	found []Violation
}

func (j *judge) say(rule, format string, args ...any) {
	j.found = append(j.found, Violation{Rule: rule, Sequence: j.history.Events[j.at].Sequence, Text: fmt.Sprintf(format, args...)})
}

// sayOf says something about the whole.
func (j *judge) sayOf(rule, format string, args ...any) {
	j.found = append(j.found, Violation{Rule: rule, Text: fmt.Sprintf(format, args...)})
}

// judge holds an event to the rules.
func (j *judge) judge(e es.Event) {
	j.once(e)
	j.fenced(e)
	switch f := e.Data.(type) {
	case events.LeaseTaken:
		j.taken(e, f)
	case events.AssignmentAssigned:
		j.assigned(e, f.Node, f.Module, f.Rollout)
		j.handed(f.Told)
	case events.AssignmentEnded:
		j.assigned(e, f.Node, f.Module, f.Rollout)
	case events.RolloutPlanning:
		j.planning(e, f)
	case events.RolloutPlanned:
		j.planned(e)
		j.whole(e, f)
		j.superseded(e)
		j.restored(e)
		j.carried(e)
	case events.MergeReleased:
		j.released(e, f)
	case events.Rollout:
		j.walked(e, f)
	}
}

// walked holds a fact about a rollout to the rules.
func (j *judge) walked(e es.Event, fact events.Rollout) {
	r := j.of(e)
	if r == nil {
		if _, first := fact.(events.RolloutPlanning); !first {
			j.say("known", "%s of a rollout that nobody has planned", e.Type)
		}
		return
	}
	j.final(r, fact)
	switch f := fact.(type) {
	case events.RolloutStepBegun:
		j.begun(e, r, f)
	case events.RolloutStepEnded:
		j.stepEnded(e, r, f)
	case events.RolloutTierEntered:
		j.entered(e, r, f)
	case events.RolloutFinished:
		j.finished(e, r)
	case events.RolloutFailed:
		j.failed(r)
	case events.RolloutBlocked:
		j.blocked(r, f)
	case events.RolloutPlanning, events.RolloutStepsPlanned, events.RolloutPlanned, events.RolloutApproved, events.RolloutStarted,
		events.RolloutStepRetried, events.RolloutPaused, events.RolloutResumed, events.RolloutAborted, events.RolloutSuperseded,
		events.RolloutReverted:
	}
}
