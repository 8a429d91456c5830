package chain

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/cockroachdb/errors"

	"catenary/events"
)

// rawHolder is a record with a field that is JSON kept byte for byte. No record has more than one.
type rawHolder interface {
	// raw gives the field's name and where it stands.
	raw() (name string, field *events.Raw)
}

func (b *Build) raw() (string, *events.Raw)      { return "manifest", &b.Manifest }
func (a *Assignment) raw() (string, *events.Raw) { return "provisioning", &a.Provisioning }
func (m *Merge) raw() (string, *events.Raw)      { return "event", &m.Event }
func (s *Strategy) raw() (string, *events.Raw)   { return "strategy", &s.Strategy }

// standIn stands for a raw field while the rest of a record is encoded. The encoder never writes it by itself: no
// record has a map of numbers, and inside of text the quotes would be escaped.
var standIn = []byte(`{"":0}`)

// Encode gives a record's JSON. Equal records give equal bytes; text comes back byte for byte, without HTML escapes, and a
// field that was given as JSON stands in it as it was given, white space included. It gives errors for what has no such
// form: text that is not UTF-8, a raw field that is not JSON, a time after the year 9999.
func Encode[T any](record T) ([]byte, error) {
	var given events.Raw
	if h, ok := any(&record).(rawHolder); ok {
		name, field := h.raw()
		if given = *field; len(given) > 0 {
			if !json.Valid(given) {
				return nil, errors.Newf("encode %T: %s is not JSON", record, name)
			}
			*field = standIn // the record is ours: it was passed by value
		}
	}
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(record); err != nil {
		return nil, errors.Wrapf(err, "encode %T", record)
	}
	out := bytes.TrimSuffix(buf.Bytes(), []byte("\n"))
	if textWasReplaced(out) {
		return nil, errors.Newf("encode %T: it holds text that is not valid UTF-8, which would not come back byte for byte", record)
	}
	if len(given) > 0 {
		out = bytes.Replace(out, standIn, given, 1)
	}
	return out, nil
}

// textWasReplaced says whether the encoder put a replacement character in the place of bytes that are not UTF-8: it writes
// that one as an escape, and one that was in the text as it is.
func textWasReplaced(out []byte) bool {
	escape := []byte(`\ufffd`)
	for at := 0; ; at++ {
		i := bytes.Index(out[at:], escape)
		if i < 0 {
			return false
		}
		at += i
		backslashes := 0
		for at-backslashes >= 0 && out[at-backslashes] == '\\' {
			backslashes++
		}
		if backslashes%2 == 1 { // an even number of them is text that shows backslashes
			return true
		}
	}
}

// Decode reads what [Encode] wrote. Fields it does not know are passed over, so that a field added later does not stop an
// older reader.
func Decode[T any](data []byte) (T, error) {
	var record T
	if err := json.Unmarshal(data, &record); err != nil {
		return record, errors.Wrapf(err, "decode %T", record)
	}
	h, ok := any(&record).(rawHolder)
	if !ok {
		return record, nil
	}
	name, field := h.raw()
	if len(*field) == 0 {
		return record, nil
	}
	given, err := rawField(data, name)
	if err != nil {
		return record, errors.Wrapf(err, "decode %T", record)
	}
	*field = given
	return record, nil
}

// rawField gives all bytes between the field's colon and what ends it. The decoder itself drops the white space around a
// value, but a file given as JSON may well end with a new line.
func rawField(data []byte, name string) (events.Raw, error) {
	dec := json.NewDecoder(bytes.NewReader(data))
	if _, err := dec.Token(); err != nil {
		return nil, err
	}
	var found events.Raw
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return nil, err
		}
		start := int(dec.InputOffset())
		start += bytes.IndexByte(data[start:], ':') + 1
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return nil, err
		}
		if k, ok := key.(string); !ok || !strings.EqualFold(k, name) { // as the decoder itself matches names
			continue
		}
		end := int(dec.InputOffset())
		end += bytes.IndexAny(data[end:], ",}")
		found = bytes.Clone(data[start:end])
	}
	return found, nil
}
