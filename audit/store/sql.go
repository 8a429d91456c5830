package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"encoding/base64"
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/cockroachdb/errors"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"catenary/audit"
)

// maxStatementBytes bounds a statement.
const maxStatementBytes = 64 << 10

// Limits of what one statement may make, by SQLite's numbers for them: a single value (functions such as zeroblob would fill the
// memory), and the depth of an expression.
const (
	limitLength, maxValueBytes = 0, 4 << 20
	limitDepth, maxDepth       = 3, 200
)

// guardStatements lets the statements of people read, and do nothing else, whatever they say.
func guardStatements(c driver.Conn) (driver.Conn, error) {
	r, ok := c.(sqlite.AuthorizerRegisterer)
	if !ok {
		return nil, errors.AssertionFailedf("the driver can't say what statements may do")
	}
	return c, errors.Wrap(r.RegisterAuthorizer(mayRead), "guard the statements of people")
}

// mayRead decides on each thing a statement does, when it is prepared.
func mayRead(action sqlite.AuthorizerActionCode, pragma, name, _, _ string) sqlite.AuthorizerReturnCode {
	switch action {
	case sqlite.AuthRead, sqlite.AuthSelect, sqlite.AuthRecursive:
		return sqlite.AuthorizerOK
	case sqlite.AuthFunction:
		if name == "load_extension" {
			return sqlite.AuthorizerDeny
		}
		return sqlite.AuthorizerOK
	case sqlite.AuthPragma:
		// The index of words asks for it, to see whether the file has changed since it was read.
		if pragma == "data_version" && name == "" {
			return sqlite.AuthorizerOK
		}
	}
	return sqlite.AuthorizerDeny
}

// SQL runs a statement that reads. It gives errors marked [audit.ErrInvalid], [audit.ErrTooLong] for a statement that does not end in its
// time, [audit.ErrStoreBehind] and [audit.ErrStoreStopped].
func (s *Store) SQL(ctx context.Context, q audit.SQLQuestion) (audit.SQLAnswer, error) {
	limit, patience, err := boundsOf(q)
	if err != nil {
		return audit.SQLAnswer{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	answer, err := s.statement(ctx, q, limit)
	if err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		err = errors.Mark(errors.WithHintf(errors.Newf("the statement did not end within %v, which is the time it was given", patience),
			"ask for less, give it a longer timeout (%v at most), or export what you need", audit.MaxSQLTime), audit.ErrTooLong)
	}
	return answer, err
}

func boundsOf(q audit.SQLQuestion) (limit int, patience time.Duration, err error) {
	fail := func(format string, args ...any) error {
		return errors.Mark(errors.Newf(format, args...), audit.ErrInvalid)
	}
	limit, patience = q.Limit, time.Duration(q.Timeout)
	switch {
	case q.Query == "":
		return 0, 0, fail("query is empty: give one statement, such as SELECT * FROM assignments LIMIT 10")
	case len(q.Query) > maxStatementBytes:
		return 0, 0, fail("query has %d bytes: the limit is %d", len(q.Query), maxStatementBytes)
	case severalStatements(q.Query):
		return 0, 0, invalid("give one statement at a time", "there are several statements in the text, and the rows of one alone can be shown")
	case limit < 0 || patience < 0:
		return 0, 0, fail("limit is %d and timeout %v: both must be positive, or left out", limit, patience)
	}
	for i, a := range q.Arguments {
		switch a.(type) {
		case nil, bool, string, float64, int64:
		default:
			return 0, 0, fail("argument %d is neither text nor a number, true, false or null", i+1)
		}
	}
	if limit == 0 || limit > audit.MaxSQLRows {
		limit = audit.MaxSQLRows
	}
	if patience == 0 {
		patience = audit.DefaultSQLTime
	}
	return limit, min(patience, audit.MaxSQLTime), nil
}

func (s *Store) statement(ctx context.Context, q audit.SQLQuestion, limit int) (answer audit.SQLAnswer, err error) {
	conn, err := s.connect(ctx, func() *sql.DB { return s.statements })
	if err != nil {
		return answer, err
	}
	defer func() { err = errors.CombineErrors(err, closing(conn.Close())) }()
	for id, most := range map[int]int{limitLength: maxValueBytes, limitDepth: maxDepth} {
		if _, err := sqlite.Limit(conn, id, most); err != nil {
			return answer, errors.Wrap(err, "bound a statement")
		}
	}
	// There is no transaction around both, since a statement could end it: what it reads is at least through the place.
	at, err := readPlace(ctx, conn)
	if err != nil {
		return answer, err
	}
	r := &reading{tx: conn, place: at}
	answer.Basis = r.basis()
	if err := r.missing(ctx, &answer.Basis, scope{}); err != nil {
		return answer, err
	}
	if err := checkSurplus(ctx, conn, q); err != nil {
		return answer, err
	}
	rows, err := conn.QueryContext(ctx, q.Query, q.Arguments...)
	if err != nil {
		return answer, s.statementError(err, q)
	}
	defer func() { err = errors.CombineErrors(err, rows.Close()) }()
	if err := readTable(rows, limit, &answer); err != nil {
		return answer, s.statementError(err, q)
	}
	return answer, nil
}

// Beginnings of the driver's words for a value that is missing. It has no other sign of it.
const (
	missingValue = "missing argument"
	missingName  = "missing named argument"
)

// checkSurplus refuses values that the statement has no question mark for: SQLite would pass over them. The driver does not tell how
// many a statement takes, but a plan that can be made without the last value does not need it.
func checkSurplus(ctx context.Context, conn *sql.Conn, q audit.SQLQuestion) error {
	if len(q.Arguments) == 0 {
		return nil
	}
	rows, err := conn.QueryContext(ctx, "EXPLAIN "+q.Query, q.Arguments[:len(q.Arguments)-1]...)
	if err != nil {
		return nil // it needs the value, or can't be run, which running it says better
	}
	if err := rows.Close(); err != nil {
		return errors.Wrap(err, "look at the statement")
	}
	return invalid("give one value for each question mark, in order",
		"the statement has fewer question marks than values are given: %d are given", len(q.Arguments))
}

// invalid is an error in what was asked, with what to do about it.
func invalid(hint, format string, args ...any) error {
	return errors.Mark(errors.WithHint(errors.Newf(format, args...), hint), audit.ErrInvalid)
}

// statementError is the error of a statement that SQLite does not run. What is wrong with the file, or the machine, is not the statement's
// fault.
func (s *Store) statementError(err error, q audit.SQLQuestion) error {
	const schema = "catenary.query.sql-schema lists the tables and their columns; so does catenary sql --schema"
	var e *sqlite.Error
	switch {
	case errors.Is(err, audit.ErrInvalid):
		return err
	case errors.As(err, &e):
	case strings.HasPrefix(err.Error(), missingName):
		return invalid("write ? in their place, and give the values in order", "the statement has parameters with names, and values have none")
	case strings.HasPrefix(err.Error(), missingValue):
		return invalid("give one value for each question mark, in order", "the statement has more question marks than values: %d are given", len(q.Arguments))
	default:
		return errors.Wrap(err, "run the statement")
	}
	switch e.Code() & 0xff {
	case sqlite3.SQLITE_AUTH, sqlite3.SQLITE_READONLY:
		return invalid("only one statement that reads can be run, such as SELECT", "the statement does more than read: %v", err)
	case sqlite3.SQLITE_TOOBIG:
		return invalid("ask for less of it, or export what you need", "a value is larger than the %d bytes it may have: %v", maxValueBytes, err)
	case sqlite3.SQLITE_ERROR, sqlite3.SQLITE_MISMATCH, sqlite3.SQLITE_RANGE, sqlite3.SQLITE_CONSTRAINT:
		return invalid(schema, "the statement can't be run: %v", err)
	}
	return s.damaged(errors.Wrap(err, "run the statement"))
}

func readTable(rows *sql.Rows, limit int, answer *audit.SQLAnswer) error {
	var err error
	if answer.Columns, err = rows.Columns(); err != nil {
		return errors.Wrap(err, "columns of the statement")
	}
	if len(answer.Columns) == 0 {
		return invalid("give one, such as SELECT * FROM assignments LIMIT 10", "there is no statement in the text: it has comments or nothing in it")
	}
	answer.Rows = [][]any{}
	bytes := 0
	for rows.Next() {
		if len(answer.Rows) == limit || bytes > audit.MaxSQLBytes {
			answer.More = true
			return nil
		}
		row := make([]any, len(answer.Columns))
		into := make([]any, len(row))
		for i := range row {
			into[i] = &row[i]
		}
		if err := rows.Scan(into...); err != nil {
			return err
		}
		for i, v := range row {
			row[i] = shownValue(v)
			bytes += sizeOf(row[i])
		}
		answer.Rows = append(answer.Rows, row)
	}
	return rows.Err()
}

// shownValue gives a value as JSON can hold it.
func shownValue(v any) any {
	switch v := v.(type) {
	case []byte:
		return base64.StdEncoding.EncodeToString(v)
	case string:
		if !utf8.ValidString(v) {
			return base64.StdEncoding.EncodeToString([]byte(v))
		}
	case int64:
		return json.Number(strconv.FormatInt(v, 10))
	case float64:
		if math.IsInf(v, 0) || math.IsNaN(v) {
			return strconv.FormatFloat(v, 'g', -1, 64)
		}
	case time.Time:
		return v.UTC().Format(time.RFC3339Nano)
	}
	return v
}

func sizeOf(v any) int {
	if s, ok := v.(string); ok {
		return len(s)
	}
	return 8
}

// SQLSchema lists what statements can read: the views that are meant for people first, then the tables under them.
func (s *Store) SQLSchema(context.Context, audit.SQLSchemaQuestion) (audit.SQLSchema, error) {
	schema := audit.SQLSchema{DDL: DDL()}
	for _, t := range append(views(), tables()...) {
		shown := audit.SQLTable{Name: t.name, View: t.from != "", About: t.about, Columns: []audit.SQLColumn{}}
		for _, c := range t.columns {
			shown.Columns = append(shown.Columns, audit.SQLColumn{Name: c.name, Type: c.kind, About: c.about})
		}
		schema.Tables = append(schema.Tables, shown)
	}
	return schema, nil
}
