package store

import (
	"context"
	"database/sql"
	"database/sql/driver"

	"github.com/cockroachdb/errors"

	"catenary/es"
	"catenary/events"
)

// mostHeads bounds the keys whose newest rows are kept at hand. It starts anew rather than choose what to forget.
const mostHeads = 100_000

type headKey struct{ kind, key string }

// head is a key with its newest row; last is nil for a key that nothing is known of.
type head struct {
	id   int64
	last *fact
	// had are hashes of what a node was ever told to run; nil where they are not at hand.
	had map[uint64]bool
}

// roomy lets go of the newest rows when they are too many. Between two events all of them can be found in the file instead.
func (w *writing) roomy(ctx context.Context) error {
	if len(w.heads) < mostHeads && w.had < mostHad {
		return nil
	}
	err := w.lookUp(ctx)
	clear(w.heads)
	w.had = 0
	return err
}

// head gives a key's newest row, from the file if it is not at hand.
func (w *writing) head(ctx context.Context, kind, key string) (*head, error) {
	at := headKey{kind, key}
	if h, ok := w.heads[at]; ok {
		return h, nil
	}
	h := &head{}
	if w.whole {
		h.had = map[uint64]bool{}
		w.heads[at] = h
		return h, nil
	}
	err := w.conn.QueryRowContext(ctx, `SELECT id FROM "key" WHERE kind = ? AND "key" = ?`, kind, key).Scan(&h.id)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		h.had = map[uint64]bool{} // nothing was told before, so there is nothing to look up
	case err != nil:
		return nil, errors.Wrapf(err, "look for %s %s", kind, key)
	default:
		if h.last, err = factAt(ctx, w.conn, h.id, forever); err != nil {
			return nil, err
		}
	}
	w.heads[at] = h
	return h, nil
}

// before gives the row of a key that is so just before what becomes true at a moment: of those at the same moment the later event
// is later.
func (w *writing) before(ctx context.Context, h *head, at instant) (*fact, error) {
	if h.last == nil || at >= h.last.from {
		return h.last, nil
	}
	if err := w.lookUp(ctx); err != nil {
		return nil, err
	}
	return factAt(ctx, w.conn, h.id, at)
}

// put places a fact in both times: what was so from its moment on gives way to it, and what was thought of that time is kept.
func (w *writing) put(ctx context.Context, e es.Event, c change) error {
	h, err := w.head(ctx, c.kind, c.key)
	if err != nil {
		return err
	}
	f := c.fact
	f.sequence, f.from, f.known = e.Sequence, instantOf(e.Effective), w.place.known
	if h.id == 0 {
		w.nextKey++
		h.id = w.nextKey
		if err := w.keys.add(ctx, h.id, c.kind, c.key, nullText(c.node), nullText(c.module), int64(f.known)); err != nil {
			return err
		}
	}
	f.key = h.id
	stood, err := w.before(ctx, h, f.from)
	if err != nil {
		return err
	}
	if stood == nil {
		f.to, err = w.firstAfter(ctx, h, f.from)
		if err != nil {
			return err
		}
	} else {
		f.to = stood.to
		if err := w.giveWay(ctx, stood, f.from); err != nil {
			return err
		}
	}
	switch {
	case c.kind != kindTold:
	case h.last != nil && f.from < h.last.from || w.addedTo[h.id] != nil:
		w.addedTo[h.id] = h
	default:
		if err := w.turn(ctx, h, stood, f); err != nil {
			return err
		}
	}
	if e.Backfill && f.to == forever {
		return w.putBehind(ctx, h, c, stood)
	}
	w.insert(h, f)
	return nil
}

// putBehind places what was added after the newest row of its key. It never holds beyond the newest fact of the instance: from
// there on stands what stood, or nothing.
func (w *writing) putBehind(ctx context.Context, h *head, c change, stood *fact) error {
	latest, err := w.latest(ctx, c.key)
	if err != nil {
		return err
	}
	f := c.fact
	if latest <= f.from {
		w.insert(h, f)
		return nil
	}
	f.to = latest
	w.insert(h, f)
	goesOn := fact{key: h.id, sequence: f.sequence, state: stateEnded, since: latest}
	if stood != nil {
		goesOn = *stood
	}
	goesOn.from, goesOn.to, goesOn.known, goesOn.outlook, goesOn.turn = latest, forever, f.known, outlook{}, 0
	w.insert(h, &goesOn)
	return nil
}

// latest is the newest moment that any fact of an assignment is of.
func (w *writing) latest(ctx context.Context, key string) (instant, error) {
	var latest instant
	for _, kind := range []string{kindTold, kindRan} {
		h, err := w.head(ctx, kind, key)
		if err != nil {
			return 0, err
		}
		if h.last != nil {
			latest = max(latest, h.last.from)
		}
	}
	return latest, nil
}

// firstAfter gives when the first row of a key begins that comes after a moment; forever when there is none.
func (w *writing) firstAfter(ctx context.Context, h *head, at instant) (instant, error) {
	if h.last == nil {
		return forever, nil
	}
	if err := w.lookUp(ctx); err != nil {
		return 0, err
	}
	var first sql.NullInt64
	err := w.conn.QueryRowContext(ctx, `SELECT min(valid_from) FROM record WHERE "key" = ? AND valid_from > ?`, h.id, int64(at)).Scan(&first)
	if err != nil || !first.Valid {
		return forever, errors.Wrap(err, "look for a later record")
	}
	return instant(first.Int64), nil
}

// giveWay ends a row at a moment. What it said of the time after that was thought until now: the first such piece is the row's outlook,
// others stand in past.
func (w *writing) giveWay(ctx context.Context, f *fact, at instant) error {
	switch {
	case f.to <= at || w.place.known <= f.known: // nothing was thought, or not for any time
	case f.outlook == (outlook{}):
		f.outlook = outlook{from: at, to: f.to, known: w.place.known}
	default:
		if err := w.pasts.add(ctx, f.key, int64(w.place.known), f.id, int64(f.known), int64(at), int64(f.to)); err != nil {
			return err
		}
	}
	f.to = at
	if !f.stored {
		return nil
	}
	var from, to, known any
	if f.outlook != (outlook{}) {
		from, to, known = int64(f.outlook.from), int64(f.outlook.to), int64(f.outlook.known)
	}
	for i, v := range [...]any{int64(at), from, to, known, f.id} {
		w.cutting[i] = driver.NamedValue{Ordinal: i + 1, Value: v}
	}
	return w.cut.exec(ctx, w.cutting[:])
}

func (w *writing) insert(h *head, f *fact) {
	w.nextRecord++
	f.id, f.stored = w.nextRecord, false
	w.pending = append(w.pending, f)
	if h.last == nil || f.from >= h.last.from {
		h.last = f
	}
}

// factColumns are the columns that scanFact reads.
const factColumns = `r.id, r."key", r.sequence, r.valid_from, r.valid_to, r.known_from, ifnull(r.outlook_from, 0), ifnull(r.outlook_to, 0), ifnull(r.outlook_known, 0), r.stands, ifnull(r.turn, 0), ifnull(r.state, ''), r.artifact, r.package, r.version,
 ifnull(r.build, ''), ifnull(r."commit", ''), ifnull(r.rollout, ''), ifnull(r.required_by, ''), ifnull(r.assigned, 0), r.since, ifnull(r.reported, 0),
 r.healthy, ifnull(r.drift, ''), r.value`

// scanFact reads a row of record, after the destinations of what stands before its columns.
func scanFact(scan func(...any) error, first ...any) (*fact, error) {
	f := &fact{stored: true}
	var artifact, pkg, version, value sql.NullString
	var healthy sql.NullBool
	err := scan(append(first, &f.id, &f.key, &f.sequence, &f.from, &f.to, &f.known, &f.outlook.from, &f.outlook.to, &f.outlook.known, &f.stands, &f.turn, &f.state, &artifact, &pkg, &version,
		&f.build, &f.commit, &f.rollout, &f.requiredBy, &f.assigned, &f.since, &f.reported, &healthy, &f.drift, &value)...)
	if err != nil {
		return nil, err
	}
	f.reference.Artifact = artifact.String
	if pkg.Valid {
		f.reference.Package = &events.Package{Name: pkg.String, Version: version.String}
	}
	if healthy.Valid {
		f.healthy = &healthy.Bool
	}
	if value.Valid {
		f.value = []byte(value.String)
	}
	return f, nil
}

// factAt gives the row of a key at a moment, as far as is known now; nil when there is none.
func factAt(ctx context.Context, q queryer, key int64, at instant) (*fact, error) {
	row := q.QueryRowContext(ctx, "SELECT "+factColumns+` FROM record r WHERE r."key" = ? AND r.valid_from <= ? ORDER BY r.valid_from DESC, r.id DESC LIMIT 1`, key, int64(at))
	f, err := scanFact(row.Scan)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	return f, errors.Wrap(err, "read a record")
}
