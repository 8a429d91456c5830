package agent

import (
	"context"
	"time"
)

// firstPause and talkPace bound how soon an agent asks again that had no answer.
const firstPause = 250 * time.Millisecond

// tellStatus lets the next check-in say how the agent stands now, and makes it soon when something changed that others wait for.
func (a *Agent) tellStatus() {
	next := a.state.status(a.resting, a.cfg.Outbox.Unsent(), a.delivery.names())
	a.mu.Lock()
	before := a.status
	a.status = next
	a.mu.Unlock()
	// Whoever waits for the node waits for one that has converged on what is told now, or for the reason why it can't.
	if before.Converged != next.Converged || before.Held != next.Held || len(before.Failed) != len(next.Failed) || next.Converged && before.Edition != next.Edition {
		select {
		case a.poke <- struct{}{}:
		default:
		}
	}
}

// Status tells how the agent stands, as the next check-in says it.
func (a *Agent) Status() Status {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.status
}

// talk checks in: on every connect, when something was told or has changed, and every few seconds besides.
func (a *Agent) talk(ctx context.Context) {
	known, after := "", uint64(0)
	tick := time.NewTicker(a.cfg.Every)
	defer tick.Stop()
	pause := firstPause
	for {
		answered := a.checkIn(ctx, &known, after)
		after = 0
		var again <-chan time.Time
		if answered {
			pause = firstPause
		} else {
			again = time.After(pause)
			pause = min(2*pause, a.cfg.Every)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-again:
		case <-a.poke:
		case after = <-a.cfg.Hints:
			after = drain(a.cfg.Hints, after)
		case <-a.cfg.Connected:
			known = ""
		}
	}
}

// drain takes all hints that are there, and gives the latest.
func drain(hints <-chan uint64, after uint64) uint64 {
	for {
		select {
		case next := <-hints:
			after = max(after, next)
		default:
			return after
		}
	}
}

// checkIn checks in once, and says whether there was an answer.
func (a *Agent) checkIn(ctx context.Context, known *string, after uint64) bool {
	status := a.Status()
	answer, err := a.cfg.Desk.CheckIn(ctx, CheckIn{
		Node: a.cfg.Node, Run: a.cfg.Run, Version: a.cfg.Version, Every: a.cfg.Every, Known: *known, After: after, Status: status,
	})
	if err != nil {
		if ctx.Err() == nil {
			a.cfg.Logger.Debug("no answer to a check-in", "error", err)
		}
		return false
	}
	if answer.Unchanged {
		return true
	}
	select {
	case a.answers <- answer:
		*known = answer.Edition
		return true
	case <-ctx.Done():
		return false
	}
}
