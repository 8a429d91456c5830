package es

import (
	"bytes"
	"reflect"

	"github.com/cockroachdb/errors"
	"github.com/vmihailenco/msgpack/v5"
)

// Codec turns event data into bytes and back.
//
// Marshal MUST be deterministic: equal values give equal bytes. Unmarshal MUST ignore fields it does not know, so that a
// field added later does not stop an older program.
type Codec interface {
	ContentType() string
	Marshal(v any) ([]byte, error)
	Unmarshal(data []byte, v any) error
}

// ContentTypeMsgpack is the content type of stored events.
const ContentTypeMsgpack = "application/msgpack"

// Msgpack is the codec of stored events. Field names are those of the json tags, so that an event reads the same in the
// stream and on a screen.
//
// A time is stored as the standard's timestamp (extension -1: seconds and nanoseconds since 1970, without a zone), so that
// one instant has one form, and is read as UTC wherever the program runs. Of the maps only map[string]string,
// map[string]bool and map[string]any have sorted keys: [Msgpack.CheckType] finds the others. Only omitempty leaves a field
// out.
type Msgpack struct{}

// ContentType returns application/msgpack.
func (Msgpack) ContentType() string { return ContentTypeMsgpack }

// Marshal encodes with sorted map keys and the shortest integers.
func (Msgpack) Marshal(v any) ([]byte, error) {
	var buf bytes.Buffer
	buf.Grow(256) // most events fit
	enc := msgpack.GetEncoder()
	defer msgpack.PutEncoder(enc)
	enc.Reset(&buf)
	enc.SetCustomStructTag("json")
	enc.SetSortMapKeys(true)
	enc.UseCompactInts(true)
	if err := enc.Encode(v); err != nil {
		return nil, errors.Wrapf(err, "encode %T", v)
	}
	return buf.Bytes(), nil
}

// Unmarshal decodes into the value v points to. Trailing bytes are an error.
func (c Msgpack) Unmarshal(data []byte, v any) error {
	if err := c.UnmarshalTimeless(data, v); err != nil {
		return err
	}
	inUTC(reflect.ValueOf(v))
	return nil
}

// UnmarshalTimeless decodes into a value whose type holds no time.
func (Msgpack) UnmarshalTimeless(data []byte, v any) error {
	r := bytes.NewReader(data)
	dec := msgpack.GetDecoder()
	defer msgpack.PutDecoder(dec)
	dec.Reset(r)
	dec.SetCustomStructTag("json")
	if err := dec.Decode(v); err != nil {
		return errors.Wrapf(err, "decode %T", v)
	}
	if r.Len() > 0 {
		return errors.Newf("decode %T: %d bytes after its end", v, r.Len())
	}
	return nil
}

// CheckType gives an error for a type that Marshal would not always give the same bytes for: one that holds a map whose
// keys the encoder leaves in random order.
func (Msgpack) CheckType(t reflect.Type) error { return checkMaps(t, map[reflect.Type]bool{}) }

func checkMaps(t reflect.Type, seen map[reflect.Type]bool) error {
	if seen[t] {
		return nil
	}
	seen[t] = true
	switch t.Kind() {
	case reflect.Struct:
		for i := range t.NumField() {
			if f := t.Field(i); f.IsExported() {
				if err := checkMaps(f.Type, seen); err != nil {
					return errors.Wrapf(err, "%v.%s", t, f.Name)
				}
			}
		}
	case reflect.Pointer, reflect.Slice, reflect.Array:
		return checkMaps(t.Elem(), seen)
	case reflect.Map:
		elem := t.Elem()
		if t.Key() != reflect.TypeFor[string]() || elem != reflect.TypeFor[string]() && elem != reflect.TypeFor[bool]() && elem != reflect.TypeFor[any]() {
			return errors.Newf("%v would be stored in random order: use map[string]string, or a slice in a fixed order", t)
		}
	}
	return nil
}
