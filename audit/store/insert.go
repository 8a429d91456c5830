package store

import (
	"context"
	"database/sql"
	"strings"

	"github.com/cockroachdb/errors"
)

// rowsAtOnce is how many rows one statement inserts. Most of what a row costs on its own is the call, not the row.
const rowsAtOnce = 32

// inserter inserts rows into a table, many at a time. Rows of carried that are there already are left as they are: each fact of a
// build repeats its manifest.
type inserter struct {
	table     string
	width     int
	many, one *sql.Stmt
	values    []any
}

func newInserter(ctx context.Context, c *sql.Conn, name string, columns []string) (*inserter, error) {
	quoted := make([]string, len(columns))
	for i, c := range columns {
		quoted[i] = quote(c)
	}
	row := "(" + strings.Repeat("?,", len(columns)-1) + "?)"
	verb := "INSERT INTO "
	if name == "carried" {
		verb = "INSERT OR IGNORE INTO "
	}
	text := verb + quote(name) + " (" + strings.Join(quoted, ", ") + ") VALUES "
	in := &inserter{table: name, width: len(columns)}
	var err error
	if in.one, err = c.PrepareContext(ctx, text+row); err != nil {
		return nil, errors.Wrapf(err, "prepare rows of %s", name)
	}
	in.many, err = c.PrepareContext(ctx, text+strings.Repeat(row+",", rowsAtOnce-1)+row)
	return in, errors.Wrapf(err, "prepare rows of %s", name)
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

func (in *inserter) add(ctx context.Context, values ...any) error {
	if len(values) != in.width {
		return errors.AssertionFailedf("a row of %s has %d values, not %d", in.table, in.width, len(values))
	}
	in.values = append(in.values, values...)
	if len(in.values) < in.width*rowsAtOnce {
		return nil
	}
	_, err := in.many.ExecContext(ctx, in.values...)
	in.values = in.values[:0]
	return errors.Wrapf(err, "insert into %s", in.table)
}

// flush inserts what is left.
func (in *inserter) flush(ctx context.Context) error {
	for at := 0; at < len(in.values); at += in.width {
		if _, err := in.one.ExecContext(ctx, in.values[at:at+in.width]...); err != nil {
			return errors.Wrapf(err, "insert into %s", in.table)
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
