package store

import (
	"context"
	"database/sql"
	"maps"
	"strconv"
	"strings"

	"github.com/cockroachdb/errors"

	"catenary/audit"
	"catenary/es"
)

// maxExportBytes bounds a piece of an export.
const maxExportBytes = 4 << 20

// Export gives a piece of all there is, oldest first. It gives errors marked [audit.ErrInvalid] and [audit.ErrStoreBehind], and
// those of the stream.
func (s *Store) Export(ctx context.Context, q audit.ExportQuestion) (audit.ExportPage, error) {
	after := uint64(0)
	if q.Cursor != "" {
		n, err := strconv.ParseUint(q.Cursor, 10, 63)
		if err != nil {
			return audit.ExportPage{}, errors.Mark(errors.Newf("cursor %q is none of this question: give the one the page before has", q.Cursor), audit.ErrInvalid)
		}
		after = n
	}
	switch {
	case q.Limit < 0:
		return audit.ExportPage{}, errors.Mark(errors.Newf("limit is %d: it must be positive, or left out", q.Limit), audit.ErrInvalid)
	case q.What == audit.ExportEvents:
		return s.exportEvents(ctx, q, after)
	case q.What == audit.ExportAssignments:
		return s.exportAssignments(ctx, q, after)
	}
	return audit.ExportPage{}, errors.Mark(errors.Newf("what is %q: it is %s or %s", q.What, audit.ExportEvents, audit.ExportAssignments), audit.ErrInvalid)
}

// exportEvents reads them from the stream, which alone has all that their hashes cover. The store tells where the span begins.
func (s *Store) exportEvents(ctx context.Context, q audit.ExportQuestion, after uint64) (audit.ExportPage, error) {
	if after == 0 && !q.Since.IsZero() {
		err := s.read(ctx, func(ctx context.Context, r *reading) error {
			var first sql.NullInt64
			err := r.tx.QueryRowContext(ctx, "SELECT min(sequence) FROM event WHERE recorded >= ?", int64(instantOf(q.Since))).Scan(&first)
			after = r.place.head.Sequence
			if first.Valid {
				after = uint64(first.Int64) - 1
			}
			return errors.Wrap(err, "look for the first event")
		})
		if err != nil {
			return audit.ExportPage{}, err
		}
	}
	page := audit.ExportPage{Events: []audit.ExportedEvent{}}
	bytes := 0
	for m, err := range s.cfg.Events.Read(ctx, after) {
		if err != nil {
			return page, errors.Wrapf(err, "read events after %d", after)
		}
		if len(page.Events) == q.Rows() || bytes > maxExportBytes {
			page.Next = strconv.FormatUint(after, 10)
			break
		}
		after = m.Sequence
		e := exported(audit.NewItem(s.cfg.Registry, m), m)
		if !q.Since.IsZero() && e.Recorded.Before(q.Since) || !q.Until.IsZero() && !e.Recorded.Before(q.Until) {
			continue
		}
		bytes += m.Size()
		page.Events = append(page.Events, e)
	}
	return page, nil
}

func exported(item audit.Item, m es.Message) audit.ExportedEvent {
	header := maps.Clone(m.Header)
	maps.DeleteFunc(header, func(name string, _ []string) bool { return strings.HasPrefix(name, "Nats-") })
	e := audit.ExportedEvent{Item: item, Subject: m.Subject, Header: header, Stored: m.Body}
	if values := m.Header[es.HeaderHash]; len(values) == 1 {
		e.Hash = values[0]
	}
	e.Body = nil // it is Stored
	return e
}

func (s *Store) exportAssignments(ctx context.Context, q audit.ExportQuestion, after uint64) (audit.ExportPage, error) {
	page := audit.ExportPage{Assignments: []audit.ExportedAssignment{}}
	err := s.read(ctx, func(ctx context.Context, r *reading) error {
		var w where
		w.and("k.kind IN (?, ?)", kindTold, kindRan)
		w.and("r.id > ?", int64(after))
		w.and("r.valid_from < r.valid_to")
		if !q.Since.IsZero() {
			w.and("r.known_from >= ?", int64(instantOf(q.Since)))
		}
		if !q.Until.IsZero() {
			w.and("r.known_from < ?", int64(instantOf(q.Until)))
		}
		return r.each(ctx, func(scan func(...any) error) error {
			var kind string
			var st stood
			var a audit.ExportedAssignment
			var actor, onBehalfOf, reason sql.NullString
			var err error
			if st.fact, err = scanFact(scan, &kind, &st.node, &st.module, &a.Type, &actor, &onBehalfOf, &reason, &a.Backfill); err != nil {
				return errors.Wrap(err, "read an assignment")
			}
			if len(page.Assignments) == q.Rows() {
				page.Next = strconv.FormatUint(after, 10)
				return nil
			}
			after = uint64(st.id)
			if a.Standing, err = st.standing(); err != nil {
				return err
			}
			a.Shows, a.Stands, a.From, a.Until = shows(kind == kindRan), st.stands, st.from.time(), st.to.time()
			a.Actor, a.OnBehalfOf, a.Reason = actor.String, onBehalfOf.String, reason.String
			page.Assignments = append(page.Assignments, a)
			return nil
		}, `SELECT k.kind, k.node, k.module, e.type, e.actor, e.on_behalf_of, e.data ->> '$.reason', e.backfill, `+factColumns+
			` FROM record r JOIN "key" k ON k.id = r."key" JOIN event e ON e.sequence = r.sequence WHERE `+w.String()+" ORDER BY r.id LIMIT ?", append(w.args, q.Rows()+1)...)
	})
	return page, err
}
