package store

import (
	"encoding/json"

	"catenary/es"
	"catenary/events"
)

// fact is what one event says of one key of one kind: a row of the table record.
type fact struct {
	id, key  int64
	sequence uint64
	// from and to bound when it is so, as far as is known; known is since when that is.
	from, to, known instant
	// outlook is what it was thought to be so beyond, before something better was known.
	outlook outlook
	// stands says whether it holds: that a node is told to run something, or reports to; that a record has not ended.
	stands bool
	// state says why it does not, or which of the kind's states it is in.
	state string
	// turn says what it changed of what a node is told.
	turn turn

	reference  events.Reference
	build      string
	commit     string
	rollout    string
	requiredBy string // JSON
	assigned   instant
	since      instant
	reported   instant
	healthy    *bool
	drift      string
	value      []byte // a record's JSON; of an assignment its provisioning
	stored     bool   // whether the row is in the file, or only in the batch
}

// outlook is a piece of both times: from and to bound when something was thought to be so, known until when that was thought. The zero value
// is none.
type outlook struct{ from, to, known instant }

// same says whether two facts name the same thing to run: by what both of them name.
func (f *fact) same(o *fact) bool {
	switch {
	case !f.reference.IsZero() && !o.reference.IsZero():
		return f.reference.Equal(o.reference)
	case f.build != "" && o.build != "":
		return f.build == o.build
	case f.commit != "" && o.commit != "":
		return f.commit == o.commit
	}
	return f.nameless() && o.nameless()
}

// nameless says that a fact does not name what runs.
func (f *fact) nameless() bool { return f.reference.IsZero() && f.build == "" && f.commit == "" }

// change is a change of one key by an event.
type change struct {
	kind string
	key  string
	// node and module are what the record belongs to.
	node, module string
	fact         *fact
	carried      [][]carried
}

// kind folds events into the facts of one kind of record.
type kind interface {
	// name is what the kind is called in the table key.
	name() string
	// aggregates lists what the kind reads.
	aggregates() []string
	// fold gives what an event says. Before gives what stood before the event's effective time, nil for a key without anything.
	fold(e es.Event, before func(key string) (*fact, error)) ([]change, error)
}

// list gives the JSON of a list of text, nothing for an empty one.
func list(values []string) (string, error) {
	if len(values) == 0 {
		return "", nil
	}
	text, err := json.Marshal(values)
	return string(text), err
}
