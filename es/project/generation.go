package project

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/cockroachdb/errors"
)

// Generation is one of the buckets that a view has had. Nothing is ever taken out of a bucket, so one that is damaged, or
// whose values have another form than the view gives them now, is followed by a new one.
type Generation struct {
	// Number counts from 1.
	Number int `json:"generation"`
	// Bucket is the name of the generation's bucket.
	Bucket string `json:"bucket"`
	// Reason says why it was made; empty for the first.
	Reason string `json:"reason,omitempty"`
	// Since is when readers were sent to it, Until when they were sent to the next one.
	Since time.Time `json:"since,omitzero"`
	Until time.Time `json:"until,omitzero"`
	// Removed is when its bucket was removed.
	Removed time.Time `json:"removed,omitzero"`
}

// Pointer says which generation of a view's bucket is read. It is what stands under the view's name in the bucket of
// pointers.
type Pointer struct {
	Generation
	// Next is being built. Whoever finds it goes on with it.
	Next *Generation `json:"next,omitempty"`
	// Former are the generations that were read before, oldest first. Those that were not removed can still be read, and nothing is added
	// to them.
	Former []Generation `json:"former,omitempty"`
	// Revision guards a change: it fails when somebody else has changed the pointer meanwhile. It is no part of the value.
	Revision uint64 `json:"-"`
}

// Stored is a generation whose bucket is there.
type Stored struct {
	Generation
	// Values is the revision of its newest value.
	Values uint64
	// Made is when the bucket was made: one of the same name may follow on it. Changed is when it was, or last got a value.
	Made, Changed time.Time
}

// FirstPointer is the pointer of a view that has never had but one bucket, which has the view's own name.
func FirstPointer(view string) Pointer {
	return Pointer{Generation: Generation{Number: 1, Bucket: view}}
}

// ParsePointer reads a pointer as it stands in the bucket of pointers at a revision.
func ParsePointer(view string, value []byte, revision uint64) (Pointer, error) {
	p := Pointer{Revision: revision}
	if err := json.Unmarshal(value, &p); err != nil {
		return p, errors.Wrapf(err, "pointer of view %s", view)
	}
	if p.Bucket == "" || p.Number < 1 || p.Next != nil && p.Next.Bucket == "" {
		return p, errors.Newf("pointer of view %s names no bucket: %.100s", view, value)
	}
	return p, nil
}

// begin gives the pointer with the next generation on its way.
func (p Pointer) begin(next Generation) Pointer {
	p.Next = &next
	return p
}

// advance gives the pointer that sends readers to the next generation.
func (p Pointer) advance(now time.Time) Pointer {
	former, next := p.Generation, *p.Next
	former.Until, next.Since = now.UTC(), now.UTC()
	// A number comes again when its bucket was removed.
	kept := slices.DeleteFunc(slices.Clone(p.Former), func(g Generation) bool { return g.Bucket == next.Bucket })
	return Pointer{Generation: next, Former: append(kept, former), Revision: p.Revision}
}

// Generations keeps the generations of every view's bucket, and the pointers to those that are read. All its methods give
// errors marked [es.ErrUnavailable] when the buckets can't be reached.
type Generations interface {
	// Pointer gives a view's pointer: to the first generation, if it was never changed.
	Pointer(ctx context.Context, view string) (Pointer, error)
	// Point changes a view's pointer. It gives errors marked [es.ErrConflict] when it was changed since p was read.
	Point(ctx context.Context, view string, p Pointer) error
	// Follow gives the generation that may follow on the present one, with a bucket's name that is not in use. It gives errors marked
	// [es.ErrFull] when there is none left.
	Follow(ctx context.Context, view string, p Pointer) (Generation, error)
	// Open gives access to the bucket of a generation that is being built, and makes the bucket when it is not there. It gives errors
	// marked [es.ErrFull] when there is no room for it.
	Open(ctx context.Context, g Generation) (Bucket, error)
	// Serve does the same for the generation that is read. Whatever is put into it from then on is told to whom it concerns, so it
	// MUST be called before anything is put there after a switch, and for no generation that readers are not sent to.
	Serve(ctx context.Context, g Generation) (Bucket, error)
	// Reserve gives the room for a new generation to one that the view's pointer names as the next. It gives errors marked [ErrNoRoom]
	// while that of another view has it and is still being built, whichever projector does so.
	Reserve(ctx context.Context, view string, g Generation) error
	// List gives the generations of a view whose buckets are there, by number.
	List(ctx context.Context, view string) ([]Stored, error)
	// Remove removes the bucket of a generation that nobody reads, and its copies, if it is the very bucket that was listed.
	Remove(ctx context.Context, s Stored) error
	// Copied returns when the copies of a generation's bucket that people read have the revision.
	Copied(ctx context.Context, g Generation, revision uint64) error
	// Fence lets a generation's bucket take nothing more, from whomever. Serving it again undoes that.
	Fence(ctx context.Context, g Generation) error
	// Retire gives back the room that is kept for a generation which is read no more. It stays readable.
	Retire(ctx context.Context, g Generation) error
}

// locate makes the view's bucket the one that is read. It says whether that is another one than before.
func (w *worker) locate(ctx context.Context) (moved bool, err error) {
	if w.cfg.Generations == nil {
		return false, nil
	}
	p, err := w.cfg.Generations.Pointer(ctx, w.name)
	if err != nil {
		return false, errors.Wrapf(err, "pointer of view %s", w.name)
	}
	w.unfinished = p.Next
	if w.bucket != nil && p.Bucket == w.generation.Bucket {
		return false, nil
	}
	bucket, err := w.cfg.Generations.Serve(ctx, p.Generation)
	if err != nil {
		return false, errors.Wrapf(err, "generation %d of view %s", p.Number, w.name)
	}
	moved = w.bucket != nil
	w.move(bucket, p.Generation)
	return moved, nil
}

// move makes a generation the view's. Its goroutine alone does so, and may look without the lock.
func (w *worker) move(bucket Bucket, g Generation) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.bucket, w.generation = bucket, g
	w.track.moved(g)
}

// present gives the view's bucket to others than its goroutine; nil before it was found.
func (w *worker) present() (Bucket, Generation) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.bucket, w.generation
}
