package store

import (
	"context"
	"database/sql"
	"strings"
	"time"

	"github.com/cockroachdb/errors"

	"catenary/audit"
)

// questionTime bounds a question that is not in SQL. The longest, reports over millions of deliveries, take seconds.
const questionTime = 30 * time.Second

// reading is one state of the file, for as long as a question takes.
type reading struct {
	tx    queryer
	place place
	now   time.Time
}

// read lets a question read one state of the file. It gives errors marked [audit.ErrStoreBehind] or [audit.ErrStoreStopped] while there is no file to ask, also
// when the question finds the file damaged: it is built anew then.
func (s *Store) read(ctx context.Context, ask func(context.Context, *reading) error) error {
	return s.damaged(s.readOnce(ctx, ask))
}

// damaged has the file built anew when an error says that it is damaged, and says so; others it gives back.
func (s *Store) damaged(err error) error {
	if !isDamaged(err) {
		return err
	}
	select {
	case s.damage <- err:
	default: // another question has said so
	}
	return errors.Mark(errors.WithHint(errors.Wrap(err, "the audit store is damaged and is built anew"), "ask again when it is built"), audit.ErrStoreBehind)
}

func (s *Store) readOnce(ctx context.Context, ask func(context.Context, *reading) error) (err error) {
	ctx, cancel := context.WithTimeout(ctx, questionTime)
	defer cancel()
	conn, err := s.connect(ctx, func() *sql.DB { return s.questions })
	if err != nil {
		return err
	}
	defer func() { err = errors.CombineErrors(err, closing(conn.Close())) }()
	tx, err := conn.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return errors.Wrap(err, "begin to read the audit store")
	}
	defer func() { err = errors.CombineErrors(err, closing(tx.Rollback())) }()
	r := &reading{tx: tx, now: s.cfg.Clock().UTC()}
	if r.place, err = readPlace(ctx, tx); err != nil {
		return err
	}
	return ask(ctx, r)
}

// closing is the error of what is let go of after reading: a context that has ended has ended it already.
func closing(err error) error {
	if errors.Is(err, sql.ErrTxDone) || errors.Is(err, sql.ErrConnDone) {
		return nil
	}
	return errors.Wrap(err, "end reading the audit store")
}

// connect takes a connection from a pool. The lock is held so that the pool is not closed before.
func (s *Store) connect(ctx context.Context, pool func() *sql.DB) (*sql.Conn, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	db := pool()
	if db == nil {
		return nil, s.Status().Unready(0)
	}
	conn, err := db.Conn(ctx)
	return conn, errors.Wrap(err, "connect to the audit store")
}

func (r *reading) basis() audit.Basis {
	return audit.Basis{Through: r.place.head.Sequence, Recorded: r.place.recorded.time()}
}

// moment gives the two times that a question is asked for, as it is answered and as they are stored.
func (r *reading) moment(m audit.Moment) (answered audit.Moment, at, known instant) {
	if m.At.IsZero() {
		m.At = r.now
		if !m.KnownAt.IsZero() {
			m.At = m.KnownAt
		}
	}
	known = forever - 1
	if !m.KnownAt.IsZero() {
		known = instantOf(m.KnownAt)
		if m.KnownAt.Before(m.At) {
			m.At = m.KnownAt
		}
	}
	m.At, m.KnownAt = m.At.UTC(), m.KnownAt.UTC()
	return m, instantOf(m.At), known
}

// each calls take for each row of a query.
func (r *reading) each(ctx context.Context, take func(scan func(...any) error) error, query string, args ...any) error {
	return eachRow(ctx, r.tx, take, query, args...)
}

// person gives who is behind an opaque id.
func (r *reading) person(ctx context.Context, id string) (audit.Person, error) {
	p := audit.Person{ID: id}
	err := r.tx.QueryRowContext(ctx, "SELECT name FROM actor WHERE id = ?", id).Scan(&p.Name)
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return p, errors.Wrapf(err, "name of actor %s", id)
}

// where gathers the conditions of a query.
type where struct {
	terms []string
	args  []any
}

func (w *where) and(term string, args ...any) {
	w.terms = append(w.terms, term)
	w.args = append(w.args, args...)
}

// anyOf asks for one of several values; for all when there is none.
func anyOf[T any](w *where, column string, values []T) {
	if len(values) == 0 {
		return
	}
	args := make([]any, len(values))
	for i, v := range values {
		args[i] = v
	}
	w.and(column+" IN (?"+strings.Repeat(", ?", len(values)-1)+")", args...)
}

func (w *where) String() string { return strings.Join(w.terms, " AND ") }
