package memstore

import (
	"bytes"
	"context"
	"iter"
	"slices"
	"sync"

	"github.com/cockroachdb/errors"

	"catenary/es"
)

// Config limits a store. The zero value gives the defaults.
type Config struct {
	// MaxMessageBytes bounds one message with its headers. Zero means 256 KiB, as the event stream has it.
	MaxMessageBytes int
	// MaxBytes bounds the whole store. Zero means 1 GiB: enough for a test, and short of a machine's memory.
	MaxBytes int64
}

// Store is an [es.Store] in memory, safe for use by many goroutines. Make it with [New].
type Store struct {
	config Config

	mu        sync.RWMutex
	head      es.Head
	messages  []es.Message
	bySubject map[string][]int // indexes into messages
	bytes     int64
	grown     chan struct{} // closed, and replaced, whenever messages are added
	closed    chan struct{}
}

// New returns an empty store.
func New(config Config) *Store {
	if config.MaxMessageBytes <= 0 {
		config.MaxMessageBytes = 256 << 10
	}
	if config.MaxBytes <= 0 {
		config.MaxBytes = 1 << 30
	}
	return &Store{config: config, bySubject: map[string][]int{}, grown: make(chan struct{}), closed: make(chan struct{})}
}

// Close makes the store unavailable: followers end and appends are refused.
func (s *Store) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.isClosed() {
		close(s.closed)
	}
}

// Append stores the messages at once. Pending gives errors marked as [es.Store] says, except [es.ErrUnclear].
func (s *Store) Append(ctx context.Context, after es.Head, batch []es.Message) es.Pending {
	p := es.NewPromise()
	p.Resolve(s.append(ctx, after, batch))
	return p
}

func (s *Store) append(ctx context.Context, after es.Head, batch []es.Message) error {
	end, err := es.CheckAppend(after, batch)
	if err != nil {
		return err
	}
	var size int64
	for _, m := range batch {
		if n := m.Size(); n > s.config.MaxMessageBytes {
			return errors.Mark(errors.Newf("append to %s: the event has %d bytes, the limit is %d", m.Subject, n, s.config.MaxMessageBytes), es.ErrTooLarge)
		}
		size += int64(m.Size())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.usable(ctx); err != nil {
		return errors.Wrap(err, "append")
	}
	if s.head != after {
		return errors.Mark(errors.Newf("append after event %d (%.16s…): the last event is %d (%.16s…)", after.Sequence, after.Hash, s.head.Sequence, s.head.Hash), es.ErrConflict)
	}
	if s.bytes+size > s.config.MaxBytes {
		return errors.Mark(errors.Newf("append of %d bytes: the store holds %d, the limit is %d", size, s.bytes, s.config.MaxBytes), es.ErrFull)
	}
	for i, m := range batch {
		m = clone(m)
		m.Sequence = after.Sequence + uint64(i) + 1
		s.bySubject[m.Subject] = append(s.bySubject[m.Subject], len(s.messages))
		s.messages = append(s.messages, m)
	}
	s.head = end
	s.bytes += size
	close(s.grown)
	s.grown = make(chan struct{})
	return nil
}

// Tail gives the stream's last sequence; errors are marked [es.ErrUnavailable].
func (s *Store) Tail(ctx context.Context) (uint64, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if err := s.usable(ctx); err != nil {
		return 0, errors.Wrap(err, "tail")
	}
	return s.tail(), nil
}

// Get gives the message at a sequence; errors are marked [es.ErrNotFound] or [es.ErrUnavailable].
func (s *Store) Get(ctx context.Context, sequence uint64) (es.Message, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if err := s.usable(ctx); err != nil {
		return es.Message{}, errors.Wrapf(err, "get event %d", sequence)
	}
	if sequence == 0 || sequence > s.tail() {
		return es.Message{}, errors.Mark(errors.Newf("event %d: the last event is %d", sequence, s.tail()), es.ErrNotFound)
	}
	return clone(s.messages[sequence-1]), nil
}

// Read gives all messages after a sequence, up to the tail when the reading starts; errors are marked
// [es.ErrUnavailable].
func (s *Store) Read(ctx context.Context, after uint64) iter.Seq2[es.Message, error] {
	return func(yield func(es.Message, error) bool) {
		messages, _, err := s.since(ctx, after)
		if err != nil {
			yield(es.Message{}, errors.Wrapf(err, "read after event %d", after))
			return
		}
		s.give(ctx, messages, yield)
	}
}

// ReadAggregate gives the messages of one aggregate instance, up to the tail when the reading starts; errors are marked
// [es.ErrUnavailable].
func (s *Store) ReadAggregate(ctx context.Context, ref es.Ref) iter.Seq2[es.Message, error] {
	return func(yield func(es.Message, error) bool) {
		s.mu.RLock()
		err := s.usable(ctx)
		var messages []es.Message
		for _, i := range s.bySubject[ref.Subject()] {
			messages = append(messages, s.messages[i])
		}
		s.mu.RUnlock()
		if err != nil {
			yield(es.Message{}, errors.Wrapf(err, "read %s", ref))
			return
		}
		s.give(ctx, messages, yield)
	}
}

// Follow gives all messages after a sequence and waits for new ones until the context ends. It ends with an error marked
// [es.ErrUnavailable] when the store is closed.
func (s *Store) Follow(ctx context.Context, after uint64) iter.Seq2[es.Message, error] {
	return func(yield func(es.Message, error) bool) {
		for {
			messages, grown, err := s.since(ctx, after)
			switch {
			case ctx.Err() != nil:
				return
			case err != nil:
				yield(es.Message{}, errors.Wrapf(err, "follow after event %d", after))
				return
			}
			for _, m := range messages {
				if ctx.Err() != nil || !yield(clone(m), nil) {
					return
				}
				after = m.Sequence
			}
			select {
			case <-grown:
			case <-s.closed:
			case <-ctx.Done():
			}
		}
	}
}

// since gives the stored messages after a sequence, which never change, and a signal for more.
func (s *Store) since(ctx context.Context, after uint64) ([]es.Message, <-chan struct{}, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if err := s.usable(ctx); err != nil {
		return nil, nil, err
	}
	return s.messages[min(after, s.tail()):], s.grown, nil
}

func (s *Store) give(ctx context.Context, messages []es.Message, yield func(es.Message, error) bool) {
	for _, m := range messages {
		if err := ctx.Err(); err != nil {
			yield(es.Message{}, errors.Mark(errors.Wrapf(err, "read of event %d", m.Sequence), es.ErrUnavailable))
			return
		}
		if !yield(clone(m), nil) {
			return
		}
	}
}

func (s *Store) tail() uint64 { return s.head.Sequence }

func (s *Store) isClosed() bool {
	select {
	case <-s.closed:
		return true
	default:
		return false
	}
}

func (s *Store) usable(ctx context.Context) error {
	if s.isClosed() {
		return errors.Mark(errors.New("the store is closed"), es.ErrUnavailable)
	}
	if err := ctx.Err(); err != nil {
		return errors.Mark(err, es.ErrUnavailable)
	}
	return nil
}

func clone(m es.Message) es.Message {
	header := make(map[string][]string, len(m.Header))
	for name, values := range m.Header {
		header[name] = slices.Clone(values)
	}
	m.Header, m.Body = header, bytes.Clone(m.Body)
	return m
}
