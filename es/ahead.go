package es

import (
	"context"
	"iter"
	"sync"

	"github.com/cockroachdb/errors"
)

// stretchMessages is how many messages are verified and decoded as one piece of work: handing it over costs little beside them then.
const stretchMessages = 256

// Verified is an event that follows directly what was read before it, unchanged.
type Verified struct {
	// Head is the end of the chain with this event.
	Head  Head
	Event Event
	// Err says why the event can't be read. It is what [Registry.Decode] gives, and so is the event beside it.
	Err error
}

// Ahead gives the events after a head up to the store's tail, verified. Reading, verifying and decoding go ahead of who takes them, in
// so many goroutines as there are workers and one more; none of them is left when the sequence has ended. It ends with the first error:
// one marked [ErrBrokenChain] at a hole, a change or a swap, or one of the store.
func Ahead(ctx context.Context, registry *Registry, store Store, after Head, workers int) iter.Seq2[Verified, error] {
	return func(yield func(Verified, error) bool) {
		reading, cancel := context.WithCancel(ctx)
		var working sync.WaitGroup
		defer working.Wait()
		defer cancel()
		// Every stretch goes to both, first to be worked on: what is waited for in order is then sure to get ready.
		order, work := make(chan *stretch, 2*workers), make(chan *stretch, 2*workers)
		working.Go(func() {
			defer close(order)
			defer close(work)
			readStretches(reading, store, after, order, work)
		})
		for range workers {
			working.Go(func() {
				for s := range work {
					s.work(registry)
				}
			})
		}
		for s := range order {
			<-s.ready
			for i := range s.events {
				if !yield(s.events[i], nil) {
					return
				}
			}
			if s.err != nil {
				yield(Verified{}, s.err)
				return
			}
		}
		if ctx.Err() != nil {
			yield(Verified{}, errors.Mark(errors.Wrap(context.Cause(ctx), "read the stream"), ErrUnavailable))
		}
	}
}

// stretch is a piece of the stream on its way.
type stretch struct {
	after    Head // what it follows, as the message before it says of itself
	messages []Message

	ready  chan struct{} // closed when the rest is set
	events []Verified
	err    error // why there are no more events
}

// readStretches cuts the stream into stretches.
func readStretches(ctx context.Context, store Store, after Head, order, work chan<- *stretch) {
	s := &stretch{after: after, ready: make(chan struct{})}
	send := func() bool {
		following := &stretch{after: s.claims(), ready: make(chan struct{})} // before others have it
		for _, to := range []chan<- *stretch{work, order} {
			select {
			case to <- s:
			case <-ctx.Done():
				return false
			}
		}
		s = following
		return true
	}
	for m, err := range store.Read(ctx, after.Sequence) {
		if err != nil {
			s.err = err
			break
		}
		if s.messages == nil {
			s.messages = make([]Message, 0, stretchMessages)
		}
		if s.messages = append(s.messages, m); len(s.messages) == stretchMessages && !send() {
			return
		}
	}
	if len(s.messages) > 0 || s.err != nil {
		send()
	}
}

// claims gives the head that a stretch ends with, as its last message says. That message is checked against it, so that a
// false claim is found there.
func (s *stretch) claims() Head {
	if len(s.messages) == 0 {
		return s.after
	}
	last := s.messages[len(s.messages)-1]
	// A hash that can't be read is not the message's.
	hash, _ := last.Hash()
	return Head{Sequence: last.Sequence, Hash: hash}
}

// work verifies the messages and makes events of them, up to the first that does not follow.
func (s *stretch) work(registry *Registry) {
	defer close(s.ready)
	head := s.after
	s.events = make([]Verified, 0, len(s.messages))
	for _, m := range s.messages {
		next, err := head.Verify(m)
		if err != nil {
			s.err = err
			break
		}
		head = next
		e, err := registry.Decode(m)
		s.events = append(s.events, Verified{Head: head, Event: e, Err: err})
	}
	s.messages = nil
}
