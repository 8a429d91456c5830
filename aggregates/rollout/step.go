package rollout

import (
	"time"

	"catenary/events"
)

// Phase is how a step stands.
type Phase uint8

// The phases of a step.
const (
	Waiting Phase = iota
	Pending
	Done
	StepFailed
	StepUnknown
	Skipped
)

func (p Phase) String() string {
	return [...]string{events.StepWaiting, events.StepPending, events.StepDone, events.StepFailed, events.StepUnknown, events.StepSkipped}[p]
}

// Ended says whether the step has an outcome.
func (p Phase) Ended() bool { return p > Pending }

// phaseOf gives the phase of an outcome.
func phaseOf(outcome string) (Phase, bool) {
	for p := Done; p <= Skipped; p++ {
		if p.String() == outcome {
			return p, true
		}
	}
	return Waiting, false
}

// Step is what rules need of a step.
type Step struct {
	Tier  string
	Phase Phase
	// Attempt is the number of the last try, Spent how many count against the retries of the tier.
	Attempt, Spent int
	// Begun is when the last try began, Ended when the step last came to an end, in nanoseconds since 1970.
	Begun, Ended int64
	// Paused is how long the rollout had been paused when the last try began.
	Paused time.Duration
	// Due is when a step that is pending counts as unknown, in nanoseconds since 1970, once its rollout is final: its tier is not kept.
	Due int64
	// Before and After are as planned; nil where nothing stands.
	Before, After *events.Version
	// WaitsFor are the steps it waits for, Notifies those that are told when it changed something.
	WaitsFor []events.WaitFor
	Notifies []events.StepName
	// Refresh says that it is only there to be told so, Notified how often it was since it was last done.
	Refresh  bool
	Notified int
}

func planned(p events.PlannedStep) Step {
	return Step{
		Tier: p.Tier, Attempt: p.Tried, Spent: p.Tried, Before: p.Before, After: p.After, WaitsFor: p.WaitsFor, Refresh: p.Refresh,
	}
}

// Steps holds the steps of one rollout.
type Steps interface {
	Step(n events.StepName) (Step, bool)
	// All gives every step, in no order.
	All(visit func(events.StepName, Step))
}

// StepTable is a [Steps] that can be changed.
type StepTable interface {
	Steps
	Put(n events.StepName, s Step)
	// Drop forgets a step.
	Drop(n events.StepName)
}

// same compares what stands with what a plan names; both may be nothing.
func same(a, b *events.Version) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	return a.Same(*b)
}

// say gives a version for a message.
func say(v *events.Version) string {
	if v == nil {
		return "nothing"
	}
	return v.String()
}
