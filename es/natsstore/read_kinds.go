package natsstore

import (
	"context"
	"iter"

	"catenary/es"
)

// ReadKinds gives the messages of some kinds of aggregates after a sequence, up to a last one, which is known to be stored, in order; errors are marked
// [es.ErrUnavailable]. Of the others none is sent. Each kind has a reader of its own: the server finds what passes one filter as fast as it
// sends it, and what passes several of them a hundred times slower.
func (s *Store) ReadKinds(ctx context.Context, after, last uint64, kinds ...string) iter.Seq2[es.Message, error] {
	return func(yield func(es.Message, error) bool) {
		var open []*kindReader
		defer func() {
			for _, k := range open {
				k.stop()
			}
		}()
		for _, kind := range kinds {
			k, err := s.readKind(ctx, kind, after, last)
			if err != nil {
				yield(es.Message{}, err)
				return
			}
			open = append(open, k)
		}
		for {
			first := earliest(open)
			if first == nil {
				return
			}
			if !yield(first.message, first.err) || first.err != nil {
				return
			}
			first.advance()
		}
	}
}

// kindReader gives the messages of one kind, and holds the one that is next.
type kindReader struct {
	next    func() (es.Message, error, bool)
	stop    func()
	message es.Message
	err     error
	more    bool
}

func (k *kindReader) advance() { k.message, k.err, k.more = k.next() }

// readKind begins to read one kind.
func (s *Store) readKind(ctx context.Context, kind string, after, last uint64) (*kindReader, error) {
	subject := es.SubjectPrefix + "." + kind + ".>"
	newest, err := s.newest(ctx, subject)
	if err != nil {
		return nil, err
	}
	k := &kindReader{}
	k.next, k.stop = iter.Pull2(func(yield func(es.Message, error) bool) {
		// What is newer than the last one is there to end the reading: nobody has to wait for more to come.
		for m, err := range s.between(ctx, subject, after, newest) {
			if err == nil && m.Sequence > last || !yield(m, err) {
				return
			}
		}
	})
	k.advance()
	return k, nil
}

// between gives the messages of a subject after a sequence up to and with a last one.
func (s *Store) between(ctx context.Context, subject string, after, last uint64) iter.Seq2[es.Message, error] {
	return func(yield func(es.Message, error) bool) { s.readUntil(ctx, subject, after, last, yield) }
}

// earliest gives the reader whose message is next; one that has failed before all others, and nil when none has more.
func earliest(readers []*kindReader) *kindReader {
	var first *kindReader
	for _, k := range readers {
		switch {
		case !k.more:
		case k.err != nil:
			return k
		case first == nil || k.message.Sequence < first.message.Sequence:
			first = k
		}
	}
	return first
}
