package store

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
)

// foldVersion is raised with every change of a fold that gives other rows for the same events. A change of the schema counts by
// itself.
const foldVersion = 1

// column is a column of a table or view.
type column struct {
	name string
	// kind is the type of a table's column, and of a view's what stands in it, for people.
	kind string
	// from is the expression that gives a view's column.
	from  string
	about string
}

// table is a table or view of the file.
type table struct {
	name    string
	about   string
	columns []column
	// rest ends a table's definition: its key, and its options.
	key     string
	options string
	// from is where a view takes its columns from. Tables have none.
	from string
	// virtual is the definition of a virtual table.
	virtual string
}

func (t table) ddl() string {
	var b strings.Builder
	switch {
	case t.virtual != "":
		fmt.Fprintf(&b, "CREATE VIRTUAL TABLE %s USING %s", t.name, t.virtual)
	case t.from != "":
		fmt.Fprintf(&b, "CREATE VIEW %s AS SELECT\n", t.name)
		for i, c := range t.columns {
			fmt.Fprintf(&b, "  %s AS %s%s\n", c.from, quote(c.name), comma(i, len(t.columns)))
		}
		b.WriteString(t.from)
	default:
		fmt.Fprintf(&b, "CREATE TABLE %s (\n", quote(t.name))
		for i, c := range t.columns {
			more := comma(i, len(t.columns))
			if t.key != "" {
				more = ","
			}
			fmt.Fprintf(&b, "  %s %s%s\n", quote(c.name), c.kind, more)
		}
		if t.key != "" {
			fmt.Fprintf(&b, "  %s\n", t.key)
		}
		fmt.Fprintf(&b, ") %s", t.options)
	}
	b.WriteString(";\n")
	return b.String()
}

func comma(i, n int) string {
	if i < n-1 {
		return ","
	}
	return ""
}

// quote writes a name so that it is none of SQL's own words, where it would be.
func quote(name string) string {
	switch name {
	case "commit", "key", "to", "from", "order", "by":
		return `"` + name + `"`
	}
	return name
}

const (
	strict       = "STRICT"
	withoutRowID = "STRICT, WITHOUT ROWID"
)

// tables are what the views are made of. Their columns may change with every version of the program; the views' do not.
func tables() []table {
	return []table{
		{
			name: "meta", about: "What the file says of itself.", options: withoutRowID,
			columns: []column{
				{name: "name", kind: "TEXT PRIMARY KEY", about: "position: the last event taken in; hash: that event's; recorded: when it was recorded; known: the newest such time; schema: which program's file it is; refused: the last refused command taken in; missing: how many rows park and skip have"},
				{name: "value", kind: "ANY"},
			},
		},
		{
			name: "event", about: "Every event, as the log shows it.", options: strict,
			columns: []column{
				{name: "sequence", kind: "INTEGER PRIMARY KEY"},
				{name: "id", kind: "TEXT NOT NULL"},
				{name: "type", kind: "TEXT NOT NULL"},
				{name: "aggregate", kind: "TEXT NOT NULL"},
				{name: "key", kind: "TEXT NOT NULL"},
				{name: "version", kind: "INTEGER NOT NULL"},
				{name: "recorded", kind: "INTEGER NOT NULL"},
				{name: "effective", kind: "INTEGER NOT NULL"},
				{name: "backfill", kind: "INTEGER NOT NULL"},
				{name: "command", kind: "TEXT"},
				{name: "actor", kind: "TEXT"},
				{name: "on_behalf_of", kind: "TEXT"},
				{name: "causation", kind: "TEXT"},
				{name: "correlation", kind: "TEXT"},
				{name: "node", kind: "TEXT", about: "the node it concerns"},
				{name: "module", kind: "TEXT", about: "the module it concerns"},
				{name: "data", kind: "TEXT", about: "the body as JSON; NULL where it is too long or can't be read"},
				{name: "problem", kind: "TEXT", about: "why it can't be read"},
			},
		},
		{
			name: "word", about: "The words of every event, by its sequence (rowid): to be searched with MATCH, not listed.",
			virtual: "fts5(words, content='', columnsize=0, detail='none', tokenize=\"unicode61 remove_diacritics 2\")",
		},
		{
			name: "key", about: "What rows of record tell of.", options: strict,
			columns: []column{
				{name: "id", kind: "INTEGER PRIMARY KEY"},
				{name: "kind", kind: "TEXT NOT NULL", about: "assignment (told), observation (ran), module, node, commit, build, publication, freeze"},
				{name: "key", kind: "TEXT NOT NULL"},
				{name: "node", kind: "TEXT"},
				{name: "module", kind: "TEXT"},
				{name: "known", kind: "INTEGER NOT NULL", about: "since when anything is known of it"},
			},
		},
		{
			name: "record", about: "What one event told of one key, and when that was so as far as is known now.", options: strict,
			columns: []column{
				{name: "id", kind: "INTEGER PRIMARY KEY"},
				{name: "key", kind: "INTEGER NOT NULL"},
				{name: "sequence", kind: "INTEGER NOT NULL"},
				{name: "valid_from", kind: "INTEGER NOT NULL"},
				{name: "valid_to", kind: "INTEGER NOT NULL", about: "the largest number where it has no end"},
				{name: "known_from", kind: "INTEGER NOT NULL"},
				{name: "outlook_from", kind: "INTEGER", about: "the time from here, when something else became true, until outlook_to was thought to be so too, until outlook_known; NULL where that was never so"},
				{name: "outlook_to", kind: "INTEGER"},
				{name: "outlook_known", kind: "INTEGER"},
				{name: "stands", kind: "INTEGER NOT NULL"},
				{name: "turn", kind: "INTEGER", about: "what it changed of what a node is told: 1 started, 2 changed, 3 changed to a lower version, 4 changed to what it was told before, 5 ended; NULL where it changed nothing"},
				{name: "state", kind: "TEXT"},
				{name: "artifact", kind: "TEXT"},
				{name: "package", kind: "TEXT"},
				{name: "version", kind: "TEXT"},
				{name: "build", kind: "TEXT"},
				{name: "commit", kind: "TEXT"},
				{name: "rollout", kind: "TEXT"},
				{name: "required_by", kind: "TEXT", about: "a JSON list"},
				{name: "assigned", kind: "INTEGER"},
				{name: "since", kind: "INTEGER NOT NULL"},
				{name: "reported", kind: "INTEGER"},
				{name: "healthy", kind: "INTEGER"},
				{name: "drift", kind: "TEXT"},
				{name: "value", kind: "TEXT", about: "the record's JSON; of an assignment its provisioning"},
			},
		},
		{
			name: "past", about: "What else was thought of rows of record: pieces that were cut off later than their outlooks, by what was added to the history.", options: strict,
			columns: []column{
				{name: "key", kind: "INTEGER NOT NULL"},
				{name: "known_to", kind: "INTEGER NOT NULL"},
				{name: "record", kind: "INTEGER NOT NULL"},
				{name: "known_from", kind: "INTEGER NOT NULL"},
				{name: "valid_from", kind: "INTEGER NOT NULL"},
				{name: "valid_to", kind: "INTEGER NOT NULL"},
			},
		},
		{
			name: "carrier", about: "Which lists the manifests of builds have.", options: withoutRowID, key: `PRIMARY KEY (build, list)`,
			columns: []column{
				{name: "build", kind: "INTEGER NOT NULL", about: "the id of the build's key"},
				{name: "list", kind: "INTEGER NOT NULL"},
			},
		},
		{
			name: "carried", about: "The modules and commits in the lists of manifests; what one does not say is empty. Builds that were released together share a list.",
			options: withoutRowID, key: `PRIMARY KEY (list, module, version, repository, "commit")`,
			columns: []column{
				{name: "list", kind: "INTEGER NOT NULL", about: "made of what it says"},
				{name: "module", kind: "TEXT NOT NULL"},
				{name: "version", kind: "TEXT NOT NULL"},
				{name: "repository", kind: "TEXT NOT NULL"},
				{name: "commit", kind: "TEXT NOT NULL"},
			},
		},
		{
			name: "park", about: "Instances of which nothing is folded any more, from an event on that could not be.", options: withoutRowID,
			key: `PRIMARY KEY (aggregate, "key")`,
			columns: []column{
				{name: "aggregate", kind: "TEXT NOT NULL"},
				{name: "key", kind: "TEXT NOT NULL"},
				{name: "event", kind: "INTEGER NOT NULL", about: "the first event that could not be folded"},
				{name: "type", kind: "TEXT NOT NULL"},
				{name: "why", kind: "TEXT NOT NULL", about: "unknown-type, unreadable or unfolded"},
				{name: "said", kind: "TEXT", about: "the same in full"},
				{name: "behind", kind: "INTEGER NOT NULL", about: "how many events of the instance came after it"},
				{name: "last", kind: "INTEGER NOT NULL", about: "the last of them"},
			},
		},
		{
			name: "skip", about: "Events that somebody had left out.", options: strict,
			columns: []column{
				{name: "event", kind: "INTEGER PRIMARY KEY"},
				{name: "aggregate", kind: "TEXT", about: "NULL where nobody can say whose event it is"},
				{name: "key", kind: "TEXT"},
				{name: "type", kind: "TEXT"},
				{name: "reason", kind: "TEXT NOT NULL"},
				{name: "by", kind: "TEXT", about: "who decided it, an opaque id"},
				{name: "order", kind: "INTEGER NOT NULL", about: "the event that says so"},
				{name: "at", kind: "INTEGER NOT NULL", about: "when it was decided"},
			},
		},
		{
			name: "refusal", about: "Commands that were not done.", options: strict,
			columns: []column{
				{name: "sequence", kind: "INTEGER PRIMARY KEY"},
				{name: "recorded", kind: "INTEGER NOT NULL"},
				{name: "command", kind: "TEXT"},
				{name: "digest", kind: "TEXT"},
				{name: "aggregate", kind: "TEXT"},
				{name: "key", kind: "TEXT"},
				{name: "verb", kind: "TEXT"},
				{name: "actor", kind: "TEXT"},
				{name: "on_behalf_of", kind: "TEXT"},
				{name: "status", kind: "TEXT NOT NULL"},
				{name: "code", kind: "TEXT"},
				{name: "message", kind: "TEXT"},
				{name: "hint", kind: "TEXT"},
				{name: "causation", kind: "TEXT"},
				{name: "correlation", kind: "TEXT"},
			},
		},
		{
			name: "actor", about: "Names behind opaque ids. It can be emptied; nothing else holds a name.", options: withoutRowID,
			columns: []column{
				{name: "id", kind: "TEXT PRIMARY KEY"},
				{name: "name", kind: "TEXT NOT NULL"},
				{name: "account", kind: "TEXT"},
			},
		},
	}
}

// index is an index of a table. A new file has none until it has caught up: made at once they take a third of the time. The few
// that the fold itself may need are made when it does.
type index struct {
	name, on string
	unique   bool
	folds    bool
}

func indexes() []index {
	return []index{
		{name: "key_of", on: `"key" (kind, "key")`, unique: true, folds: true},
		{name: "record_of", on: `record ("key", valid_from)`, folds: true},
		{name: "record_known", on: `record ("key", known_from)`},
		{name: "past_of", on: `past ("key", known_to)`},
		{name: "record_turn", on: `record (turn, "key", valid_from) WHERE turn IS NOT NULL`},
		{name: "record_artifact", on: `record (artifact) WHERE artifact IS NOT NULL`},
		{name: "record_package", on: `record (package, version) WHERE package IS NOT NULL`},
		{name: "record_build", on: `record (build) WHERE build IS NOT NULL`},
		{name: "record_commit", on: `record ("commit") WHERE "commit" IS NOT NULL`},
		{name: "key_node", on: `"key" (kind, node, module)`},
		{name: "key_module", on: `"key" (kind, module, node)`},
		{name: "event_recorded", on: `event (recorded)`},
		{name: "event_key", on: `event ("key", aggregate)`},
		{name: "event_actor", on: `event (actor)`},
		{name: "event_on_behalf_of", on: `event (on_behalf_of) WHERE on_behalf_of IS NOT NULL`},
		{name: "event_command", on: `event (command)`},
		{name: "event_correlation", on: `event (correlation) WHERE correlation IS NOT NULL`},
		{name: "event_node", on: `event (node) WHERE node IS NOT NULL`},
		{name: "event_module", on: `event (module) WHERE module IS NOT NULL`},
		{name: "carrier_list", on: `carrier (list)`},
		{name: "carried_commit", on: `carried ("commit")`},
		{name: "refusal_recorded", on: `refusal (recorded)`},
	}
}

func (i index) ddl() string {
	return fmt.Sprintf("CREATE INDEX IF NOT EXISTS %s ON %s;\n", i.name, i.on)
}

// DDL makes all tables, indexes and views.
func DDL() string {
	var b strings.Builder
	for _, t := range tables() {
		b.WriteString(t.ddl())
	}
	for _, i := range indexes() {
		b.WriteString(i.ddl())
	}
	for _, v := range views() {
		b.WriteString(v.ddl())
	}
	return b.String()
}

// schemaMark names the schema and the fold: a file of another one is built anew.
func schemaMark() string {
	sum := sha256.Sum256([]byte(DDL()))
	return strconv.Itoa(foldVersion) + "-" + hex.EncodeToString(sum[:8])
}
