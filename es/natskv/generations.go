package natskv

import (
	"context"
	"encoding/json"
	"strconv"

	"github.com/cockroachdb/errors"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"catenary/es/natsstore"
	"catenary/es/project"
	"catenary/internal/topology"
)

// Copies keeps the copies of buckets that people read.
type Copies interface {
	// Follow makes sure that a bucket has a copy, and returns when that holds a revision.
	Follow(ctx context.Context, bucket string, revision uint64) error
	// Retire gives back the room that is kept for the copy of a bucket which takes nothing more.
	Retire(ctx context.Context, bucket string) error
}

// Generations are [project.Generations] over JetStream: a bucket for each generation, and the pointers in topology.BucketViews. They
// are safe for use by many goroutines.
type Generations struct {
	nc       *nats.Conn
	js       jetstream.JetStream
	options  topology.Options
	copies   Copies
	pointers *KeyValue
}

var _ project.Generations = (*Generations)(nil)

// OpenGenerations makes or checks the bucket of pointers and gives access to the generations, on a connection of the ledger's
// account. Copies is nil where nobody keeps any. It gives the errors of [Ensure].
func OpenGenerations(ctx context.Context, nc *nats.Conn, options topology.Options, copies Copies) (*Generations, error) {
	js, err := jetstream.New(nc)
	if err != nil {
		return nil, errors.Wrap(err, "generations")
	}
	if err := Ensure(ctx, nc, topology.Views(options)); err != nil {
		return nil, err
	}
	pointers, err := OpenKeyValue(ctx, nc, topology.BucketViews)
	if err != nil {
		return nil, err
	}
	return &Generations{nc: nc, js: js, options: options, copies: copies, pointers: pointers}, nil
}

// Pointer gives a view's pointer.
func (g *Generations) Pointer(ctx context.Context, view string) (project.Pointer, error) {
	if err := g.pointers.checkKey(view); err != nil {
		return project.Pointer{}, err
	}
	m, err := g.pointers.newest(ctx, g.pointers.prefix+view)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return project.FirstPointer(view), nil
	}
	if err != nil {
		return project.Pointer{}, natsstore.ReadError(errors.Wrapf(err, "bucket %s: key %s", topology.BucketViews, view))
	}
	return project.ParsePointer(view, m.Data, m.Sequence)
}

// Point changes a view's pointer, guarded by the revision it was read at.
func (g *Generations) Point(ctx context.Context, view string, p project.Pointer) error {
	value, err := json.Marshal(p)
	if err != nil {
		return errors.Wrapf(err, "pointer of view %s", view)
	}
	return g.pointers.publish(ctx, view, value, nats.Header{jetstream.ExpectedLastSubjSeqHeader: {strconv.FormatUint(p.Revision, 10)}})
}

// Follow gives the next number that no bucket has. Numbers come again when their buckets were removed.
func (g *Generations) Follow(ctx context.Context, view string, p project.Pointer) (project.Generation, error) {
	for step := 1; step < topology.MaxGenerations; step++ {
		n := (p.Number-1+step)%topology.MaxGenerations + 1
		bucket := topology.Generation(view, n)
		ctx, cancel := context.WithTimeout(ctx, requestTimeout)
		_, err := g.js.Stream(ctx, topology.BucketStream(bucket))
		cancel()
		switch {
		case errors.Is(err, jetstream.ErrStreamNotFound):
			return project.Generation{Number: n, Bucket: bucket}, nil
		case err != nil:
			return project.Generation{}, natsstore.ReadError(errors.Wrapf(err, "look for bucket %s", bucket))
		}
	}
	return project.Generation{}, errors.WithHint(
		errors.Newf("view %s: all %d generations of its bucket are there", view, topology.MaxGenerations),
		"remove those that nobody reads any more; the pointer, "+view+" in "+topology.BucketViews+", names the one that is read")
}

// Open makes or checks the bucket of a generation that is being built, lets it take values, and gives access to it.
func (g *Generations) Open(ctx context.Context, n project.Generation) (project.Bucket, error) {
	if err := Ensure(ctx, g.nc, topology.Bucket(n.Bucket, g.options)); err != nil {
		return nil, err
	}
	return Open(ctx, g.nc, n.Bucket)
}

// Serve makes or checks the bucket of the generation that is read, lets it take values and tell of them, and gives access to it.
func (g *Generations) Serve(ctx context.Context, n project.Generation) (project.Bucket, error) {
	c := topology.Bucket(n.Bucket, g.options)
	c.RePublish = topology.Republish(n.Bucket)
	if err := Ensure(ctx, g.nc, c); err != nil {
		return nil, err
	}
	return Open(ctx, g.nc, n.Bucket)
}

// Copied waits for the copy of a generation's bucket, where copies are kept.
func (g *Generations) Copied(ctx context.Context, n project.Generation, revision uint64) error {
	if g.copies == nil {
		return nil
	}
	return errors.Wrapf(g.copies.Follow(ctx, n.Bucket, revision), "copy of bucket %s", n.Bucket)
}

// Fence sets the limit of a generation's bucket to what it holds: the server then refuses every further value, and the room
// that was kept for it is free for others. It tells of nothing more either. [Generations.Serve] undoes both.
func (g *Generations) Fence(ctx context.Context, n project.Generation) error {
	ctx, cancel := context.WithTimeout(ctx, prepareTimeout)
	defer cancel()
	fail := func(err error) error {
		return natsstore.ReadError(errors.Wrapf(err, "keep more values from bucket %s", n.Bucket))
	}
	for {
		stream, err := g.js.Stream(ctx, topology.BucketStream(n.Bucket))
		if err != nil {
			return fail(err)
		}
		info := stream.CachedInfo()
		c := info.Config
		held := int64(max(info.State.Bytes, 1))
		if c.MaxBytes > 0 && c.MaxBytes <= held && c.RePublish == nil {
			return nil
		}
		c.MaxBytes, c.RePublish = held, nil
		if _, err := g.js.UpdateStream(ctx, c); err != nil {
			return fail(err)
		}
		// A value may have come between the look and the change; with a limit below what it holds a bucket takes nothing either.
	}
}

// Retire gives back the room of the copy. That of the bucket itself went with its fence.
func (g *Generations) Retire(ctx context.Context, n project.Generation) error {
	if g.copies == nil {
		return nil
	}
	return errors.Wrapf(g.copies.Retire(ctx, n.Bucket), "copy of bucket %s", n.Bucket)
}
