package store

import (
	"context"
	"database/sql/driver"

	"github.com/cockroachdb/errors"
)

// mostRemembered bounds the statements that a connection keeps prepared. Questions have a few dozen, and some more by which of their
// filters are given; who writes asks a handful.
const mostRemembered = 128

// remembering is a connection that keeps the statements it reads with prepared: to prepare one takes longer than to find a row by it.
type remembering struct {
	driver.Conn
	statements map[string]*remembered
}

// remembered is a prepared statement, which reads for one query at a time.
type remembered struct {
	prepared driver.StmtQueryContext
	busy     bool
}

func remember(c driver.Conn) (driver.Conn, error) {
	return &remembering{Conn: c, statements: map[string]*remembered{}}, nil
}

// QueryContext runs a query by its prepared statement. While that is being read from, the same query gets another one, for itself.
func (c *remembering) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	s, ok := c.statements[query]
	if !ok {
		if err := c.forget(); err != nil {
			return nil, err
		}
		prepared, err := c.Conn.(driver.ConnPrepareContext).PrepareContext(ctx, query)
		if err != nil {
			return nil, err
		}
		s = &remembered{prepared: prepared.(driver.StmtQueryContext)}
		c.statements[query] = s
	}
	if s.busy {
		return c.Conn.(driver.QueryerContext).QueryContext(ctx, query, args)
	}
	rows, err := s.prepared.QueryContext(ctx, args)
	if err != nil {
		return nil, err
	}
	s.busy = true
	return rememberedRows{Rows: rows, of: s}, nil
}

// forget lets go of the statements that are not read from when they are too many.
func (c *remembering) forget() error {
	if len(c.statements) < mostRemembered {
		return nil
	}
	var failure error
	for query, s := range c.statements {
		if !s.busy {
			failure = errors.CombineErrors(failure, s.prepared.(driver.Stmt).Close())
			delete(c.statements, query)
		}
	}
	return failure
}

// Close lets go of the statements first: with one left, SQLite would keep the file open.
func (c *remembering) Close() error {
	var failure error
	for _, s := range c.statements {
		failure = errors.CombineErrors(failure, s.prepared.(driver.Stmt).Close())
	}
	return errors.CombineErrors(failure, c.Conn.Close())
}

// ExecContext runs a statement that reads nothing. It is not kept: those that run often are prepared by who runs them.
func (c *remembering) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	return c.Conn.(driver.ExecerContext).ExecContext(ctx, query, args)
}

// PrepareContext prepares a statement for who asks, who closes it.
func (c *remembering) PrepareContext(ctx context.Context, query string) (driver.Stmt, error) {
	return c.Conn.(driver.ConnPrepareContext).PrepareContext(ctx, query)
}

// BeginTx begins a transaction.
func (c *remembering) BeginTx(ctx context.Context, options driver.TxOptions) (driver.Tx, error) {
	return c.Conn.(driver.ConnBeginTx).BeginTx(ctx, options)
}

// ResetSession readies the connection for who uses it next.
func (c *remembering) ResetSession(ctx context.Context) error {
	return c.Conn.(driver.SessionResetter).ResetSession(ctx)
}

// IsValid says whether the connection can be used again.
func (c *remembering) IsValid() bool { return c.Conn.(driver.Validator).IsValid() }

// rememberedRows are the rows that a prepared statement reads.
type rememberedRows struct {
	driver.Rows
	of *remembered
}

// Close makes the statement free again.
func (r rememberedRows) Close() error {
	err := r.Rows.Close()
	r.of.busy = false
	return err
}
