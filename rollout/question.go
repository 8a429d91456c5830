package rollout

import (
	"context"
	"time"

	"catenary/rollout/walk"
)

// QuestionBlocked is the name of the query that asks why something does not move.
const QuestionBlocked = "blocked"

// MaxBlocked bounds the reasons of one answer: a message of the bus takes a few thousand.
const MaxBlocked = 1000

// BlockedQuestion asks why a rollout does not move.
type BlockedQuestion struct {
	Rollout string `json:"rollout"`
	// After leaves out so many reasons of the beginning.
	After int `json:"after,omitempty"`
}

// BlockedAnswer says why, as the engine that walks sees it.
type BlockedAnswer struct {
	// Holder is the engine, Event the last event that it has read, At its clock.
	Holder string    `json:"holder"`
	Fence  uint64    `json:"fence"`
	Event  uint64    `json:"event"`
	At     time.Time `json:"at"`
	// Walked says whether the rollout is one that can move.
	Walked  bool           `json:"walked"`
	Blocked []walk.Blocked `json:"blocked"`
	// Total counts the reasons of all answers.
	Total int `json:"total"`
	// Error says why the question can't be answered.
	Error string `json:"error,omitempty"`
}

// Blocked answers a question. It gives [ErrEnded] and the context's error.
func (e *Engine) Blocked(ctx context.Context, q BlockedQuestion) (BlockedAnswer, error) {
	var a BlockedAnswer
	err := e.ask(ctx, func() {
		now := e.cfg.Now()
		lease := e.state.Lease()
		a = BlockedAnswer{Holder: lease.Holder, Fence: lease.Fence, Event: e.state.Position(), At: now.UTC(), Walked: e.state.Knows(q.Rollout)}
		a.Blocked = e.state.Blocked(q.Rollout, now)
	})
	a.Total = len(a.Blocked)
	from := min(max(0, q.After), a.Total)
	a.Blocked = a.Blocked[from:min(a.Total, from+MaxBlocked)]
	return a, err
}
