package chain

import (
	"context"
	"sync"
	"time"

	"github.com/cockroachdb/errors"

	"catenary/es"
	"catenary/es/project"
	"catenary/internal/topology"
)

// pointerAge is how long a reader relies on which generation of a bucket is read. One that was replaced stays as it was, so a reader
// is behind for no longer than that, and asks about once for many reads.
const pointerAge = 250 * time.Millisecond

// pointers remembers which generation of each view's bucket is read.
type pointers struct {
	clock func() time.Time
	mu    sync.Mutex
	read  map[string]pointed
}

type pointed struct {
	bucket   string
	revision uint64 // of the pointer
	until    time.Time
}

func (p *pointers) get(view string) (string, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	found := p.read[view]
	return found.bucket, p.clock().Before(found.until)
}

// put takes in which bucket is read by a revision of the pointer, and gives the one to read. Of two that asked at the same time the one that
// is answered last may have the older pointer: what another one has heard since then is gone by as long as it is relied upon.
func (p *pointers) put(view, bucket string, revision uint64) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.clock()
	if found := p.read[view]; revision < found.revision && now.Before(found.until) {
		return found.bucket
	}
	p.read[view] = pointed{bucket: bucket, revision: revision, until: now.Add(pointerAge)}
	return bucket
}

// Bucket gives the name of the generation of a view's bucket that is read now. The view's name is that of the first generation.
func (r *Reader) Bucket(ctx context.Context, view string) (string, error) {
	views, err := r.named(ctx, topology.BucketViews)
	if errors.Is(err, project.ErrNoBucket) {
		// A server that starts knows its streams one after another. To take the first generation for the one that is read would show
		// what was long replaced.
		return "", unpointed(view, err)
	}
	if err != nil {
		return "", err
	}
	e, err := views.Get(ctx, view)
	switch {
	case errors.Is(err, es.ErrNotFound):
		return r.pointers.put(view, view, 0), nil
	case err != nil:
		return "", errors.Wrapf(err, "which bucket of %s is read", view)
	}
	p, err := project.ParsePointer(view, e.Value, e.Revision)
	if err != nil {
		return "", errors.Wrapf(err, "which bucket of %s is read", view)
	}
	return r.pointers.put(view, p.Bucket, p.Revision), nil
}

// unpointed says that the bucket of pointers is not there, or not yet.
func unpointed(view string, err error) error {
	err = errors.Newf("which bucket of %s is read can't be told: %v", view, err)
	return errors.Mark(errors.WithHint(err, "the server may be starting; try again, and see that a projector has run on it"), es.ErrUnavailable)
}

// bucket opens the generation of a view's bucket that is read now.
func (r *Reader) bucket(ctx context.Context, view string) (Bucket, error) {
	name, fresh := r.pointers.get(view)
	if !fresh {
		var err error
		if name, err = r.Bucket(ctx, view); err != nil {
			return nil, err
		}
	}
	return r.named(ctx, name)
}

// named opens a bucket by its own name, once. Two that open it at the same time may both do so, which costs a request and does
// no harm.
func (r *Reader) named(ctx context.Context, name string) (Bucket, error) {
	r.mu.Lock()
	b, ok := r.buckets[name]
	r.mu.Unlock()
	if ok {
		return b, nil
	}
	b, err := r.open(ctx, name)
	if err != nil {
		return nil, errors.Wrapf(err, "open bucket %s", name)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.buckets[name] = b
	return b, nil
}
