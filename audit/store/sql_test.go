package store

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/errors"
	gocmp "github.com/google/go-cmp/cmp"

	"catenary/audit"
)

// testSQL asks in SQL, also for what must not be done.
func testSQL(t *testing.T, s *Store) {
	for query, want := range map[string]string{
		`SELECT node, module, version FROM assignments WHERE stands AND valid_to IS NULL ORDER BY node`:             `[["n1","web","1.9"],["n2","web",null]]`,
		`SELECT count(*), 1.5, NULL, x'ff', 'ä' FROM events`:                                                        `[[13,1.5,null,"/w==","ä"]]`,
		`SELECT valid_from, valid_to FROM assignments WHERE version = '1.10'`:                                       `[["2026-01-01T00:04:00.000000000Z","2026-01-01T00:08:00.000000000Z"]]`,
		`SELECT key, module, json_extract(value, '$.published.package.version') FROM builds WHERE valid_to IS NULL`: `[["b1","web","1.10"]]`,
		`SELECT commit_.author, actors.name FROM commits commit_ JOIN actors ON actors.id = commit_.author`:         `[["a-ann","Ann"]]`,
		`SELECT healthy, version FROM observations WHERE valid_to IS NULL`:                                          `[[0,"1.10"]]`,
		`SELECT status FROM refused ORDER BY sequence`:                                                              `[["rejected"],["denied"]]`,
		`SELECT module, "commit" FROM carried_by ORDER BY module`:                                                   `[["lib","badcafe7654321"],["plain",""],["web","c0ffee123456"]]`,
		`SELECT package, version, build FROM publications`:                                                          `[["web","1.10","b1"]]`,
		`WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3) SELECT i FROM n`:               `[[1],[2],[3]]`,
		`SELECT version FROM assignments_known WHERE node = 'n1' AND known_to IS NULL ORDER BY valid_from`:          `[["1.10"],["1.9"],["1.9"]]`,
	} {
		found, err := s.SQL(t.Context(), audit.SQLQuestion{Query: query})
		if err != nil {
			t.Errorf("%s: %v", query, err)
			continue
		}
		got, err := json.Marshal(found.Rows)
		if diff := gocmp.Diff(want, string(got)); diff != "" || err != nil || found.Through != 13 {
			t.Errorf("%s (%v):\n%s", query, err, diff)
		}
	}
	for _, query := range []string{
		`DELETE FROM actor`, `UPDATE event SET actor = 'x'`, `INSERT INTO actor VALUES ('x', 'y', 'z')`, `DROP TABLE event`, `CREATE TABLE x (a)`, `CREATE TEMP TABLE x (a)`,
		`PRAGMA query_only = 0`, `PRAGMA journal_mode = DELETE`, `PRAGMA data_version = 3`, `ATTACH 'other.db' AS other`, `VACUUM`, `BEGIN IMMEDIATE`, `COMMIT`, `ROLLBACK`, `SAVEPOINT x`, `SELECT 1; COMMIT`,
		`SELECT load_extension('x')`, `SELECT 1; DELETE FROM actor`, `SELEKT 1`, `SELECT * FROM nothing`, `SELECT zeroblob(100000000)`, `REINDEX`, `ANALYZE`,
		`WITH x AS (SELECT 1) DELETE FROM actor`, `SELECT * FROM pragma_database_list`, `INSERT INTO word (word) VALUES ('optimize')`,
	} {
		if found, err := s.SQL(t.Context(), audit.SQLQuestion{Query: query}); !errors.Is(err, audit.ErrInvalid) {
			t.Errorf("%s gave %v (%v)", query, found.Rows, err)
		}
	}
	if _, err := s.SQL(t.Context(), audit.SQLQuestion{Query: "SELECT ?", Arguments: []any{[]any{1}}}); !errors.Is(err, audit.ErrInvalid) {
		t.Errorf("a list as an argument gave %v", err)
	}
	endless := `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n`
	_, err := s.SQL(t.Context(), audit.SQLQuestion{Query: endless, Timeout: audit.Duration(50 * time.Millisecond)})
	if !errors.Is(err, audit.ErrTooLong) || !strings.Contains(err.Error(), "50ms") || !strings.Contains(errors.FlattenHints(err), "30s at most") {
		t.Errorf("a statement without an end gave %v, with the hint %q", err, errors.FlattenHints(err))
	}
	for name, c := range map[string]struct {
		q    audit.SQLQuestion
		says string
	}{
		"a value is missing":      {audit.SQLQuestion{Query: "SELECT ?"}, "more question marks than values: 0 are given"},
		"one of two is missing":   {audit.SQLQuestion{Query: "SELECT ?, ?", Arguments: []any{"x"}}, "more question marks than values: 1 are given"},
		"a value too many":        {audit.SQLQuestion{Query: "SELECT ?", Arguments: []any{"x", "y"}}, "fewer question marks than values are given: 2"},
		"a value for nothing":     {audit.SQLQuestion{Query: "SELECT 1", Arguments: []any{"x"}}, "fewer question marks"},
		"a parameter with a name": {audit.SQLQuestion{Query: "SELECT :node"}, "parameters with names"},
		"two statements":          {audit.SQLQuestion{Query: "SELECT 1 AS \";\"; /* ; */ SELECT 2"}, "several statements"},
		"nothing but a comment":   {audit.SQLQuestion{Query: "-- SELECT 1"}, "there is no statement"},
		"it writes":               {audit.SQLQuestion{Query: "DELETE FROM actor"}, "does more than read"},
		"it is misspelt":          {audit.SQLQuestion{Query: "SELEKT 1"}, "can't be run"},
		"a value is huge":         {audit.SQLQuestion{Query: "SELECT zeroblob(100000000)"}, "is larger than the 4194304 bytes"},
		"it fails at a row":       {audit.SQLQuestion{Query: "SELECT json_extract('{', '$')"}, "malformed JSON"},
	} {
		if _, err := s.SQL(t.Context(), c.q); !errors.Is(err, audit.ErrInvalid) || !strings.Contains(err.Error(), c.says) || errors.FlattenHints(err) == "" {
			t.Errorf("%s: it gave %v with the hint %q, want %q", name, err, errors.FlattenHints(err), c.says)
		}
	}
	for _, one := range []string{"SELECT ';', \"key\" FROM events; -- ; and no more\n", "SELECT 'it''s; 1';;", "SELECT sequence AS [a;b] FROM events /* ; */ ;", "SELECT 1; /* open", "SELECT 4 - -1"} {
		if _, err := s.SQL(t.Context(), audit.SQLQuestion{Query: one}); err != nil {
			t.Errorf("%s: %v", one, err)
		}
	}
	cut, err := s.SQL(t.Context(), audit.SQLQuestion{Query: "SELECT sequence FROM events WHERE sequence > ?", Arguments: []any{int64(3)}, Limit: 2})
	if err != nil || len(cut.Rows) != 2 || !cut.More {
		t.Errorf("two rows of many: %+v (%v)", cut, err)
	}
	if rows := ask(t, s, "SELECT count(*) FROM actors"); rows[0][0] != json.Number("1") {
		t.Errorf("after all that the actors are %v", rows)
	}
}

// TestSQLSchema: what the schema says is what is there.
func TestSQLSchema(t *testing.T) {
	t.Parallel()
	s := smallChain(t)
	schema, err := s.SQLSchema(t.Context(), audit.SQLSchemaQuestion{})
	if err != nil {
		t.Fatal(err)
	}
	for _, table := range schema.Tables {
		if table.Name == "word" { // it can be searched, not listed
			if rows := ask(t, s, "SELECT count(*) FROM word JOIN event e ON e.sequence = word.rowid WHERE word MATCH 'web'"); rows[0][0] == json.Number("0") {
				t.Errorf("a word that many events have is in %v", rows)
			}
			continue
		}
		found, err := s.SQL(t.Context(), audit.SQLQuestion{Query: "SELECT * FROM " + quote(table.Name)})
		if err != nil {
			t.Errorf("%s: %v", table.Name, err)
			continue
		}
		var want []string
		for _, c := range table.Columns {
			want = append(want, c.Name)
		}
		if diff := gocmp.Diff(want, found.Columns); diff != "" {
			t.Errorf("columns of %s (-said +there):\n%s", table.Name, diff)
		}
	}
}
