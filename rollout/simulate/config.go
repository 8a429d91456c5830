package simulate

import (
	"time"

	"catenary/aggregates"
	"catenary/chain"
	"catenary/es"
	"catenary/rollout/plan"
	"catenary/rollout/simulate/check"
	"catenary/rollout/stage"
	"catenary/rollout/walk"
)

// Config says which history to make.
type Config struct {
	Seed uint64
	// Keep are the places of the incidents that are done; nil means all of them.
	Keep []int
	// Anew lets the engine that walks die whenever something has happened. The one that goes on has to ask for the same and give the same
	// reasons.
	Anew bool
	// Parts are what is run.
	Parts Parts
	// Tools are shared by runs of one goroutine; nil makes them anew.
	Tools *stage.Tools
}

// Parts are what is run. The zero value is the real thing; a test puts something with a fault in its place.
type Parts struct {
	// Decide decides in the world's place.
	Decide func(*aggregates.World, es.Command) ([]es.KeyedEvent, error)
	// Fold changes what the writer's world and the engines take in; Recall what an engine takes in when it begins.
	Fold, Recall func(es.Event) es.Event
	// Walker changes a new engine.
	Walker func(*walk.State) Walker
	// Plan changes what is asked of the planner, Track what a track decides on, and Write how a plan is written down.
	Plan  func(plan.Request) plan.Request
	Track func(chain.Track, plan.TrackFacts) (chain.Track, plan.TrackFacts)
	Write func([]es.Payload) []es.Payload
	// Unrenewed engines forget to renew their lease, Undated ones let their commands be done however late.
	Unrenewed, Undated bool
}

// Walker is what the simulation asks of an engine: a [walk.State], or something around one.
type Walker interface {
	Apply(es.Event) error
	Next(now time.Time) ([]walk.Action, time.Time)
	Answered(a walk.Action, answer es.Answer, err error, now time.Time)
	Blocked(id string, now time.Time) []walk.Blocked
	SetAway(node string, since time.Time)
	Lease() walk.Lease
	Forget()
	ToTakeBack() []string
	HalfPlanned() []walk.HalfPlan
	PlansByItself() bool
	ToPlan() bool
}

// Run is what became of a simulation.
type Run struct {
	Config    Config
	Incidents []Incident
	History   check.History
}

// Violations gives what is wrong with the history.
func (r Run) Violations() []check.Violation { return check.All(r.History) }
