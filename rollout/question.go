package rollout

import (
	"context"
	"time"

	"github.com/cockroachdb/errors"

	"catenary/rollout/walk"
)

// QuestionBlocked is the name of the query that asks why something does not move.
const QuestionBlocked = "blocked"

// MaxBlocked bounds the reasons of one answer: a message of the bus takes a few thousand.
const MaxBlocked = 1000

// MaxBlockedRollouts bounds the rollouts of one question about several, for the same reason.
const MaxBlockedRollouts = 500

// BlockedQuestion asks why a rollout does not move.
type BlockedQuestion struct {
	Rollout string `json:"rollout"`
	// After leaves out so many reasons of the beginning.
	After int `json:"after,omitempty"`
	// Rollouts asks about several instead: of each, how often each reason holds.
	Rollouts []string `json:"rollouts,omitempty"`
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
	// Rollouts answers for several, in the order of the question.
	Rollouts []RolloutWaits `json:"rollouts,omitempty"`
	// Error says why the question can't be answered.
	Error string `json:"error,omitempty"`
}

// RolloutWaits says of one of several rollouts why it does not move.
type RolloutWaits struct {
	Rollout string `json:"rollout"`
	// Walked says whether it is one that can move.
	Walked bool         `json:"walked"`
	Waits  []walk.Waits `json:"waits,omitempty"`
}

// Blocked answers a question. It gives errors for one that asks about no rollout, or about too many, [ErrEnded] and the context's error.
func (e *Engine) Blocked(ctx context.Context, q BlockedQuestion) (BlockedAnswer, error) {
	var a BlockedAnswer
	switch n := len(q.Rollouts); {
	case n > MaxBlockedRollouts:
		return a, errors.Newf("the question is about %d rollouts: the limit is %d", n, MaxBlockedRollouts)
	case n == 0 && q.Rollout == "":
		return a, errors.New(`the question names no rollout: it is like {"rollout":"r1"} or {"rollouts":["r1","r2"]}`)
	}
	err := e.ask(ctx, func() {
		now := e.cfg.Now()
		lease := e.state.Lease()
		a = BlockedAnswer{Holder: lease.Holder, Fence: lease.Fence, Event: e.state.Position(), At: now.UTC(), Walked: e.state.Knows(q.Rollout)}
		a.Blocked = e.state.Blocked(q.Rollout, now)
		for _, id := range q.Rollouts {
			a.Rollouts = append(a.Rollouts, RolloutWaits{Rollout: id, Walked: e.state.Knows(id), Waits: e.state.Waits(id, now)})
		}
	})
	a.Total = len(a.Blocked)
	from := min(max(0, q.After), a.Total)
	a.Blocked = a.Blocked[from:min(a.Total, from+MaxBlocked)]
	return a, err
}
