package rollout

import (
	"slices"
	"time"

	"catenary/aggregates/assignment"
	"catenary/aggregates/content"
	"catenary/aggregates/freeze"
	"catenary/aggregates/track"
	"catenary/events"
)

// State is what rules need of a rollout besides its steps. Of a final one only the first five fields, and what is still pending, are
// kept.
type State struct {
	Status Status
	// Reverts is the rollout that this one takes back, RevertedBy the one that takes this one back.
	Reverts, RevertedBy string
	// Begun says that some step has begun.
	Begun bool
	// Targets is what it carries.
	Targets []events.Target

	// ID is the rollout's own id, StrategyName that of its strategy.
	ID string
	// Reason is why it was planned.
	Reason string
	// Supersedes are the rollouts that it replaces once its plan is closed.
	Supersedes []string
	// Strategy is the canonical JSON that it walks by.
	Strategy events.Raw
	// Bytes bounds what its record holds of the plan.
	Bytes uint32
	// Parts, Count and Ends count what is planned so far: parts, steps, and steps that end what stands.
	Parts, Count, Ends int
	Digest             events.PlanDigest
	// Tiers are in the order they are walked; Entered is how many of them were entered.
	Tiers   []Tier
	Entered int
	// PausedAt is since when it is paused, in nanoseconds since 1970; Paused is how long it was before.
	PausedAt int64
	Paused   time.Duration
	// Holds stands for what was last said to block it; zero once something has moved.
	Holds content.Digest
}

// Tier is a tier's policy, and how far it is.
type Tier struct {
	events.Tier
	// Steps counts all; the others count by phase.
	Steps                                   int
	Pending, Done, Failed, Unknown, Skipped int
	Approved                                bool
	// Moved is when a step of it last came to an end, in nanoseconds since 1970, and PausedThen how long the rollout had been
	// paused by then.
	Moved      int64
	PausedThen time.Duration
}

// Open counts the steps that have no outcome.
func (tier Tier) Open() int {
	return tier.Steps - tier.Done - tier.Failed - tier.Unknown - tier.Skipped
}

// Budget is how many steps may fail.
func (tier Tier) Budget() int { return tier.FailureBudget.Of(tier.Steps) }

// AtOnce is how many steps may be under way.
func (tier Tier) AtOnce() int {
	if tier.Concurrency.IsZero() {
		return tier.Steps
	}
	return max(1, tier.Concurrency.Of(tier.Steps))
}

func (tier *Tier) count(p Phase, by int) {
	switch p {
	case Waiting:
	case Pending:
		tier.Pending += by
	case Done:
		tier.Done += by
	case StepFailed:
		tier.Failed += by
	case StepUnknown:
		tier.Unknown += by
	case Skipped:
		tier.Skipped += by
	}
}

// tier gives the place of a tier by its name.
func (s State) tier(name string) (int, bool) {
	at := slices.IndexFunc(s.Tiers, func(t Tier) bool { return t.Name == name })
	return at, at >= 0
}

// entered says whether the steps of a tier may begin.
func (s State) entered(name string) bool {
	at, ok := s.tier(name)
	return ok && at < s.Entered
}

// next gives the place of the next tier that has steps.
func (s State) next() (int, bool) {
	for at := s.Entered; at < len(s.Tiers); at++ {
		if s.Tiers[at].Steps > 0 {
			return at, true
		}
	}
	return 0, false
}

// pausedUntil is how long the rollout has been paused up to a moment.
func (s State) pausedUntil(at time.Time) time.Duration {
	if s.PausedAt == 0 {
		return s.Paused
	}
	return s.Paused + max(0, at.Sub(time.Unix(0, s.PausedAt)))
}

// Deadline is when a step that is pending counts as unknown, if the rollout is not paused until then.
func (s State) Deadline(step Step, now time.Time) time.Time {
	if step.Due != 0 {
		return time.Unix(0, step.Due).UTC()
	}
	timeout := events.DefaultStepTimeout
	if at, ok := s.tier(step.Tier); ok {
		timeout = s.Tiers[at].StepTimeout()
	}
	return time.Unix(0, step.Begun).UTC().Add(timeout + max(0, s.pausedUntil(now)-step.Paused))
}

// World is what deciding about a rollout needs of everything else.
type World interface {
	assignment.World
	Track(name string) track.State
	Rollout(id string) State
	// Steps gives the steps of a rollout.
	Steps(id string) Steps
	// Frozen gives the freezes, in order, that hold for a place at a moment, and Thaws the first moment at which none does.
	Frozen(p freeze.Place, at time.Time) ([]string, error)
	Thaws(p freeze.Place, at time.Time) (time.Time, error)
	// EngineFence gives the fence of the process that walks rollouts, if there is one.
	EngineFence() (fence uint64, held bool)
}
