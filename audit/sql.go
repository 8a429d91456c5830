package audit

import (
	"bytes"
	"encoding/json"
	"time"
)

// Questions in SQL: catenary.query.sql and catenary.query.sql-schema.
const (
	QuestionSQL       = "sql"
	QuestionSQLSchema = "sql-schema"
)

// Bounds of a question in SQL. One that needs more is better answered by an export.
const (
	// MaxSQLTime bounds how long a statement may run.
	MaxSQLTime = 30 * time.Second
	// DefaultSQLTime is how long it may run when the question does not say.
	DefaultSQLTime = 10 * time.Second
	// MaxSQLRows bounds the rows of an answer.
	MaxSQLRows = 10_000
	// MaxSQLBytes bounds the values of an answer.
	MaxSQLBytes = 8 << 20
)

// SQLQuestion is one statement that reads, in SQLite's SQL, over the tables and views that SQLSchema lists.
type SQLQuestion struct {
	Query string `json:"query"`
	// Arguments stand for the question marks of the statement: text, numbers, true, false or null.
	Arguments []any `json:"arguments,omitempty"`
	// Limit bounds the rows, MaxSQLRows at most and by default.
	Limit int `json:"limit,omitempty"`
	// Timeout bounds how long it may run, MaxSQLTime at most, DefaultSQLTime by default.
	Timeout Duration `json:"timeout,omitempty"`
}

// SQLAnswer is a table.
type SQLAnswer struct {
	Columns []string `json:"columns"`
	// Rows hold text, numbers as [json.Number], booleans and null; what is binary is text in base64.
	Rows [][]any `json:"rows"`
	// More says that there are more rows than the limits allow.
	More bool `json:"more,omitempty"`
	Basis
}

// UnmarshalJSON keeps numbers as they are written: a float64 holds no large one, and the tables' times are such.
func (a *SQLAnswer) UnmarshalJSON(text []byte) error {
	type plain SQLAnswer
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	return d.Decode((*plain)(a))
}

// SQLSchemaQuestion asks for the tables and views that statements may read.
type SQLSchemaQuestion struct{}

// SQLSchema lists them.
type SQLSchema struct {
	Tables []SQLTable `json:"tables"`
	// DDL makes the same tables and views anew.
	DDL string `json:"ddl"`
}

// SQLTable is a table or view.
type SQLTable struct {
	Name string `json:"name"`
	// View says that it is one of the views that are meant for people; the tables under them may change.
	View    bool        `json:"view,omitempty"`
	About   string      `json:"about,omitempty"`
	Columns []SQLColumn `json:"columns"`
}

// SQLColumn is a column of a table or view.
type SQLColumn struct {
	Name  string `json:"name"`
	Type  string `json:"type,omitempty"`
	About string `json:"about,omitempty"`
}
