package store

import (
	"context"
	"fmt"
	"io/fs"
	"os"

	"github.com/cockroachdb/errors"
	sqlite3 "modernc.org/sqlite/lib"

	"catenary/es"
	"catenary/es/project"
)

// takeUp gives the file to go on with: the one that is there, if it is of this program and of this stream, or else a new one that
// was built beside it and has taken its place. It gives a stopError for a file of another stream, and an error marked errPaused when one
// would have to be built for a store that is paused.
func (s *Store) takeUp(ctx context.Context, control *project.Control, anew bool) (*writing, error) {
	if !anew {
		w, err := s.open(ctx, control)
		if w != nil || err != nil && !isDamaged(err) {
			return w, err
		}
	}
	if control.Paused != nil {
		return nil, errors.Mark(errors.Newf("%s (event %d)", control.Paused.Reason, control.Paused.Order), errPaused)
	}
	if err := s.build(ctx, control); err != nil {
		return nil, err
	}
	return s.openLive(ctx, control)
}

// open takes up the file that is there; nil when there is none that this program can go on with.
func (s *Store) open(ctx context.Context, control *project.Control) (*writing, error) {
	// An empty file is nobody's: it is what a power loss leaves of one that was just put in its place.
	if info, err := os.Stat(s.cfg.Path); errors.Is(err, fs.ErrNotExist) || err == nil && info.Mode().IsRegular() && info.Size() == 0 {
		return nil, nil
	}
	same, err := s.ours(ctx)
	if err != nil || !same {
		return nil, err
	}
	w, err := s.openLive(ctx, control)
	if hasCode(err, func(code int) bool { return code == sqlite3.SQLITE_ERROR }) || errors.Is(err, errNowhere) {
		s.cfg.Logger.Warn("the audit store has not all that belongs into it and is built anew", "file", s.cfg.Path, "reason", err)
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if err := s.checkStream(ctx, w.place); err != nil {
		return nil, errors.CombineErrors(err, w.close())
	}
	readable, err := s.readable(ctx, w)
	if err != nil {
		return nil, errors.CombineErrors(err, w.close())
	}
	if readable || !w.honours(control) {
		s.cfg.Logger.Info("the audit store folds other events now and is built anew", "file", s.cfg.Path)
		return nil, w.close()
	}
	return w, nil
}

// ours says whether a file was written by this program, or one of the same schema.
func (s *Store) ours(ctx context.Context) (same bool, err error) {
	db, err := openFound(s.cfg.Path)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.CombineErrors(err, db.Close()) }()
	found, err := readMeta(ctx, db)
	if err != nil {
		if hasCode(err, func(code int) bool { return code != sqlite3.SQLITE_ERROR }) || ctx.Err() != nil {
			return false, err // it is damaged, or can't be read at the moment
		}
		// It has no such table: it is somebody else's file, and not ours to write over.
		return false, stopf("%s is no audit store: %v; give another path, or remove the file", s.cfg.Path, err)
	}
	if found[metaSchema] != schemaMark() {
		s.cfg.Logger.Info("the audit store is of another version of the program and is built anew", "file", s.cfg.Path)
		return false, nil
	}
	return true, nil
}

func (s *Store) openLive(ctx context.Context, control *project.Control) (*writing, error) {
	left, err := leftJournal(s.cfg.Path)
	if err != nil {
		return nil, err
	}
	db, err := openLive(s.cfg.Path)
	if err != nil {
		return nil, err
	}
	w, err := newWriting(ctx, db, control, false)
	if err == nil {
		w.unclean = left
	}
	return w, err
}

// checkStream makes sure that a file was made from this very stream. It gives a stopError when not: case A11.
func (s *Store) checkStream(ctx context.Context, at place) error {
	if at.head.Sequence == 0 {
		return nil
	}
	tail, err := s.cfg.Events.Tail(ctx)
	if err != nil {
		return err
	}
	if at.head.Sequence > tail {
		return &stopError{reason: &otherStream{at.head.Sequence, fmt.Sprintf(
			"the audit store %s has come to event %d, but the stream ends at event %d: it is an older copy, or has lost its end; restore the right stream, or remove the file to have it built anew",
			s.cfg.Path, at.head.Sequence, tail)}}
	}
	m, err := s.cfg.Events.Get(ctx, at.head.Sequence)
	if err != nil {
		return err
	}
	e, err := es.ReadEvent(m)
	if err != nil {
		return &stopError{at: at.head.Sequence, reason: err}
	}
	if e.Hash != at.head.Hash {
		return &stopError{reason: &otherStream{at.head.Sequence, fmt.Sprintf(
			"the audit store %s was made from another stream: its event %d has the hash %.16s…, the stream's %.16s…; restore the right stream, or remove the file to have it built anew",
			s.cfg.Path, at.head.Sequence, at.head.Hash, e.Hash)}}
	}
	return nil
}

// build makes a new file beside the one that is there, from the first event to the last, and then puts it in its place. Who asks
// meanwhile is answered from the one that is there, if there is one.
func (s *Store) build(ctx context.Context, control *project.Control) error {
	path := s.cfg.Path + buildSuffix
	if err := removeFile(path); err != nil {
		return err
	}
	if err := s.fill(ctx, path, control); err != nil {
		return errors.CombineErrors(err, removeFile(path))
	}
	// The old file's journal must not be taken for the new one's, and nobody may open the old one any more. Questions that are
	// being answered keep what they have open.
	s.retire()
	for _, suffix := range []string{"-wal", "-shm"} {
		if err := remove(s.cfg.Path + suffix); err != nil {
			return err
		}
	}
	if err := os.Rename(path, s.cfg.Path); err != nil {
		return errors.Wrap(err, "put the new audit store in its place")
	}
	s.cfg.Logger.Info("the audit store was built", "file", s.cfg.Path)
	return nil
}

// fill takes all events into a new file.
func (s *Store) fill(ctx context.Context, path string, control *project.Control) (err error) {
	// Others on the machine are none of those who may read it. What SQLite keeps beside a file has the file's mode.
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL, 0o600)
	if err == nil {
		err = file.Close()
	}
	if err != nil {
		return errors.Wrap(err, "make a new audit store")
	}
	db, err := openBuild(path)
	if err != nil {
		return err
	}
	w, err := newWriting(ctx, db, control, true)
	if err != nil {
		return err
	}
	defer func() { err = errors.CombineErrors(err, w.close()) }()
	for {
		tail, err := s.cfg.Events.Tail(ctx)
		if err != nil {
			return err
		}
		if w.place.head.Sequence >= tail {
			break
		}
		if err := s.feed(ctx, w, s.cfg.Events.Read, 0, true); err != nil {
			return err
		}
	}
	return finish(ctx, w.conn)
}

// removeFile removes a file with what SQLite keeps beside it.
func removeFile(path string) error {
	for _, suffix := range []string{"", "-journal", "-wal", "-shm"} {
		if err := remove(path + suffix); err != nil {
			return err
		}
	}
	return nil
}

func remove(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return errors.Wrap(err, "remove a file of the audit store")
	}
	return nil
}
