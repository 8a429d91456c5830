package dispatch

import (
	"context"
	"sync"

	"github.com/cockroachdb/errors"

	"catenary/es"
)

// stretchMessages is how many messages are verified and decoded as one piece of work.
const stretchMessages = 256

// stretch is a piece of the stream on its way from the store into a model.
type stretch struct {
	after    es.Head // what it follows, as the message before it says of itself
	messages []es.Message

	ready  chan struct{} // closed when the rest is set
	events []es.Event
	head   es.Head
	err    error // why there are no more events
}

// replay folds all that stands after the head. Reading, checking and decoding go ahead of applying, in so many goroutines as
// there are workers; pace is called after each stretch. It gives errors marked [es.ErrBrokenChain], [es.ErrUnknownType], [es.ErrUndecodable] or
// [es.ErrMalformed], those of the store, and those of the model.
func (f *fold) replay(ctx context.Context, c Config, workers int, pace func() error) error {
	f.memory.forget(c.Now())
	ctx, cancel := context.WithCancel(ctx)
	var working sync.WaitGroup
	defer working.Wait()
	defer cancel()
	// Every stretch goes to both, first to be worked on: what is waited for in order is then sure to get ready.
	order, work := make(chan *stretch, 2*workers), make(chan *stretch, 2*workers)
	after := f.head
	working.Go(func() {
		defer close(order)
		defer close(work)
		readStretches(ctx, c.Store, after, order, work)
	})
	for range workers {
		working.Go(func() {
			for s := range work {
				s.decode(c.Registry)
			}
		})
	}
	for s := range order {
		<-s.ready
		if err := f.take(s); err != nil {
			return err
		}
		if err := pace(); err != nil {
			return errors.Wrap(err, "read the stream")
		}
	}
	return errors.Mark(errors.Wrap(ctx.Err(), "read the stream"), es.ErrUnavailable)
}

// readStretches cuts the stream into stretches.
func readStretches(ctx context.Context, store es.Store, after es.Head, order, work chan<- *stretch) {
	s := &stretch{after: after, ready: make(chan struct{})}
	send := func() bool {
		for _, to := range []chan<- *stretch{work, order} {
			select {
			case to <- s:
			case <-ctx.Done():
				return false
			}
		}
		s = &stretch{after: s.claims(), ready: make(chan struct{})}
		return true
	}
	for m, err := range store.Read(ctx, after.Sequence) {
		if err != nil {
			s.err = errors.Wrapf(err, "read the stream after event %d", s.claims().Sequence)
			break
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
func (s *stretch) claims() es.Head {
	if len(s.messages) == 0 {
		return s.after
	}
	last := s.messages[len(s.messages)-1]
	head := es.Head{Sequence: last.Sequence}
	if values := last.Header[es.HeaderHash]; len(values) > 0 {
		// A hash that can't be read is not the message's.
		head.Hash, _ = es.ParseHash(values[0])
	}
	return head
}

// decode checks the messages and makes events of them, up to the first that is wrong.
func (s *stretch) decode(registry *es.Registry) {
	defer close(s.ready)
	s.head = s.after
	s.events = make([]es.Event, 0, len(s.messages))
	for _, m := range s.messages {
		head, err := s.head.Verify(m)
		if err != nil {
			s.err = err
			return
		}
		e, err := registry.Decode(m)
		if err != nil {
			s.err = errors.Wrap(err, "the writer can't decide on a world it does not understand")
			return
		}
		s.head, s.events = head, append(s.events, e)
	}
}

// take folds a stretch.
func (f *fold) take(s *stretch) error {
	for _, e := range s.events {
		if err := f.model.Apply(e); err != nil {
			return errors.Wrapf(err, "apply event %d", e.Sequence)
		}
		f.memory.extend(e.Command.Ref, e.Command.ID, e.Sequence)
	}
	f.head = s.head
	return s.err
}
