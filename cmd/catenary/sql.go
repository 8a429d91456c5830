package main

import (
	"cmp"
	"context"
	"encoding/csv"
	"encoding/json"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/cockroachdb/errors"
	"github.com/spf13/cobra"

	"catenary/audit"
)

const sqlHelp = `Sql runs one statement that reads, in SQLite's SQL, over the audit store. With - it is read from standard input.

VALUES stand for the question marks of the statement, in order, as text. --schema lists the tables and views with what their
columns mean, and in JSON with the statements that would make them.

A statement may run for as long as --timeout says, 30s at most (exit code 9), and gives at most 10,000 rows of 8 MiB together: for more
than that, export.`

// sqlGrace is how much longer than the statement its answer is waited for, so that it is the service that says what took too long.
const sqlGrace = 5 * time.Second

// formatCSV is a format of tables that others read.
const formatCSV format = "csv"

// maxStatementBytes bounds a statement from standard input: a message has to carry it.
const maxStatementBytes = 256 << 10

func (a *app) sqlCommand() *cobra.Command {
	var q audit.SQLQuestion
	var schema bool
	cmd := &cobra.Command{
		Use: "sql {QUERY | - | --schema} [VALUES...]", Short: "Ask in SQL", Long: sqlHelp, GroupID: groupAsk,
		Args: func(cmd *cobra.Command, args []string) error {
			switch {
			case schema && len(args) > 0:
				return usagef("%s --schema takes no statement", cmd.CommandPath())
			case !schema && len(args) == 0:
				return usagef(`%s takes a statement, such as "SELECT * FROM assignments LIMIT 5"; --schema lists the tables`, cmd.CommandPath())
			}
			return nil
		},
		Example: `  catenary sql --schema
  catenary sql "SELECT node, count(*) FROM assignments GROUP BY node"
  catenary sql "SELECT * FROM assignments WHERE node = ?" production -o csv
  catenary sql - < report.sql`,
	}
	output := formatFlag(cmd, formatTable, formatTable, formatJSON, formatYAML, formatCSV)
	flags := cmd.Flags()
	flags.BoolVar(&schema, "schema", false, "list the tables and views, and their columns")
	flags.Var(numberFlag[int]{&q.Limit, 1, audit.MaxSQLRows}, "limit", "at most so many rows (default "+strconv.Itoa(audit.MaxSQLRows)+")")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if schema {
			return a.read(cmd.Context(), func(ctx context.Context, s *session) error {
				tables, err := s.queries.SQLSchema(ctx, audit.SQLSchemaQuestion{})
				if err != nil {
					return err
				}
				return a.showSchema(*output, tables)
			})
		}
		var err error
		if q.Query, err = a.statement(args[0]); err != nil {
			return err
		}
		for _, v := range args[1:] {
			q.Arguments = append(q.Arguments, v)
		}
		// The statement may take as long as the answer is waited for, within the service's bounds.
		q.Timeout = audit.Duration(min(a.timeout, audit.MaxSQLTime))
		return a.readWithin(cmd.Context(), a.timeout+sqlGrace, func(ctx context.Context, s *session) error {
			answer, err := s.queries.SQL(ctx, q)
			if err != nil {
				return err
			}
			if err := a.showSQL(*output, answer, cmp.Or(q.Limit, audit.MaxSQLRows)); err != nil {
				return err
			}
			return s.upTo(ctx, answer.Basis, time.Time{})
		})
	}
	return cmd
}

// statement gives the statement that an argument means. It gives usage errors.
func (a *app) statement(arg string) (string, error) {
	if arg != "-" {
		return arg, nil
	}
	text, err := io.ReadAll(io.LimitReader(a.Stdin, maxStatementBytes+1))
	switch {
	case err != nil:
		return "", errors.Wrap(err, "read the statement from standard input")
	case len(text) > maxStatementBytes:
		return "", usagef("the statement has more than %d bytes, which is the limit", maxStatementBytes)
	case strings.TrimSpace(string(text)) == "":
		return "", usagef("there is no statement on standard input")
	}
	return string(text), nil
}

func (a *app) showSQL(f format, answer audit.SQLAnswer, limit int) error {
	switch {
	case f.whole():
		if err := a.printWhole(f, answer); err != nil {
			return err
		}
	case f == formatCSV:
		if err := a.writeCSV(answer); err != nil {
			return err
		}
	default:
		p := a.newPrinter(f, answer.Columns...)
		for _, row := range answer.Rows {
			if err := p.add(line{cells: func() []string { return sqlCells(row) }}); err != nil {
				return err
			}
		}
		if err := p.end(); err != nil {
			return err
		}
		a.sayf("%s rows (event %d)", count(len(answer.Rows)), answer.Through)
	}
	a.sayMissing(answer.Basis)
	switch {
	case answer.More && len(answer.Rows) < limit:
		a.sayf("there are more rows: %s is what fits into the %d MiB of an answer; ask for less of each, or export", count(len(answer.Rows)), audit.MaxSQLBytes>>20)
	case answer.More && limit < audit.MaxSQLRows:
		a.sayf("there are more rows than the limit of %d: give a higher --limit, up to %d", limit, audit.MaxSQLRows)
	case answer.More:
		a.sayf("there are more rows than the %d of one answer: narrow the question, or export", limit)
	}
	return nil
}

func (a *app) writeCSV(answer audit.SQLAnswer) error {
	w := csv.NewWriter(a.Stdout)
	err := w.Write(answer.Columns)
	for _, row := range answer.Rows {
		err = errors.CombineErrors(err, w.Write(sqlCells(row)))
	}
	w.Flush()
	return errors.Wrap(errors.CombineErrors(err, w.Error()), "write the output")
}

// sqlCells gives a row's values as text. Null is empty.
func sqlCells(row []any) []string {
	cells := make([]string, len(row))
	for i, v := range row {
		switch v := v.(type) {
		case nil:
		case string:
			cells[i] = v
		case float64:
			cells[i] = strconv.FormatFloat(v, 'f', -1, 64)
		case bool:
			cells[i] = strconv.FormatBool(v)
		case json.Number:
			cells[i] = v.String()
		}
	}
	return cells
}

func (a *app) showSchema(f format, schema audit.SQLSchema) error {
	if f.whole() {
		return a.printWhole(f, schema)
	}
	var rows audit.SQLAnswer
	rows.Columns = []string{"TABLE", "COLUMN", "TYPE", "ABOUT"}
	for _, t := range schema.Tables {
		kind := "table"
		if t.View {
			kind = "view"
		}
		rows.Rows = append(rows.Rows, []any{t.Name, "", kind, t.About})
		for _, c := range t.Columns {
			rows.Rows = append(rows.Rows, []any{t.Name, c.Name, c.Type, c.About})
		}
	}
	if f == formatCSV {
		return a.writeCSV(rows)
	}
	p := a.newPrinter(f, rows.Columns...)
	for _, row := range rows.Rows {
		if err := p.add(line{cells: func() []string { return sqlCells(row) }}); err != nil {
			return err
		}
	}
	return p.end()
}
