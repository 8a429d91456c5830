package store

import (
	"context"
	"io/fs"
	"os"
	"time"

	"github.com/cockroachdb/errors"

	"catenary/audit"
)

const (
	// cleanEvery is how often it is tried again to empty a journal that a reader holds on to. Questions end within seconds; another
	// program may read for as long as it likes.
	cleanEvery = time.Second
	// pragmaNoPatience and pragmaPatient bound the wait for readers: events are not taken in meanwhile.
	pragmaNoPatience = "PRAGMA busy_timeout(20)"
	pragmaPatient    = "PRAGMA " + pragmaPatience
)

// cleanJournal moves all that stands in the journal beside the file into it, and empties the journal. What a reader holds on to is left
// for the next try, and shows in the state until then. There MUST be no transaction.
func (s *Store) cleanJournal(ctx context.Context, w *writing) error {
	var err error
	if w.unclean, err = w.emptyJournal(ctx); err != nil {
		return err
	}
	if s.Status().Erasing != w.unclean {
		s.track.change(func(state *audit.StoreState) { state.Erasing = w.unclean })
		if w.unclean {
			s.cfg.Logger.Warn("what was erased still stands in the journal of the audit store, since a reader holds on to it; it goes when the reader is done", "file", s.cfg.Path+journalSuffix)
		} else {
			s.cfg.Logger.Info("what was erased stands in no file of the audit store any more", "file", s.cfg.Path)
		}
	}
	return nil
}

// emptyJournal moves all that stands in the journal into the file, and cuts it to nothing unless a reader holds on to it.
func (w *writing) emptyJournal(ctx context.Context) (held bool, err error) {
	var busy, frames, moved int
	_, err = w.conn.ExecContext(ctx, pragmaNoPatience)
	if err == nil {
		err = w.conn.QueryRowContext(ctx, "PRAGMA wal_checkpoint(TRUNCATE)").Scan(&busy, &frames, &moved)
	}
	if err == nil {
		_, err = w.conn.ExecContext(ctx, pragmaPatient)
	}
	return busy != 0, errors.Wrap(err, "empty the journal of the audit store")
}

// journalSuffix is the name of the journal, after that of its file.
const journalSuffix = "-wal"

// leftJournal says whether a run before has left a journal beside a file, which may hold what was erased.
func leftJournal(path string) (bool, error) {
	info, err := os.Stat(path + journalSuffix)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil && info.Size() > 0, errors.Wrap(err, "journal of the audit store")
}
