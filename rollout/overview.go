package rollout

import (
	"context"
	"time"

	"catenary/rollout/walk"
)

// Overview is how an engine is, in figures.
type Overview struct {
	// Leads says that it walks; Lease who does, by the stream.
	Leads bool
	Lease walk.Lease
	Own   bool
	// Event is the last event that it has read, of Tail at its start.
	Event, Tail uint64
	Ready       bool
	Draining    bool
	// Rollouts, Pending and InFlight count what is walked, the steps under way, and the commands without an answer.
	Rollouts, Pending, InFlight int
	// Blocked counts what does not move, by the reason.
	Blocked map[string]int
	// Oldest is when the step began that has been under way for longest; zero when there is none.
	Oldest time.Time
}

// Overview tells how the engine is, between two of its batches. It gives [ErrEnded] and the context's error.
func (e *Engine) Overview(ctx context.Context) (Overview, error) {
	var o Overview
	err := e.ask(ctx, func() {
		lease := e.state.Lease()
		o = Overview{
			Leads: e.leading, Lease: lease, Own: lease.Holder == e.cfg.Holder, Event: e.state.Position(), Tail: e.tail, Ready: e.ready, Draining: e.draining,
			Rollouts: e.state.Count(), Pending: e.state.PendingCount(), InFlight: e.state.InFlight(), Blocked: e.state.BlockedCount(e.cfg.Now()),
		}
		for _, s := range e.state.Pending() {
			if o.Oldest.IsZero() || s.Begun.Before(o.Oldest) {
				o.Oldest = s.Begun
			}
		}
	})
	return o, err
}
