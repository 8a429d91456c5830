package store

import (
	"context"
	"database/sql/driver"
	"hash/maphash"

	"github.com/cockroachdb/errors"
)

// turn says what a fact changed of what a node is told: reports count turns. It stands in the row of the fact, so that they need not
// read what stood before each.
type turn int64

// The turns. Zero, NULL in the file, is that of a fact that tells the same again, and of all that is not told to a node.
const (
	turnStarted turn = 1 + iota
	turnChanged
	turnLowered  // changed to a lower version of the same package
	turnReturned // changed to what the node was told at an earlier time, and to no lower version
	turnEnded
)

// mostHad bounds the hashes of what nodes were ever told that are kept at hand, of all keys together.
const mostHad = 2_000_000

// turnBetween gives what a fact changes of the one before it, which is nil when there is none. Had says whether the node was told the
// same at an earlier time.
func turnBetween(before, now *fact, had func() (bool, error)) (turn, error) {
	stood := before != nil && before.stands
	switch {
	case !stood && now.stands:
		return turnStarted, nil
	case stood && !now.stands:
		return turnEnded, nil
	case !stood || before.same(now):
		return 0, nil
	case lower(now.reference, before.reference):
		return turnLowered, nil
	}
	returned, err := had()
	if err != nil || !returned {
		return turnChanged, err
	}
	return turnReturned, nil
}

// hash stands for what a fact tells to run, by all that names it: a million names would fill the memory.
func (w *writing) hash(f *fact) uint64 {
	names := [...]string{f.reference.Artifact, "", "", f.build, f.commit}
	if f.reference.Package != nil {
		names[1], names[2] = f.reference.Package.Name, f.reference.Package.Version
	}
	return maphash.Comparable(w.seed, names)
}

// turn finds out what a fact changes that is told to a node after all others of its key, and remembers that it was told.
func (w *writing) turn(ctx context.Context, h *head, before, now *fact) error {
	name := w.hash(now)
	var err error
	now.turn, err = turnBetween(before, now, func() (bool, error) {
		if h.had == nil {
			if err := w.loadHad(ctx, h); err != nil {
				return false, err
			}
		}
		return h.had[name], nil
	})
	if err == nil && now.turn != 0 && now.stands && h.had != nil && !h.had[name] {
		h.had[name] = true
		w.had++
	}
	return err
}

// loadHad takes from the file what a node was ever told to run of a module.
func (w *writing) loadHad(ctx context.Context, h *head) error {
	if err := w.lookUp(ctx); err != nil {
		return err
	}
	facts, err := w.history(ctx, h.id)
	if err != nil {
		return err
	}
	h.had = map[uint64]bool{}
	for _, f := range facts {
		if f.turn != 0 && f.stands {
			h.had[w.hash(f)] = true
		}
	}
	w.had += len(h.had)
	return nil
}

// recount finds out anew what each fact changed of the keys whose history was added to: what came after the addition follows another
// fact now.
func (w *writing) recount(ctx context.Context) error {
	if len(w.addedTo) == 0 {
		return nil
	}
	if err := w.lookUp(ctx); err != nil {
		return err
	}
	for key, h := range w.addedTo {
		facts, err := w.history(ctx, key)
		if err != nil {
			return err
		}
		w.had -= len(h.had)
		h.had = map[uint64]bool{}
		seen := map[uint64]bool{}
		var before *fact
		for _, f := range facts {
			name, was := w.hash(f), f.turn
			f.turn = 0
			if !seen[f.sequence] { // else it is what stood before something was added, and goes on
				if f.turn, err = turnBetween(before, f, func() (bool, error) { return h.had[name], nil }); err != nil {
					return err
				}
			}
			if f.turn != 0 && f.stands {
				h.had[name] = true
			}
			seen[f.sequence], before = true, f
			if f.turn == was {
				continue
			}
			if err := w.turned.exec(ctx, []driver.NamedValue{{Ordinal: 1, Value: nullTurn(f.turn)}, {Ordinal: 2, Value: f.id}}); err != nil {
				return err
			}
		}
		w.had += len(h.had)
	}
	clear(w.addedTo)
	return nil
}

// history gives all rows of a key, in the order in which they became true.
func (w *writing) history(ctx context.Context, key int64) (all []*fact, err error) {
	rows, err := w.conn.QueryContext(ctx, "SELECT "+factColumns+` FROM record r WHERE r."key" = ? ORDER BY r.valid_from, r.id`, key)
	if err != nil {
		return nil, errors.Wrap(err, "read a history")
	}
	defer func() { err = errors.CombineErrors(err, rows.Close()) }()
	for rows.Next() {
		f, err := scanFact(rows.Scan)
		if err != nil {
			return nil, errors.Wrap(err, "read a history")
		}
		all = append(all, f)
	}
	return all, errors.Wrap(rows.Err(), "read a history")
}

func nullTurn(t turn) any {
	if t == 0 {
		return nil
	}
	return int64(t)
}
