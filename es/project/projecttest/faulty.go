package projecttest

import (
	"context"
	"sync"

	"github.com/cockroachdb/errors"

	"catenary/es"
	"catenary/es/project"
)

// Fault is what becomes of a put.
type Fault int

// The faults of a put.
const (
	// FaultNone stores and answers.
	FaultNone Fault = iota
	// FaultLostBefore does not store it, and the answer never comes.
	FaultLostBefore
	// FaultLostAfter stores it, and the answer never comes.
	FaultLostAfter
	// FaultFull refuses it: the bucket is full.
	FaultFull
)

// Faulty is a bucket that fails as a script says.
type Faulty struct {
	project.Bucket
	// Script says what becomes of the n-th put, from 1. It is called in the order of the puts.
	Script func(n int) Fault
	// Group is how many values it takes at once. Zero means that it takes each by itself.
	Group int

	mu   sync.Mutex
	puts int
}

// Put hands the value on, or does with it what the script says.
func (f *Faulty) Put(ctx context.Context, after uint64, key string, value []byte, meta project.Meta) es.Pending {
	f.mu.Lock()
	f.puts++
	fault := f.Script(f.puts)
	f.mu.Unlock()
	answer := es.NewPromise()
	switch fault {
	case FaultLostAfter:
		// What was sent is stored, also when who sent it is dead by then.
		ctx = context.WithoutCancel(ctx)
		if err := es.Wait(ctx, f.Bucket.Put(ctx, after, key, value, meta)); err != nil {
			answer.Resolve(err)
			return answer
		}
		answer.Resolve(errors.Mark(errors.New("the answer was lost"), es.ErrUnclear))
	case FaultLostBefore:
		answer.Resolve(errors.Mark(errors.New("the value was lost"), es.ErrUnclear))
	case FaultFull:
		answer.Resolve(errors.Mark(errors.New("the bucket has reached its limit"), es.ErrFull))
	case FaultNone:
		return f.Bucket.Put(ctx, after, key, value, meta)
	}
	return answer
}

// MaxGroup is how many values it takes at once.
func (f *Faulty) MaxGroup() int { return max(f.Group, 1) }

// PutAll does with each of the values what the script says of it, up to the first that is not stored or whose answer is lost.
func (f *Faulty) PutAll(ctx context.Context, after uint64, values []project.Placed) es.Pending {
	answer := es.NewPromise()
	for i, v := range values {
		if err := es.Wait(context.WithoutCancel(ctx), f.Put(ctx, after+uint64(i), v.Key, v.Data, v.Meta)); err != nil {
			answer.Resolve(err)
			return answer
		}
	}
	answer.Resolve(nil)
	return answer
}

// Puts counts the puts so far, each value of a group by itself.
func (f *Faulty) Puts() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.puts
}
