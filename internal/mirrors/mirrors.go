package mirrors

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/cockroachdb/errors"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"catenary/internal/streams"
	"catenary/internal/topology"
)

// pollInterval is how often a mirror that catches up is asked how far it is. A mirror follows within a millisecond.
const pollInterval = 5 * time.Millisecond

// idlePollInterval is how often one is asked that nobody waits for.
const idlePollInterval = 500 * time.Millisecond

// stallLimit is how long a mirror may get nothing new while it is waited for. One that is recovered before its origin may not ask it again for half
// a minute.
const stallLimit = 90 * time.Second

var (
	// ErrNoBucket is given for a bucket that does not exist: create the buckets first.
	ErrNoBucket = errors.New("mirrors: there is no bucket to mirror")
	// ErrStalled is given for a mirror that does not follow its bucket.
	ErrStalled = errors.New("mirrors: a mirror does not follow its bucket")
)

// Mirrors makes the ops account's mirrors of buckets.
type Mirrors struct {
	origins, copies jetstream.JetStream
	options         topology.Options
	log             *slog.Logger
}

// New makes mirrors over a connection of the ledger account and one of the mirrors user.
func New(ledger, mirrors *nats.Conn, o topology.Options, log *slog.Logger) (*Mirrors, error) {
	origins, err := jetstream.New(ledger)
	if err != nil {
		return nil, errors.Wrap(err, "mirrors: ledger account")
	}
	copies, err := jetstream.New(mirrors)
	if err != nil {
		return nil, errors.Wrap(err, "mirrors: ops account")
	}
	return &Mirrors{origins: origins, copies: copies, options: o, log: log}, nil
}

// Ensure gives the ops account a true mirror of every bucket, as [Mirrors.True] does, and returns when each follows its bucket and holds what
// that held when this was called. It gives ErrNoBucket, ErrStalled, the context's error, and what the bus gives.
func (m *Mirrors) Ensure(ctx context.Context) error {
	targets, err := m.True(ctx)
	if err != nil {
		return err
	}
	return m.await(ctx, targets, pollInterval)
}

// Follows returns when every mirror of a [Mirrors.True] follows its bucket and holds what that held then. It asks seldom, since nobody
// waits for it. The errors are those of [Mirrors.Ensure].
func (m *Mirrors) Follows(ctx context.Context, targets Targets) error {
	return m.await(ctx, targets, idlePollInterval)
}

// Targets are the last values of buckets, which their mirrors have yet to reach.
type Targets map[string]uint64

// True makes sure that the ops account has a mirror of every bucket of the ledger, every generation included, that holds nothing but what its
// bucket holds. It does not wait until they hold all of it: a mirror that a server has recovered may not ask its bucket for half a minute, and
// nothing depends on it meanwhile.
//
// A bucket persists asynchronously and may lose its tail in a crash, and its mirror may then be ahead of it and stay
// different for ever, without an error anywhere. So each mirror is compared with its origin, and made anew when it is ahead,
// different, or configured otherwise. It MUST be called before anything writes to the buckets in this run: once a bucket
// has grown past its mirror again, only a comparison of every value would tell.
//
// It gives ErrNoBucket, the context's error, and what the bus gives.
func (m *Mirrors) True(ctx context.Context) (Targets, error) {
	buckets, err := m.buckets(ctx)
	if err != nil {
		return nil, err
	}
	if err := m.removeOrphans(ctx, buckets); err != nil {
		return nil, err
	}
	targets := Targets{}
	for _, bucket := range buckets {
		last, err := m.ensure(ctx, bucket)
		if err != nil {
			return nil, errors.Wrapf(err, "mirror of bucket %s", bucket)
		}
		targets[bucket] = last
	}
	return targets, nil
}

func (m *Mirrors) await(ctx context.Context, targets Targets, poll time.Duration) error {
	for _, bucket := range slices.Sorted(maps.Keys(targets)) {
		if err := m.reach(ctx, bucket, targets[bucket], poll); err != nil {
			return err
		}
	}
	return nil
}

// buckets lists what is to be mirrored. Of a view any generation may have been removed by hand but the one that is read, which
// whoever makes the buckets makes sure of.
func (m *Mirrors) buckets(ctx context.Context) ([]string, error) {
	wanted := map[string]bool{}
	for _, bucket := range topology.MirroredBuckets() {
		wanted[bucket] = true
	}
	generations := map[string][]string{}
	names := m.origins.StreamNames(ctx)
	for name := range names.Name() {
		bucket := strings.TrimPrefix(name, topology.BucketStream(""))
		if view, _, ok := topology.GenerationOf(bucket); ok {
			generations[view] = append(generations[view], bucket)
		}
	}
	if err := names.Err(); err != nil {
		return nil, errors.Wrap(err, "mirrors: list the streams of the ledger account")
	}
	for view, found := range generations {
		delete(wanted, view)
		for _, bucket := range found {
			wanted[bucket] = true
		}
	}
	return slices.Sorted(maps.Keys(wanted)), nil
}

// removeOrphans removes the mirrors of generations whose buckets are no more: whoever removed one may have had no access to its mirror.
func (m *Mirrors) removeOrphans(ctx context.Context, buckets []string) error {
	names := m.copies.StreamNames(ctx)
	var orphans []string
	for name := range names.Name() {
		bucket := strings.TrimPrefix(name, topology.BucketStream(""))
		if _, _, ok := topology.GenerationOf(bucket); ok && !slices.Contains(buckets, bucket) {
			orphans = append(orphans, bucket)
		}
	}
	if err := names.Err(); err != nil {
		return errors.Wrap(err, "mirrors: list the streams of the ops account")
	}
	for _, bucket := range orphans {
		m.log.Info("mirror of a bucket that is no more is removed", "bucket", bucket)
		if err := m.Remove(ctx, bucket); err != nil {
			return err
		}
	}
	return nil
}

// Remove removes the mirror of a bucket, if there is one.
func (m *Mirrors) Remove(ctx context.Context, bucket string) error {
	err := m.copies.DeleteStream(ctx, topology.BucketStream(bucket))
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return nil
	}
	return errors.Wrapf(err, "mirror of bucket %s: remove it", bucket)
}

// Follow gives one bucket a mirror, if it has no true one, and returns when that holds a revision. The errors are those of
// [Mirrors.Ensure].
func (m *Mirrors) Follow(ctx context.Context, bucket string, revision uint64) error {
	if _, err := m.ensure(ctx, bucket); err != nil {
		return errors.Wrapf(err, "mirror of bucket %s", bucket)
	}
	return m.reach(ctx, bucket, revision, pollInterval)
}

// Retire gives back the room that is kept for a mirror whose bucket takes nothing more. Nothing of it goes.
func (m *Mirrors) Retire(ctx context.Context, bucket string) error {
	origin, err := m.origins.Stream(ctx, topology.BucketStream(bucket))
	if err != nil {
		return errors.Wrapf(err, "mirror of bucket %s: read the bucket", bucket)
	}
	want := m.config(bucket, origin)
	_, err = m.copies.UpdateStream(ctx, want)
	return errors.Wrapf(err, "mirror of bucket %s: set its limit to %d bytes", bucket, want.MaxBytes)
}

// retiredMargin is added to the limit of a bucket that takes nothing more to make its mirror's, which must not drop anything.
const retiredMargin = 1 << 20

// config is what a bucket's mirror should be. A bucket whose limit is lower than usual takes nothing more.
func (m *Mirrors) config(bucket string, origin jetstream.Stream) jetstream.StreamConfig {
	want := topology.Mirror(bucket, m.options)
	if _, _, ok := topology.GenerationOf(bucket); ok {
		want.MaxBytes = min(want.MaxBytes, origin.CachedInfo().Config.MaxBytes+retiredMargin)
	}
	return want
}

// ensure makes sure that a bucket has a true mirror and returns the bucket's last sequence, which the mirror has yet to
// reach.
func (m *Mirrors) ensure(ctx context.Context, bucket string) (uint64, error) {
	name := topology.BucketStream(bucket)
	// The copy is read first: an honest origin, read later, is then never behind it.
	mirror, err := m.copies.Stream(ctx, name)
	if err != nil && !errors.Is(err, jetstream.ErrStreamNotFound) {
		return 0, errors.Wrap(err, "read the mirror")
	}
	origin, oerr := m.origins.Stream(ctx, name)
	if errors.Is(oerr, jetstream.ErrStreamNotFound) {
		return 0, errors.Wrapf(ErrNoBucket, "stream %s is not in account %s; create the buckets first", name, topology.AccountLedger)
	}
	if oerr != nil {
		return 0, errors.Wrap(oerr, "read the bucket")
	}
	want := m.config(bucket, origin)
	if err == nil {
		reason, err := difference(ctx, mirror, origin, want)
		if err != nil {
			return 0, err
		}
		if reason == "" {
			return origin.CachedInfo().State.LastSeq, nil
		}
		m.log.Warn("mirror is made anew", "bucket", bucket, "reason", reason)
		if err := m.copies.DeleteStream(ctx, name); err != nil {
			return 0, errors.Wrap(err, "delete the mirror")
		}
	}
	if _, err := streams.Create(ctx, m.copies, want); err != nil {
		return 0, errors.Wrap(err, "create the mirror")
	}
	return origin.CachedInfo().State.LastSeq, nil
}

// difference says why a mirror is not a true copy of the first part of its origin; empty when it is.
func difference(ctx context.Context, mirror, origin jetstream.Stream, want jetstream.StreamConfig) (string, error) {
	have := mirror.CachedInfo().Config
	if !reflect.DeepEqual(essence(have), essence(want)) {
		return "its configuration is another", nil
	}
	m, o := mirror.CachedInfo().State, origin.CachedInfo().State
	wholeHistory := want.MaxMsgsPerSubject > 1
	switch {
	case m.LastSeq > o.LastSeq:
		return fmt.Sprintf("it is ahead: at %d, the bucket at %d", m.LastSeq, o.LastSeq), nil
	case m.LastSeq == o.LastSeq && (m.Msgs != o.Msgs || m.FirstSeq != o.FirstSeq):
		return fmt.Sprintf("it holds %d values from %d on, the bucket %d from %d on", m.Msgs, m.FirstSeq, o.Msgs, o.FirstSeq), nil
	case m.NumDeleted > o.NumDeleted && wholeHistory:
		return fmt.Sprintf("it lacks %d values, the bucket %d", m.NumDeleted, o.NumDeleted), nil
	case m.LastSeq < o.LastSeq && !wholeHistory:
		// What it has may have been overwritten in the bucket since, so there is nothing to compare it with. It is small.
		return fmt.Sprintf("it is behind, and values of this bucket are overwritten: at %d, the bucket at %d", m.LastSeq, o.LastSeq), nil
	case m.Msgs == 0:
		return "", nil
	}
	return tailDifference(ctx, mirror, origin, m.LastSeq)
}

// tailDifference compares the value that both must have at the mirror's end.
func tailDifference(ctx context.Context, mirror, origin jetstream.Stream, sequence uint64) (string, error) {
	a, aerr := mirror.GetMsg(ctx, sequence)
	b, berr := origin.GetMsg(ctx, sequence)
	for _, err := range []error{aerr, berr} {
		if err != nil && !errors.Is(err, jetstream.ErrMsgNotFound) {
			return "", errors.Wrapf(err, "read value %d", sequence)
		}
	}
	switch {
	case aerr != nil && berr != nil:
		return "", nil
	case aerr != nil || berr != nil || !sameValue(a, b):
		return fmt.Sprintf("value %d is another in the bucket", sequence), nil
	}
	return "", nil
}

func sameValue(a, b *jetstream.RawStreamMsg) bool {
	return a.Subject == b.Subject && a.Time.Equal(b.Time) && bytes.Equal(a.Data, b.Data) &&
		reflect.DeepEqual(mirroredHeader(a.Header), mirroredHeader(b.Header))
}

// mirroredHeader is what a mirror keeps of a header: it drops what guarded the first append.
func mirroredHeader(h nats.Header) nats.Header {
	kept := nats.Header{}
	for k, v := range h {
		if !strings.HasPrefix(k, "Nats-Expected-") && !strings.HasPrefix(k, "Nats-Batch-") {
			kept[k] = v
		}
	}
	return kept
}

// essence is a stream's configuration without what the server fills in by itself.
func essence(c jetstream.StreamConfig) jetstream.StreamConfig {
	c.MaxConsumers = max(c.MaxConsumers, 0)
	c.MaxMsgs = max(c.MaxMsgs, 0)
	c.MaxMsgSize = max(c.MaxMsgSize, 0)
	c.Duplicates = 0
	c.Metadata = nil
	c.Placement = nil
	if len(c.Subjects) == 0 {
		c.Subjects = nil
	}
	return c
}

// reach polls until a mirror follows its origin and has reached a sequence. A mirror that has not heard of its origin yet says
// so by a negative time since then.
func (m *Mirrors) reach(ctx context.Context, bucket string, sequence uint64, poll time.Duration) error {
	tick := time.NewTicker(poll)
	defer tick.Stop()
	var had uint64
	since := time.Now()
	for {
		mirror, err := m.copies.Stream(ctx, topology.BucketStream(bucket))
		if err != nil {
			return errors.Wrapf(err, "mirror of bucket %s: catching up to %d", bucket, sequence)
		}
		info := mirror.CachedInfo()
		at, following := info.State.LastSeq, info.Mirror != nil && info.Mirror.Active >= 0
		switch {
		case following && at >= sequence:
			return nil
		case at > had:
			had, since = at, time.Now()
		case time.Since(since) > stallLimit:
			return errors.Wrapf(ErrStalled, "bucket %s: its mirror stays at %d of %d, following %v", bucket, at, sequence, following)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return errors.Wrapf(ctx.Err(), "mirror of bucket %s: at %d of %d, following %v", bucket, at, sequence, following)
		}
	}
}
