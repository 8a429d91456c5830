package proof

import (
	"encoding/json"
	"io"
	"iter"

	"github.com/cockroachdb/errors"

	"catenary/es"
	"catenary/internal/ndjson"
)

// ShownFunc compares what a line of an export shows to people with the event that stands in it as it was stored. The members are those
// beside the stored event, each once.
type ShownFunc func(members map[string]json.RawMessage, stored es.Message) error

// storedMember is the member of a line that holds the event as it was stored.
const storedMember = "stored"

// ReadExport gives the events of an export of events as lines of JSON. Each has in "stored" all that the event's hash covers; what stands
// beside for people is given to shown, if there is one. Names are taken exactly, and none may stand twice: another reader would otherwise
// see another event than the one that is checked. It ends after the first error, which is marked [ErrMalformed] for a line that is not one
// of an export, and [ErrShown] for one that shows something else than is stored.
func ReadExport(from io.Reader, shown ShownFunc) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		lines := json.NewDecoder(from)
		for n := 1; ; n++ {
			var line json.RawMessage
			err := lines.Decode(&line)
			if errors.Is(err, io.EOF) {
				return
			}
			var r Record
			var members map[string]json.RawMessage
			if err == nil {
				r, members, err = readLine(line)
			}
			if err != nil {
				err = errors.WithHint(errors.Mark(errors.Wrapf(err, "line %d of the export", n), ErrMalformed), "make one with catenary export events --format ndjson")
			} else if shown != nil {
				err = shown(members, r.Message())
				err = errors.Mark(errors.Wrapf(err, "line %d of the export, event %d", n, r.Sequence), ErrShown)
			}
			if !yield(r, err) || err != nil {
				return
			}
		}
	}
}

// readLine gives the stored event of a line, and the members beside it.
func readLine(line []byte) (Record, map[string]json.RawMessage, error) {
	members, err := membersOf(line)
	if err != nil {
		return Record{}, nil, err
	}
	if members[storedMember] == nil {
		return Record{}, nil, errors.New("it has no stored event")
	}
	stored, err := membersOf(members[storedMember])
	if err != nil {
		return Record{}, nil, errors.Wrap(err, storedMember)
	}
	delete(members, storedMember)
	var r Record
	for name, into := range map[string]any{
		"sequence": &r.Sequence, "subject": &r.Subject, "headers": &r.Headers, "body": &r.Body, "previous": &r.Previous, "hash": &r.Hash,
	} {
		value := stored[name]
		if value == nil {
			return r, nil, errors.Newf("%s has no %s", storedMember, name)
		}
		if err := json.Unmarshal(value, into); err != nil {
			return r, nil, errors.Wrapf(err, "%s of %s", name, storedMember)
		}
		delete(stored, name)
	}
	for name := range stored {
		return r, nil, errors.Newf("%s has a member %.80q, which no hash covers", storedMember, name)
	}
	return r, members, nil
}

// membersOf gives the members of a JSON object, whose names are taken exactly.
func membersOf(object []byte) (map[string]json.RawMessage, error) {
	members := map[string]json.RawMessage{}
	err := ndjson.ScanObject(object, func(name, value []byte) error {
		text, err := ndjson.Text(name)
		if err != nil {
			return err
		}
		if _, twice := members[text]; twice {
			return errors.Newf("the member %.80q stands there twice", text)
		}
		members[text] = value
		return nil
	})
	return members, err
}
