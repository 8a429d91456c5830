package project

import (
	"context"
	"time"

	"github.com/cenkalti/backoff/v5"
)

const (
	// minPause is the first pause after trouble: most of it is gone by then.
	minPause = 20 * time.Millisecond
	// maxPause bounds the pause while something can't be reached.
	maxPause = 5 * time.Second
	// maxRivalPause bounds the pause after another projector was faster. It is how far the slower one is behind.
	maxRivalPause = 500 * time.Millisecond
	// calm is how long all must have gone well until trouble counts as new.
	calm = 10 * time.Second
)

// pace spaces attempts, the more the longer the trouble lasts. Pauses vary by chance, so that two equals do not meet
// again at every attempt.
type pace struct {
	backoff *backoff.ExponentialBackOff
	last    time.Time
}

func newPace() *pace {
	b := backoff.NewExponentialBackOff()
	b.InitialInterval, b.MaxInterval = minPause, maxPause
	return &pace{backoff: b}
}

// wait pauses, and says false when the context has ended.
func (p *pace) wait(ctx context.Context, most time.Duration) bool {
	timer := time.NewTimer(p.begin(most))
	defer timer.Stop()
	defer p.end()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
	return ctx.Err() == nil
}

// begin gives how long to pause. It MUST be followed by end when the pause is over.
func (p *pace) begin(most time.Duration) time.Duration {
	if time.Since(p.last) > calm {
		p.backoff.Reset()
	}
	return min(p.backoff.NextBackOff(), most)
}

func (p *pace) end() { p.last = time.Now() }
