package store

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/cockroachdb/errors"

	"catenary/es"
	"catenary/es/project"
	"catenary/events"
)

// lossLook is how often a stream that lacks what the file has seen is asked whether somebody has accepted the loss.
const lossLook = time.Second

// awaitAcceptance waits until the stream says that somebody has accepted the loss of an event, or the context ends.
func (s *Store) awaitAcceptance(ctx context.Context, seen uint64) error {
	for {
		accepted, err := s.accepted(ctx, seen)
		if err != nil && !errors.Is(err, es.ErrUnavailable) {
			return err
		}
		if accepted {
			return nil
		}
		select {
		case <-time.After(lossLook):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// accepted says whether the stream has gone on, with somebody's word, from before an event.
func (s *Store) accepted(ctx context.Context, seen uint64) (bool, error) {
	for m, err := range s.cfg.Events.ReadAggregate(ctx, es.Ref{Aggregate: events.AggregateWriter, Key: events.WriterKey}) {
		if err != nil {
			return false, err
		}
		e, err := s.cfg.Registry.Decode(m)
		if err != nil {
			return false, errors.Wrap(err, "look for a loss that was accepted")
		}
		if loss, ok := e.Data.(events.WriterLossAccepted); ok && loss.Found < seen {
			return true, nil
		}
	}
	return false, nil
}

// putAside keeps a file that has seen what is lost under another name: it is the only one that still tells of it. It keeps no names of
// people, since nothing follows the actor directory there any more. The error says why a new one is to be built.
func (s *Store) putAside(ctx context.Context, seen uint64) error {
	s.retire()
	if err := forgetNames(ctx, s.cfg.Path); err != nil {
		return err
	}
	aside := fmt.Sprintf("%s.before-loss-%d", s.cfg.Path, seen)
	for _, suffix := range []string{"-wal", "-shm", ""} {
		if err := os.Rename(s.cfg.Path+suffix, aside+suffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return errors.Wrap(err, "put the audit store of before the loss aside")
		}
	}
	return errors.Newf("events are lost, and somebody has accepted it: it is built anew, and %s is the file of before", aside)
}

// forgetNames takes all names of people out of a file that nobody writes, and out of the journal beside it.
func forgetNames(ctx context.Context, path string) (err error) {
	db, err := openLive(path)
	if err != nil {
		return err
	}
	w, err := newWriting(ctx, db, &project.Control{}, false)
	if err != nil {
		return err
	}
	defer func() { err = errors.CombineErrors(err, w.close()) }()
	if err := w.eraseActors(ctx); err != nil {
		return errors.Wrap(err, "take the names out of the audit store of before the loss")
	}
	held, err := w.emptyJournal(ctx)
	if err == nil && held {
		err = errors.New("the journal of the audit store of before the loss can't be emptied: somebody reads it; it is tried again")
	}
	return err
}
