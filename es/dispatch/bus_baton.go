package dispatch

import (
	"context"
	"encoding/json"
	"log/slog"
	"time"

	"github.com/cockroachdb/errors"
	"github.com/google/uuid"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"catenary/internal/failpoint"
)

// The pace of the baton. A holder that dies is replaced after batonExpiry and at most one batonPace: in about a second. A holder
// that lives misses three renewals before anyone thinks it dead; if it happens, two writers are active for a moment, which costs
// time and nothing else.
const (
	batonPace   = 200 * time.Millisecond
	batonExpiry = 900 * time.Millisecond
	// batonPatience bounds one question to the server.
	batonPatience = time.Second
)

// ErrBatonLost means that another process has taken the baton over.
var ErrBatonLost = errors.New("another process has taken over")

// BatonConfig is what a process needs to wait for its turn.
type BatonConfig struct {
	Conn *nats.Conn
	// Bucket is a bucket that exists, Key what the turn is for.
	Bucket, Key string
	// Name says to people who holds it.
	Name string
	// Seize takes the baton at once, whoever holds it: for a process that is known to be alone.
	Seize bool
	// StandsBy is told who holds it, whenever that is another than before. It may be nil.
	StandsBy func(active string)
	Logger   *slog.Logger
}

// Baton is what the active one of several equal processes holds, and the others wait for. It only avoids that they get into each
// other's way: nothing may rest on there being one holder. A holder that is cut off, or was paused, goes on until it learns that
// another has taken over.
//
// The holder renews the baton's value. Each of the others takes it over, guarded by the revision it has seen, when it has not seen
// the value change for batonExpiry by its own clock, so that no two clocks are ever compared. It is for one goroutine.
type Baton struct {
	cfg      BatonConfig
	bucket   jetstream.KeyValue
	holding  batonValue
	revision uint64 // of the value we wrote last
}

// batonValue is what stands in the bucket, for people to read.
type batonValue struct {
	// Holder is unique to one turn of one process.
	Holder string    `json:"holder"`
	Name   string    `json:"name"`
	Since  time.Time `json:"since"`
	// Released says that the holder has stopped.
	Released bool `json:"released,omitempty"`
}

// OpenBaton opens the baton in a bucket that exists.
func OpenBaton(ctx context.Context, cfg BatonConfig) (*Baton, error) {
	js, err := jetstream.New(cfg.Conn)
	if err != nil {
		return nil, errors.Wrap(err, "open the baton")
	}
	kv, err := js.KeyValue(ctx, cfg.Bucket)
	return &Baton{cfg: cfg, bucket: kv}, errors.Wrapf(err, "open the baton in bucket %s", cfg.Bucket)
}

// standing is what a process has seen of another's baton.
type standing struct {
	batonValue
	revision uint64
	since    time.Time // when it was first seen, on a clock of our own
}

// Take waits until the baton is ours. It gives the context's error. While the bucket can't be read it goes on waiting.
func (b *Baton) Take(ctx context.Context) error {
	b.holding = batonValue{Holder: uuid.NewString(), Name: b.cfg.Name, Since: time.Now().UTC()}
	released := make(chan struct{}, 1)
	stop, err := b.hearReleases(released)
	if err != nil {
		return err
	}
	defer stop()
	pace := time.NewTicker(batonPace)
	defer pace.Stop()
	var seen standing
	told := ""
	for {
		now, err := b.look(ctx)
		switch {
		case err != nil:
			// What was seen before counts no more: the holder could not renew it either.
			seen = standing{}
			b.cfg.Logger.Debug("baton can't be read", "error", err)
		case now.revision != seen.revision:
			seen = now
		}
		expired := time.Since(seen.since) >= batonExpiry && !failpoint.Planted(failpoint.BatonKept)
		if err == nil && (now.revision == 0 || now.Released || now.Holder == b.holding.Holder || b.cfg.Seize || expired) {
			taken, err := b.write(ctx, b.holding, now.revision)
			if err == nil {
				b.revision = taken
				failpoint.Pass(failpoint.BatonTaken)
				return nil
			}
			b.cfg.Logger.Debug("baton not taken", "error", err)
		}
		if err == nil && now.Holder != "" && now.Holder != told {
			told = now.Holder
			b.cfg.Logger.Info("standing by", "active", now.Name, "since", now.Since)
			if b.cfg.StandsBy != nil {
				b.cfg.StandsBy(now.Name)
			}
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-released:
		case <-pace.C:
		}
	}
}

// hearReleases wakes those who wait as soon as a holder stops. A release that is not heard is seen at the next look.
func (b *Baton) hearReleases(released chan<- struct{}) (stop func(), err error) {
	sub, err := b.cfg.Conn.Subscribe("$KV."+b.cfg.Bucket+"."+b.cfg.Key, func(m *nats.Msg) {
		var v batonValue
		if json.Unmarshal(m.Data, &v) != nil || !v.Released {
			return
		}
		select {
		case released <- struct{}{}:
		default:
		}
	})
	if err != nil {
		return nil, errors.Wrap(err, "listen for the baton")
	}
	// A subscription that can't be ended has ended with its connection.
	return func() { _ = sub.Unsubscribe() }, nil
}

// look reads what stands. Revision 0 means that there is nothing.
func (b *Baton) look(ctx context.Context) (standing, error) {
	ctx, cancel := context.WithTimeout(ctx, batonPatience)
	defer cancel()
	e, err := b.bucket.Get(ctx, b.cfg.Key)
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return standing{since: time.Now()}, nil
	}
	if err != nil {
		return standing{}, err
	}
	s := standing{revision: e.Revision(), since: time.Now()}
	if json.Unmarshal(e.Value(), &s.batonValue) != nil {
		// Not one of ours wrote it: it expires like any other that nobody renews.
		s.batonValue = batonValue{Name: "unknown"}
	}
	return s, nil
}

// write replaces what stands at a revision, and gives the new revision.
func (b *Baton) write(ctx context.Context, v batonValue, revision uint64) (uint64, error) {
	value, err := json.Marshal(v)
	if err != nil {
		return 0, err
	}
	ctx, cancel := context.WithTimeout(ctx, batonPatience)
	defer cancel()
	if revision == 0 {
		return b.bucket.Create(ctx, b.cfg.Key, value)
	}
	return b.bucket.Update(ctx, b.cfg.Key, value, revision)
}

// Keep renews the baton until the context ends, when it gives it up and returns nil: the context MUST end only when the holder
// has stopped working. It gives an error marked [ErrBatonLost] when another has taken over.
func (b *Baton) Keep(ctx context.Context) error {
	pace := time.NewTicker(batonPace)
	defer pace.Stop()
	ended := ctx.Done()
	// A renewal is not broken off: one whose outcome is not known would make the release fail.
	ctx = context.WithoutCancel(ctx)
	for {
		select {
		case <-ended:
			b.release(ctx)
			return nil
		case <-pace.C:
		}
		failpoint.Pass(failpoint.BatonRenew)
		revision, err := b.write(ctx, b.holding, b.revision)
		if err == nil {
			b.revision = revision
			continue
		}
		now, lookErr := b.look(ctx)
		switch {
		case lookErr != nil: // while we can't see it, nobody else is known to have it
			b.cfg.Logger.Debug("baton not renewed", "error", err)
		case now.revision == 0 || now.Holder == b.holding.Holder:
			b.revision = now.revision // a renewal whose answer was lost, or a bucket that was emptied
		default:
			return errors.Mark(errors.Newf("%s has taken over", now.Name), ErrBatonLost)
		}
	}
}

// release lets another take over at once. When it fails, the others wait for the baton to expire.
func (b *Baton) release(ctx context.Context) {
	v := b.holding
	v.Released = true
	if _, err := b.write(ctx, v, b.revision); err != nil {
		b.cfg.Logger.Debug("baton not released; it will expire", "error", err)
	}
}
