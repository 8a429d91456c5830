package store

import (
	"context"
	"iter"
	"time"

	"github.com/cockroachdb/errors"

	"catenary/audit"
	"catenary/es"
	"catenary/projections"
)

const (
	// batchEvents bounds the events of one transaction: so many are written in a tenth of a second.
	batchEvents = 4000
	// buildEvents bounds them while a file is built. The index of words costs less the more are written at once, and so does a row that is
	// ended before it is written. They take some 300 bytes each until then.
	buildEvents = 50_000
	// ahead is how many events are read and made ready while others are written.
	ahead = 2000
)

// write is something to be written that is not an event.
type write struct {
	do func(ctx context.Context, w *writing) error
	// erases says that nothing of what stood before may be left in the file, nor in the journal beside it once no reader holds that.
	erases bool
	done   chan error
}

// messages gives the messages after a sequence, until its context ends at the latest.
type messages func(ctx context.Context, after uint64) iter.Seq2[es.Message, error]

// feed takes in messages until there are no more or one can't be taken in. What came before is in the file then. It gives a
// stopError, errors marked [es.ErrBrokenChain], one marked errOrdered when somebody has decided something about the store, and those of
// the stream and the file, also when a question has met them.
func (s *Store) feed(ctx context.Context, w *writing, from messages, linger time.Duration, building bool) error {
	ready, stop := s.makeReady(ctx, w.place.head, from)
	defer stop()
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	cleaning := time.NewTicker(cleanEvery)
	defer cleaning.Stop()
	// A transaction is never left half done because the process is told to end.
	writing := context.WithoutCancel(ctx)
	commit := func() error {
		if err := w.commit(writing); err != nil {
			return err
		}
		s.track.change(func(state *audit.StoreState) {
			state.Event, state.Building, state.Trouble = w.place.head.Sequence, building, ""
			if !building && w.altered {
				w.tellPolicy(state)
			}
		})
		w.altered = w.altered && building
		return nil
	}
	orders := projections.Orders().Instance(audit.StoreView)
	taken, most := 0, batchEvents
	damage := s.damage
	if building {
		most, damage = buildEvents, nil // questions are about another file
	}
	for {
		var due <-chan time.Time
		if taken > 0 && !building {
			due = timer.C
		}
		var clean <-chan time.Time
		if w.unclean {
			clean = cleaning.C
		}
		select {
		case next, more := <-ready:
			if more && next.failure == nil {
				if taken == 0 {
					timer.Reset(linger)
				}
				err := w.take(writing, next.incoming)
				ordered := next.event.Ref == orders && next.head.Sequence > w.control.Through
				if err == nil {
					if taken++; taken < most && !ordered {
						continue
					}
					err = commit()
				} else if !isFileError(err) {
					err = errors.CombineErrors(err, commit())
				}
				if err == nil && ordered {
					err = errOrdered
				}
				if err != nil {
					return err
				}
				taken = 0
				continue
			}
			return errors.CombineErrors(next.failure, commit())
		case err := <-damage:
			return err
		case <-due:
			if err := commit(); err != nil {
				return err
			}
			taken = 0
		case <-clean:
			if err := errors.CombineErrors(commit(), s.cleanJournal(writing, w)); err != nil {
				return err
			}
			taken = 0
		case asked := <-s.writes:
			err := w.begin(writing)
			if err == nil {
				err = asked.do(writing, w)
			}
			if err == nil {
				err = commit()
			}
			if err == nil && asked.erases {
				err = s.cleanJournal(writing, w)
			}
			asked.done <- err
			if err != nil {
				return err
			}
			taken = 0
		}
	}
}

// next is a message made ready, or why there is no next one.
type next struct {
	incoming
	failure error
}

// makeReady reads, verifies and decodes messages in a goroutine of its own, which ends before stop returns.
func (s *Store) makeReady(ctx context.Context, head es.Head, from messages) (ready <-chan next, stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	out, ended := make(chan next, ahead), make(chan struct{})
	send := func(n next) bool {
		select {
		case out <- n:
			return true
		case <-ctx.Done():
			return false
		}
	}
	go func() {
		defer close(ended)
		defer close(out)
		for m, err := range es.VerifyChain(&head, from(ctx, head.Sequence)) {
			var in incoming
			if err == nil {
				in = prepare(s.cfg.Registry, m, head)
			}
			if !send(next{incoming: in, failure: err}) || err != nil {
				return
			}
		}
	}()
	return out, func() {
		cancel()
		<-ended
	}
}
