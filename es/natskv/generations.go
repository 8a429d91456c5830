package natskv

import (
	"context"
	"encoding/json"
	"strconv"
	"time"

	"github.com/cockroachdb/errors"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"catenary/es"
	"catenary/es/natsstore"
	"catenary/es/project"
	"catenary/internal/streams"
	"catenary/internal/topology"
)

// Copies keeps the copies of buckets that people read.
type Copies interface {
	// Follow makes sure that a bucket has a copy, and returns when that holds a revision.
	Follow(ctx context.Context, bucket string, revision uint64) error
	// Retire gives back the room that is kept for the copy of a bucket which takes nothing more.
	Retire(ctx context.Context, bucket string) error
	// Remove removes the copy of a bucket, if there is one.
	Remove(ctx context.Context, bucket string) error
}

// Generations are [project.Generations] over JetStream: a bucket for each generation, and the pointers in topology.BucketViews. They
// are safe for use by many goroutines.
type Generations struct {
	nc       *nats.Conn
	js       jetstream.JetStream
	options  topology.Options
	copies   Copies
	pointers *KeyValue
	marks    *KeyValue
}

var _ project.Generations = (*Generations)(nil)

// OpenGenerations makes or checks the bucket of pointers and that of marks and gives access to the generations, on a connection of the ledger's
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
	if err := Ensure(ctx, nc, topology.Marks(options)); err != nil {
		return nil, err
	}
	marks, err := OpenKeyValue(ctx, nc, topology.BucketMarks)
	if err != nil {
		return nil, err
	}
	return &Generations{nc: nc, js: js, options: options, copies: copies, pointers: pointers, marks: marks}, nil
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
		_, err := g.look(ctx, bucket)
		switch {
		case errors.Is(err, jetstream.ErrStreamNotFound):
			return project.Generation{Number: n, Bucket: bucket}, nil
		case err != nil:
			return project.Generation{}, err
		}
	}
	return project.Generation{}, errors.Mark(errors.WithHint(
		errors.Newf("view %s: all %d generations of its bucket are there, and none was left long enough ago to be removed", view, topology.MaxGenerations),
		"wait, or find out why so many are built; the pointer, "+view+" in "+topology.BucketViews+", has the reason of each"), es.ErrFull)
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

// reservedKey is where the marks say which view has the room for a new generation. No view has such a name.
const reservedKey = "/reserved"

// reservation says which generation of which view has the room. It is safe to lose: two that build at once may then lack room, and try
// again.
type reservation struct {
	View   string `json:"view"`
	Bucket string `json:"bucket"`
}

// Reserve gives the room for a new generation to a view. Who has it keeps it until its pointer names that generation as the next no more.
func (g *Generations) Reserve(ctx context.Context, view string, n project.Generation) error {
	want := reservation{View: view, Bucket: n.Bucket}
	value, err := json.Marshal(want)
	if err != nil {
		return errors.Wrapf(err, "room for bucket %s", n.Bucket)
	}
	for {
		have, revision, err := g.reserved(ctx)
		if err != nil || have == want {
			return err
		}
		if have.View != view && have.View != "" {
			p, err := g.Pointer(ctx, have.View)
			if err != nil {
				return err
			}
			if p.Next != nil && p.Next.Bucket == have.Bucket {
				return errors.Mark(errors.Newf("room for bucket %s: bucket %s is being built, and there is room for one new generation at a time", n.Bucket, have.Bucket), project.ErrNoRoom)
			}
		}
		err = g.marks.publish(ctx, reservedKey, value, nats.Header{jetstream.ExpectedLastSubjSeqHeader: {strconv.FormatUint(revision, 10)}})
		if !errors.Is(err, es.ErrConflict) {
			return err
		}
	}
}

func (g *Generations) reserved(ctx context.Context) (have reservation, revision uint64, err error) {
	m, err := g.marks.newest(ctx, g.marks.prefix+reservedKey)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return have, 0, nil
	}
	if err != nil {
		return have, 0, natsstore.ReadError(errors.Wrap(err, "room for a new generation"))
	}
	return have, m.Sequence, errors.Wrap(json.Unmarshal(m.Data, &have), "room for a new generation")
}

// List gives the generations of a view whose buckets are there.
func (g *Generations) List(ctx context.Context, view string) ([]project.Stored, error) {
	ctx, cancel := context.WithTimeout(ctx, prepareTimeout)
	defer cancel()
	there := map[string]bool{}
	names := g.js.StreamNames(ctx)
	for name := range names.Name() {
		there[name] = true
	}
	if err := names.Err(); err != nil {
		return nil, natsstore.ReadError(errors.Wrapf(err, "generations of view %s", view))
	}
	var all []project.Stored
	for n := 1; n <= topology.MaxGenerations; n++ {
		bucket := topology.Generation(view, n)
		if !there[topology.BucketStream(bucket)] {
			continue
		}
		info, err := g.look(ctx, bucket)
		switch {
		case errors.Is(err, jetstream.ErrStreamNotFound):
			continue
		case err != nil:
			return nil, err
		}
		s := project.Stored{Generation: project.Generation{Number: n, Bucket: bucket}, Values: info.State.LastSeq, Made: info.Created, Changed: info.Created}
		if info.State.LastTime.After(s.Changed) {
			s.Changed = info.State.LastTime
		}
		all = append(all, s)
	}
	return all, nil
}

// Remove removes a bucket and its copy. The copy goes first: one without its bucket would be nobody's.
func (g *Generations) Remove(ctx context.Context, s project.Stored) error {
	info, err := g.look(ctx, s.Bucket)
	switch {
	case errors.Is(err, jetstream.ErrStreamNotFound):
	case err != nil:
		return err
	case !info.Created.Equal(s.Made):
		return errors.Mark(errors.Newf("bucket %s was made anew at %s", s.Bucket, info.Created), es.ErrConflict)
	}
	if g.copies != nil {
		if err := g.copies.Remove(ctx, s.Bucket); err != nil {
			return natsstore.EnsureError(errors.Wrapf(err, "copy of bucket %s", s.Bucket))
		}
	}
	ctx, cancel := context.WithTimeout(ctx, prepareTimeout)
	defer cancel()
	err = streams.Insist(ctx, func(ctx context.Context) error { return g.js.DeleteStream(ctx, topology.BucketStream(s.Bucket)) })
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return nil
	}
	return natsstore.ReadError(errors.Wrapf(err, "remove bucket %s", s.Bucket))
}

func (g *Generations) look(ctx context.Context, bucket string) (*jetstream.StreamInfo, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	stream, err := g.js.Stream(ctx, topology.BucketStream(bucket))
	if err != nil {
		return nil, natsstore.ReadError(errors.Wrapf(err, "look for bucket %s", bucket))
	}
	return stream.CachedInfo(), nil
}

// Copied waits for the copy of a generation's bucket, where copies are kept.
func (g *Generations) Copied(ctx context.Context, n project.Generation, revision uint64) error {
	if g.copies == nil {
		return nil
	}
	err := natsstore.EnsureError(errors.Wrapf(g.copies.Follow(ctx, n.Bucket, revision), "copy of bucket %s", n.Bucket))
	if err != nil && !errors.Is(err, es.ErrFull) {
		err = errors.Mark(err, es.ErrUnavailable) // a copy that does not follow now may do so later
	}
	return err
}

// fencePause is for how long nothing may come into a bucket of several servers until it counts as closed: well above what they take to agree.
const fencePause = 250 * time.Millisecond

// Fence sets the limit of a generation's bucket to what it holds: the server then refuses every further value, and the room
// that was kept for it is free for others. It tells of nothing more either. [Generations.Serve] undoes both.
func (g *Generations) Fence(ctx context.Context, n project.Generation) error {
	ctx, cancel := context.WithTimeout(ctx, prepareTimeout)
	defer cancel()
	fail := func(err error) error {
		return natsstore.ReadError(errors.Wrapf(err, "keep more values from bucket %s", n.Bucket))
	}
	for last := uint64(0); ; {
		var stream jetstream.Stream
		err := streams.Insist(ctx, func(ctx context.Context) (err error) {
			stream, err = g.js.Stream(ctx, topology.BucketStream(n.Bucket))
			return err
		})
		if err != nil {
			return fail(err)
		}
		info := stream.CachedInfo()
		c := info.Config
		held := int64(max(info.State.Bytes, 1))
		if c.MaxBytes > 0 && c.MaxBytes <= held && c.RePublish == nil {
			if c.Replicas <= 1 || last == info.State.LastSeq {
				return nil
			}
			// What the leader had taken before the limit is on its way to the other servers, and comes yet.
			last = info.State.LastSeq
			select {
			case <-time.After(fencePause):
				continue
			case <-ctx.Done():
				return fail(ctx.Err())
			}
		}
		c.MaxBytes, c.RePublish = held, nil
		err = streams.Insist(ctx, func(ctx context.Context) error {
			_, err := g.js.UpdateStream(ctx, c)
			return err
		})
		if err != nil {
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
