package natskv

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/cockroachdb/errors"
	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/errgroup"

	"catenary/es/natsstore"
	"catenary/internal/streams"
)

const (
	// pageGets is how many values of a page are asked for at once: enough to cover the way to the server and back.
	pageGets = 16
	// mostChanges bounds what is read to bring the keys up to date. Beyond it, all keys are listed again, which takes as long.
	mostChanges = 50_000
)

// Page gives the newest values of the first keys after a key, in the order of the keys: at most limit of them, fewer only
// at the end. A filter is as for [Bucket.Entries]; the empty one matches every key.
//
// The server keeps no order of keys. So the first page lists the names of all keys, without their values, and the bucket remembers
// them; after that a page costs its own values and the headers of what was written meanwhile. The names under a filter
// are listed for each page. Errors are as for [Bucket.Get].
func (b *Bucket) Page(ctx context.Context, filter, afterKey string, limit int) ([]Entry, error) {
	if limit <= 0 {
		return nil, errors.AssertionFailedf("bucket %s: a page of %d keys", b.bucket, limit)
	}
	keys, err := b.keysAfter(ctx, filter, afterKey, limit)
	if err != nil {
		return nil, errors.Wrapf(err, "page after key %q", afterKey)
	}
	entries := make([]Entry, len(keys))
	group, live := errgroup.WithContext(ctx)
	group.SetLimit(pageGets)
	for i, key := range keys {
		group.Go(func() error {
			var err error
			entries[i], err = b.one(live, b.prefix+key, "key "+key)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, errors.Wrapf(err, "page after key %q", afterKey)
	}
	return entries, nil
}

// keysAfter gives the first keys after a key.
func (b *Bucket) keysAfter(ctx context.Context, filter, afterKey string, limit int) ([]string, error) {
	var keys []string
	switch filter {
	case "", ">":
		b.keys.mu.Lock()
		defer b.keys.mu.Unlock()
		if err := b.keys.update(ctx, b); err != nil {
			return nil, err
		}
		keys = b.keys.sorted
	default:
		if err := b.checkFilter(filter); err != nil {
			return nil, err
		}
		var err error
		if keys, _, err = b.listKeys(ctx, filter); err != nil {
			return nil, err
		}
	}
	from, found := slices.BinarySearch(keys, afterKey)
	if found {
		from++
	}
	return slices.Clone(keys[from:min(from+limit, len(keys))]), nil
}

// listKeys gives the names of all keys that a filter matches, in order, and a revision up to which they are complete.
func (s *source) listKeys(ctx context.Context, filter string) ([]string, uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, prepareTimeout)
	defer cancel()
	// Asked before, so that what is written meanwhile counts as not listed.
	var info *jetstream.StreamInfo
	ask := func(options ...jetstream.StreamInfoOpt) error {
		return streams.Insist(ctx, func(ctx context.Context) (err error) {
			info, err = s.handle.Info(ctx, options...)
			return err
		})
	}
	err := ask()
	if err != nil {
		return nil, 0, natsstore.ReadError(errors.Wrapf(err, "list the keys of bucket %s", s.bucket))
	}
	through := info.State.LastSeq
	if err := ask(jetstream.WithSubjectFilter(s.prefix + filter)); err != nil {
		return nil, 0, natsstore.ReadError(errors.Wrapf(err, "list the keys of bucket %s", s.bucket))
	}
	keys := make([]string, 0, len(info.State.Subjects))
	for subject := range info.State.Subjects {
		keys = append(keys, strings.TrimPrefix(subject, s.prefix))
	}
	slices.Sort(keys)
	return keys, through, nil
}

// keyNames are the names of a bucket's keys, in order, as far as they were read. No key is ever removed.
type keyNames struct {
	mu      sync.Mutex
	sorted  []string
	through uint64 // the revision up to which they are complete
}

// update takes in the keys that have come since the last time. The lock is held.
func (k *keyNames) update(ctx context.Context, b *Bucket) error {
	state, err := b.State(ctx)
	switch {
	case err != nil:
		return err
	case state.Last == k.through:
		return nil
	case k.through == 0 || state.Last < k.through || state.Last-k.through > mostChanges:
		// At first, after a copy was made anew, and after much was written.
		keys, through, err := b.listKeys(ctx, ">")
		if err != nil {
			return err
		}
		k.sorted, k.through = keys, through
		return nil
	}
	came, through := map[string]struct{}{}, k.through
	for m, err := range b.read(ctx, query{after: k.through, bare: true}) {
		if err != nil {
			return err
		}
		key := strings.TrimPrefix(m.subject, b.prefix)
		if _, known := slices.BinarySearch(k.sorted, key); !known {
			came[key] = struct{}{}
		}
		through = m.sequence
	}
	if len(came) > 0 {
		k.sorted = append(slices.Clone(k.sorted), slices.Collect(maps.Keys(came))...)
		slices.Sort(k.sorted)
	}
	k.through = through
	return nil
}
