package store

import (
	"context"
	"database/sql"

	"github.com/cockroachdb/errors"

	"catenary/audit"
)

// refusedTable are the columns of refusal, in their order.
const refusedTable = `sequence, recorded, command, digest, aggregate, "key", verb, actor, on_behalf_of, status, code, message, hint, causation, correlation`

const refusedColumns = `t.sequence, t.recorded, t.command, t.digest, t.aggregate, t."key", t.verb, t.actor, t.on_behalf_of, t.status, t.code, t.message, t.hint,
 t.causation, t.correlation`

func scanRefused(scan func(...any) error) (audit.Refused, error) {
	var f audit.Refused
	var recorded instant
	texts := []*string{
		&f.Command, &f.Digest, &f.Aggregate, &f.Key, &f.Verb, &f.Actor, &f.OnBehalfOf, &f.Status, &f.Code, &f.Message, &f.Hint, &f.Causation, &f.Correlation,
	}
	values := make([]sql.NullString, len(texts))
	into := []any{&f.Sequence, &recorded}
	for i := range values {
		into = append(into, &values[i])
	}
	if err := scan(into...); err != nil {
		return f, errors.Wrap(err, "read a refused command")
	}
	for i, v := range values {
		*texts[i] = v.String
	}
	f.Recorded = recorded.time()
	return f, nil
}

// RefusedThrough gives the last refused command that was taken in, in the stream of refused commands; zero for none. It gives errors
// marked [audit.ErrStoreBehind].
func (s *Store) RefusedThrough(ctx context.Context) (uint64, error) {
	var through uint64
	err := s.read(ctx, func(_ context.Context, r *reading) error {
		through = r.place.refused
		return nil
	})
	return through, err
}

// AddRefused takes in refused commands, in the order of their stream, and returns when they are in the file. What was taken in before
// is left as it is, so that they may be given again. Earliest is the oldest that the stream still has: those before it go, as they
// went there. It gives the context's error and those of the file.
func (s *Store) AddRefused(ctx context.Context, earliest uint64, refused ...audit.Refused) error {
	var last uint64
	err := s.write(ctx, false, func(ctx context.Context, w *writing) error {
		if _, err := w.conn.ExecContext(ctx, "DELETE FROM refusal WHERE sequence < ?", int64(earliest)); err != nil {
			return errors.Wrap(err, "let old refused commands go")
		}
		for _, f := range refused {
			_, err := w.conn.ExecContext(ctx, "INSERT OR IGNORE INTO refusal ("+refusedTable+") VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
				int64(f.Sequence), int64(instantOf(f.Recorded)), nullText(f.Command), nullText(f.Digest), nullText(f.Aggregate), nullText(f.Key), nullText(f.Verb),
				nullText(f.Actor), nullText(f.OnBehalfOf), f.Status, nullText(f.Code), nullText(f.Message), nullText(f.Hint), nullText(f.Causation),
				nullText(f.Correlation))
			if err != nil {
				return errors.Wrapf(err, "take in refused command %d", f.Sequence)
			}
			w.place.refused = max(w.place.refused, f.Sequence)
		}
		last = w.place.refused
		return nil
	})
	if err == nil {
		s.track.taken(last)
	}
	return err
}

// write lets whoever writes the file do something between events, in a transaction of its own with what is taken in already. It
// returns when that is in the file. When it erases, what stood before is nowhere any more then, unless a reader holds on to the journal:
// the state says so until it is gone.
func (s *Store) write(ctx context.Context, erases bool, do func(context.Context, *writing) error) error {
	asked := write{do: do, erases: erases, done: make(chan error, 1)}
	select {
	case s.writes <- asked:
		// Once it is begun it ends, and soon.
		return <-asked.done
	case <-ctx.Done():
		return errors.Wrap(ctx.Err(), "wait to write the audit store")
	}
}
