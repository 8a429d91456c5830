package es

import (
	"bytes"

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
type Msgpack struct{}

// ContentType returns application/msgpack.
func (Msgpack) ContentType() string { return ContentTypeMsgpack }

// Marshal encodes with sorted map keys and the shortest integers.
func (Msgpack) Marshal(v any) ([]byte, error) {
	var buf bytes.Buffer
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
func (Msgpack) Unmarshal(data []byte, v any) error {
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
