package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"encoding/base64"
	"encoding/json"
	"math"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/cockroachdb/errors"
	"modernc.org/sqlite"

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
func mayRead(action sqlite.AuthorizerActionCode, _, name, _, _ string) sqlite.AuthorizerReturnCode {
	switch action {
	case sqlite.AuthRead, sqlite.AuthSelect, sqlite.AuthRecursive:
		return sqlite.AuthorizerOK
	case sqlite.AuthFunction:
		if name == "load_extension" {
			return sqlite.AuthorizerDeny
		}
		return sqlite.AuthorizerOK
	}
	return sqlite.AuthorizerDeny
}

// SQL runs a statement that reads. It gives errors marked [audit.ErrInvalid], also for a statement that does not end in its time,
// and [audit.ErrStoreBehind].
func (s *Store) SQL(ctx context.Context, q audit.SQLQuestion) (audit.SQLAnswer, error) {
	limit, patience, err := boundsOf(q)
	if err != nil {
		return audit.SQLAnswer{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	answer, err := s.statement(ctx, q, limit)
	if err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		err = errors.Mark(errors.WithHint(errors.Newf("the statement did not end within %v", patience),
			"ask for less, give a longer timeout, or export what you need"), audit.ErrInvalid)
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
	rows, err := conn.QueryContext(ctx, q.Query, q.Arguments...)
	if err != nil {
		return answer, statementError(err)
	}
	defer func() { err = errors.CombineErrors(err, rows.Close()) }()
	return answer, readTable(rows, limit, &answer)
}

// statementError is the error of a statement that SQLite does not run.
func statementError(err error) error {
	var e *sqlite.Error
	if !errors.As(err, &e) {
		return errors.Wrap(err, "run the statement")
	}
	return errors.Mark(errors.WithHint(errors.Newf("the statement can't be run: %v", err),
		"only one statement that reads can be run; catenary.query.sql-schema lists the tables and their columns"), audit.ErrInvalid)
}

func readTable(rows *sql.Rows, limit int, answer *audit.SQLAnswer) error {
	var err error
	if answer.Columns, err = rows.Columns(); err != nil {
		return errors.Wrap(err, "columns of the statement")
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
			return errors.Wrap(err, "read a row of the statement")
		}
		for i, v := range row {
			row[i] = shownValue(v)
			bytes += sizeOf(row[i])
		}
		answer.Rows = append(answer.Rows, row)
	}
	if err := rows.Err(); err != nil {
		return statementError(err)
	}
	return nil
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
