package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"strings"

	"github.com/cockroachdb/errors"
)

// rowsAtOnce is how many rows one statement inserts. Most of what a row costs on its own is the call, not the row.
const rowsAtOnce = 32

// statement is a prepared statement of a connection. It talks to the driver itself: a file of millions of rows is built in half the
// time when their values are not copied on the way.
type statement struct {
	conn     *sql.Conn
	what     string
	prepared driver.StmtExecContext
}

func newStatement(ctx context.Context, c *sql.Conn, what, text string) (*statement, error) {
	st := &statement{conn: c, what: what}
	err := c.Raw(func(dc any) error {
		prepared, err := dc.(driver.ConnPrepareContext).PrepareContext(ctx, text)
		if err == nil {
			st.prepared = prepared.(driver.StmtExecContext)
		}
		return err
	})
	if err != nil {
		return nil, errors.Wrapf(err, "prepare to %s", what)
	}
	return st, nil
}

// exec runs the statement. Values are of the types that a driver takes: text, int64 and nil; each has its place as its ordinal.
func (st *statement) exec(ctx context.Context, values []driver.NamedValue) error {
	err := st.conn.Raw(func(any) error {
		_, err := st.prepared.ExecContext(ctx, values)
		return err
	})
	return errors.Wrap(err, st.what)
}

func (st *statement) close() error {
	return st.conn.Raw(func(any) error { return st.prepared.(driver.Stmt).Close() })
}

// inserter inserts rows into a table, many at a time. Rows of carrier and carried that are there already are left as they are:
// each fact of a build repeats its manifest.
type inserter struct {
	table     string
	width     int
	many, one *statement
	values    []driver.NamedValue
}

func newInserter(ctx context.Context, c *sql.Conn, name string, columns []string) (*inserter, error) {
	quoted := make([]string, len(columns))
	for i, c := range columns {
		quoted[i] = quote(c)
	}
	row := "(" + strings.Repeat("?,", len(columns)-1) + "?)"
	verb := "INSERT INTO "
	if name == "carried" || name == "carrier" {
		verb = "INSERT OR IGNORE INTO "
	}
	text := verb + quote(name) + " (" + strings.Join(quoted, ", ") + ") VALUES "
	in := &inserter{table: name, width: len(columns), values: make([]driver.NamedValue, 0, rowsAtOnce*len(columns))}
	var err error
	for _, st := range []struct {
		into **statement
		text string
	}{{&in.one, text + row}, {&in.many, text + strings.Repeat(row+",", rowsAtOnce-1) + row}} {
		if *st.into, err = newStatement(ctx, c, "insert into "+name, st.text); err != nil {
			return nil, errors.CombineErrors(err, in.close())
		}
	}
	return in, nil
}

// close lets go of the statements.
func (in *inserter) close() error {
	var failure error
	for _, st := range []*statement{in.many, in.one} {
		if st != nil {
			failure = errors.CombineErrors(failure, st.close())
		}
	}
	return failure
}

// tableInserter inserts rows with all columns of a table.
func tableInserter(ctx context.Context, c *sql.Conn, name string) (*inserter, error) {
	for _, t := range tables() {
		if t.name != name {
			continue
		}
		columns := make([]string, len(t.columns))
		for i, c := range t.columns {
			columns[i] = c.name
		}
		return newInserter(ctx, c, name, columns)
	}
	return nil, errors.AssertionFailedf("there is no table %s", name)
}

// add inserts a row, at the latest with the next flush. Values are of the types that a driver takes: text, int64 and nil.
func (in *inserter) add(ctx context.Context, values ...any) error {
	if len(values) != in.width {
		return errors.AssertionFailedf("a row of %s has %d values, not %d", in.table, in.width, len(values))
	}
	for _, v := range values {
		in.values = append(in.values, driver.NamedValue{Ordinal: len(in.values) + 1, Value: v})
	}
	if len(in.values) < in.width*rowsAtOnce {
		return nil
	}
	err := in.many.exec(ctx, in.values)
	in.values = in.values[:0]
	return err
}

// flush inserts what is left.
func (in *inserter) flush(ctx context.Context) error {
	for at := 0; at < len(in.values); at += in.width {
		row := in.values[at : at+in.width]
		for i := range row {
			row[i].Ordinal = i + 1
		}
		if err := in.one.exec(ctx, row); err != nil {
			return err
		}
	}
	in.values = in.values[:0]
	return nil
}

// nullText gives what stands for text that may be missing.
func nullText(s string) any {
	if s == "" {
		return nil
	}
	return s
}

func nullInstant(i instant) any {
	if i == 0 {
		return nil
	}
	return int64(i)
}

func number(b bool) int64 {
	if b {
		return 1
	}
	return 0
}
