package store

import (
	"cmp"
	"context"
	"slices"

	"github.com/cockroachdb/errors"

	"catenary/audit"
	"catenary/es"
	"catenary/es/project"
)

// Why an instance is parked, in a word: the program does not know the event's type, can't read its body, or can't fold it.
const (
	whyUnknownType = "unknown-type"
	whyUnreadable  = "unreadable"
	whyUnfolded    = "unfolded"
)

// parked is an instance of which nothing is folded any more.
type parked struct {
	project.Parked
	said string
	// noted says that it stands in the file as it is.
	noted bool
}

// leftOut is an event that somebody had left out.
type leftOut struct {
	ref es.Ref
	typ string
	project.Skip
}

// judge folds an event, unless somebody has it left out, or it comes behind one that can't be folded. One that can't be folded parks its
// instance: nothing is folded on a hole, and all others go on.
func (w *writing) judge(ctx context.Context, in incoming) ([]change, error) {
	e := in.event
	if at := slices.IndexFunc(w.control.Skipped, func(s project.Skip) bool { return s.Event == in.head.Sequence }); at >= 0 {
		return nil, w.leaveOut(ctx, leftOut{ref: e.Ref, typ: e.Type, Skip: w.control.Skipped[at]})
	}
	kinds := w.kinds[e.Ref.Aggregate]
	if len(kinds) == 0 {
		return nil, nil
	}
	if p := w.parked[e.Ref]; p != nil {
		p.Behind, p.Last, p.noted, w.altered = p.Behind+1, e.Sequence, false, true
		return nil, nil
	}
	if in.unfolded != nil {
		why := whyUnreadable
		if errors.Is(in.unfolded, es.ErrUnknownType) {
			why = whyUnknownType
		}
		w.park(e, why, in.unfolded)
		return nil, nil
	}
	changes, err := w.fold(ctx, kinds, e)
	if err != nil && !isFileError(err) {
		w.park(e, whyUnfolded, err)
		return nil, nil
	}
	return changes, err
}

// park parks the instance of an event that can't be folded.
func (w *writing) park(e es.Event, why string, reason error) {
	w.altered = true
	w.parked[e.Ref] = &parked{Parked: project.Parked{Event: e.Sequence, Type: e.Type, Why: why}, said: reason.Error()}
}

// leaveOut notes that an event is left out.
func (w *writing) leaveOut(ctx context.Context, l leftOut) error {
	w.left[l.Event], w.altered = l, true
	_, err := w.conn.ExecContext(ctx, `INSERT INTO skip VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
		int64(l.Event), nullText(l.ref.Aggregate), nullText(l.ref.Key), nullText(l.typ), l.Reason, nullText(l.By), int64(l.Order), int64(instantOf(l.At)))
	return errors.Wrapf(err, "leave out event %d", l.Event)
}

// noteParked writes what was parked since the last transaction.
func (w *writing) noteParked(ctx context.Context) error {
	if !w.altered {
		return nil
	}
	for ref, p := range w.parked {
		if p.noted {
			continue
		}
		_, err := w.conn.ExecContext(ctx, `INSERT OR REPLACE INTO park VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
			ref.Aggregate, ref.Key, int64(p.Event), p.Type, p.Why, nullText(p.said), int64(p.Behind), int64(max(p.Last, p.Event)))
		if err != nil {
			return errors.Wrapf(err, "park %s", ref)
		}
		p.noted = true
	}
	return nil
}

// loadPolicy takes from the file what is parked and left out.
func (w *writing) loadPolicy(ctx context.Context) error {
	err := eachRow(ctx, w.conn, func(scan func(...any) error) error {
		var ref es.Ref
		p := &parked{noted: true}
		err := scan(&ref.Aggregate, &ref.Key, &p.Event, &p.Type, &p.Why, &p.said, &p.Behind, &p.Last)
		w.parked[ref] = p
		return errors.Wrap(err, "read what is parked")
	}, `SELECT aggregate, "key", event, type, why, ifnull(said, ''), behind, last FROM park`)
	if err != nil {
		return err
	}
	return eachRow(ctx, w.conn, func(scan func(...any) error) error {
		var l leftOut
		var at instant
		err := scan(&l.Event, &l.ref.Aggregate, &l.ref.Key, &l.typ, &l.Reason, &l.By, &l.Order, &at)
		l.At = at.time()
		w.left[l.Event] = l
		return errors.Wrap(err, "read what is left out")
	}, `SELECT event, ifnull(aggregate, ''), ifnull("key", ''), ifnull(type, ''), reason, ifnull("by", ''), "order", at FROM skip`)
}

// honours says whether the file leaves out what the whole stream says to leave out, as far as the file has come. One that does not is
// built anew: what came behind the event is folded then.
func (w *writing) honours(c *project.Control) bool {
	return !slices.ContainsFunc(c.Skipped, func(s project.Skip) bool {
		_, left := w.left[s.Event]
		return s.Event <= w.place.head.Sequence && !left
	})
}

// readable says whether this program can read events of a type that are parked because an earlier program could not.
func (s *Store) readable(ctx context.Context, w *writing) (bool, error) {
	tried := map[string]bool{}
	for ref, p := range w.parked {
		if p.Why == whyUnfolded || tried[p.Type] {
			continue
		}
		tried[p.Type] = true
		m, err := s.cfg.Events.Get(ctx, p.Event)
		if err != nil {
			return false, errors.Wrapf(err, "look at the parked event %d of %s", p.Event, ref)
		}
		if _, err := s.cfg.Registry.Decode(m); err == nil {
			return true, nil
		}
	}
	return false, nil
}

// tellPolicy lets the state say what is parked and left out, and whether somebody has paused the store.
func (w *writing) tellPolicy(state *audit.StoreState) {
	state.Paused = w.control.Paused
	state.Parked, state.Skipped = nil, nil
	for ref, p := range w.parked {
		state.Parked = append(state.Parked, project.ParkedInstance{Instance: instanceOf(ref), Parked: p.Parked, Said: p.said})
	}
	slices.SortFunc(state.Parked, func(a, b project.ParkedInstance) int { return cmp.Compare(a.Event, b.Event) })
	for _, l := range w.left {
		state.Skipped = append(state.Skipped, l.Skip)
	}
	slices.SortFunc(state.Skipped, func(a, b project.Skip) int { return cmp.Compare(b.Event, a.Event) })
	state.ParkedCount, state.SkippedCount = len(state.Parked), len(state.Skipped)
	state.Parked = state.Parked[:min(len(state.Parked), project.MaxListed)]
	state.Skipped = state.Skipped[:min(len(state.Skipped), project.MaxListed)]
}

// instanceOf names an instance as views name what they have parked.
func instanceOf(ref es.Ref) string { return ref.Aggregate + "." + ref.Key }

// eachRow calls take for each row of a query.
func eachRow(ctx context.Context, q queryer, take func(scan func(...any) error) error, query string, args ...any) (err error) {
	rows, err := q.QueryContext(ctx, query, args...)
	if err != nil {
		return errors.Wrap(err, "ask the audit store")
	}
	defer func() { err = errors.CombineErrors(err, rows.Close()) }()
	for rows.Next() {
		if err := take(rows.Scan); err != nil {
			return err
		}
	}
	return errors.Wrap(rows.Err(), "ask the audit store")
}
