package rollout

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/cenkalti/backoff/v5"

	"catenary/commands"
	"catenary/es"
	"catenary/es/dispatch"
	"catenary/internal/failpoint"
)

// keeper takes the lease and keeps it. Who holds it is what the stream says; the keeper only knows how long its own word is good.
//
//	idle ──there is something to walk──► standing by
//	standing by ──take──► holding ──renew, three times in a TTL──► holding
//	     ▲                   │
//	     └── fenced, or not renewed in time ──┘
type keeper struct {
	client  *commands.Client
	cfg     Config
	changed chan struct{}
	// until is when the lease has run out unless it is renewed, in nanoseconds since 1970, by this engine's clock; zero for one that is not held.
	until atomic.Int64
	wake  chan struct{}
	// wanted says that there is something to walk. A chain without rollouts has no event of this engine either.
	wanted atomic.Bool
	// stands says that it was said that another engine walks.
	stands bool
}

func newKeeper(client *commands.Client, c Config) *keeper {
	return &keeper{client: client, cfg: c, changed: make(chan struct{}, 1), wake: make(chan struct{}, 1)}
}

// heldUntil is when the lease has run out; the zero time when it is not held.
func (k *keeper) heldUntil() time.Time {
	if at := k.until.Load(); at != 0 {
		return time.Unix(0, at)
	}
	return time.Time{}
}

// lost says that the lease is another's.
func (k *keeper) lost() {
	k.set(time.Time{})
	signal(k.wake)
}

// want says that there is something to walk.
func (k *keeper) want() {
	if !k.wanted.Swap(true) {
		signal(k.wake)
	}
}

func (k *keeper) set(until time.Time) {
	at := int64(0)
	if !until.IsZero() {
		at = until.UnixNano()
	}
	k.until.Store(at)
	signal(k.changed)
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default: // it is noticed already
	}
}

// run takes the lease and renews it until the context ends.
func (k *keeper) run(ctx context.Context) {
	pace := backoff.NewExponentialBackOff()
	pace.InitialInterval, pace.MaxInterval = k.cfg.TTL/20, k.cfg.TTL/4
	for ctx.Err() == nil {
		wait := k.cfg.TTL / 4
		switch held := !k.heldUntil().IsZero(); {
		case held:
			wait = k.cfg.TTL / 3
			if !k.say(ctx, commands.RenewLease{Name: commands.EngineLease, Holder: k.cfg.Holder}) {
				wait = min(wait, pace.NextBackOff())
			} else {
				pace.Reset()
			}
		case !k.wanted.Load():
		case k.seesOthers(ctx):
			// Asking for a lease that is held is refused, and what is refused is kept.
			k.standBy()
		default:
			if k.say(ctx, commands.TakeLease{Name: commands.EngineLease, Holder: k.cfg.Holder, TTL: k.cfg.TTL.String()}) {
				wait, k.stands = k.cfg.TTL/3, false
			}
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-k.wake:
		case <-ctx.Done():
		}
		timer.Stop()
	}
}

// say sends a command about the lease, and says whether it is held for another TTL from when that was sent.
func (k *keeper) say(ctx context.Context, p es.Payload) bool {
	sent := k.cfg.Now()
	ctx, cancel := context.WithTimeout(ctx, k.cfg.TTL)
	defer cancel()
	answer, err := k.client.Send(ctx, p, dispatch.Options{})
	switch {
	case err != nil:
		return false // while nobody answers, what was held runs out by itself
	case answer.Status == es.StatusAccepted, answer.Status == es.StatusUnchanged:
		failpoint.Pass(failpoint.EngineLease)
		k.set(sent.Add(k.cfg.TTL))
		return true
	case answer.Status == es.StatusFenced:
		k.set(time.Time{})
		k.cfg.Logger.Warn("the lease is another's: fenced", "holder", k.cfg.Holder)
	case answer.Status == es.StatusRejected:
		k.standBy()
	}
	return false
}

// seesOthers says whether another engine is seen at work. One that does not answer soon may be stopped, and its lease has to be asked for.
func (k *keeper) seesOthers(ctx context.Context) bool {
	if k.cfg.Others == nil {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, k.cfg.TTL/4)
	defer cancel()
	return k.cfg.Others(ctx)
}

// standBy says once that another engine walks.
func (k *keeper) standBy() {
	if !k.stands {
		k.stands = true
		k.cfg.Logger.Info("standing by: another engine holds the lease", "ttl", k.cfg.TTL)
	}
}

// release gives the lease back, so that another engine needs not wait for it to run out.
func (k *keeper) release(ctx context.Context) {
	if k.heldUntil().IsZero() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, leavePatience)
	defer cancel()
	answer, err := k.client.Send(ctx, commands.ReleaseLease{Name: commands.EngineLease, Holder: k.cfg.Holder, Reason: "the engine ends"}, dispatch.Options{})
	if err != nil || answer.Status != es.StatusAccepted {
		k.cfg.Logger.Info("the lease could not be given back; it runs out by itself", "ttl", k.cfg.TTL, "status", answer.Status, "error", err)
	}
	k.set(time.Time{})
}
