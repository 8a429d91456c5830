package export

import (
	"bytes"
	"encoding/json"
	"maps"
	"reflect"
	"slices"

	"github.com/cockroachdb/errors"

	"catenary/audit"
	"catenary/es"
)

// CheckShown compares what a line of exported events shows to people with the event that is stored in it: each member MUST say what this
// program would write of the stored event, and there MUST be no others. How the JSON is written, and in which order, does not matter. The
// registry reads stored events.
func CheckShown(registry *es.Registry) func(members map[string]json.RawMessage, stored es.Message) error {
	return func(members map[string]json.RawMessage, stored es.Message) error {
		item := audit.NewItem(registry, stored)
		item.Body = nil // it is the stored one
		text, err := json.Marshal(item)
		if err != nil {
			return errors.Wrap(err, "show the stored event")
		}
		want := map[string]json.RawMessage{}
		if err := json.Unmarshal(text, &want); err != nil {
			return errors.Wrap(err, "show the stored event")
		}
		for _, name := range slices.Sorted(maps.Keys(want)) {
			shown, there := members[name]
			switch same, err := sameJSON(shown, want[name]); {
			case !there:
				return otherwise("it does not show %s, and the stored event says %.200s", name, want[name])
			case err != nil:
				return errors.Wrap(err, name)
			case !same:
				return otherwise("it shows %s as %.200s, and the stored event says %.200s", name, shown, want[name])
			}
		}
		for _, name := range slices.Sorted(maps.Keys(members)) {
			if want[name] == nil {
				return otherwise("it shows %.80s as %.200s, of which the stored event says nothing", name, members[name])
			}
		}
		return nil
	}
}

func otherwise(format string, args ...any) error {
	return errors.WithHint(errors.Newf(format, args...),
		"believe what is stored; or, if another version of the program has written the export, check it with that")
}

// sameJSON says whether two JSON texts say the same. It gives an error for one that says two things at once.
func sameJSON(shown, want json.RawMessage) (bool, error) {
	if shown == nil {
		return false, nil
	}
	a, err := unambiguous(shown)
	if err != nil {
		return false, err
	}
	b, err := unambiguous(want)
	return err == nil && reflect.DeepEqual(a, b), err
}

// unambiguous reads a JSON value. Of a member that stands twice in an object one reader takes the first and another the last, so that is an
// error: what is read has fewer words then than the text.
func unambiguous(text []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, errors.Wrap(err, "not JSON")
	}
	again, err := json.Marshal(v)
	if err != nil {
		return nil, errors.Wrap(err, "not JSON")
	}
	if words(text) != words(again) {
		return nil, otherwise("a member stands twice in %.200s", text)
	}
	return v, nil
}

// words counts the tokens of valid JSON, which end with an error.
func words(text []byte) int {
	d := json.NewDecoder(bytes.NewReader(text))
	for n := 0; ; n++ {
		if _, err := d.Token(); err != nil {
			return n
		}
	}
}
