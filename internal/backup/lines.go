package backup

import (
	"bytes"
	"encoding/json"
	"io"
	"iter"

	"github.com/cockroachdb/errors"
	"github.com/klauspost/compress/zstd"

	"catenary/es"
)

// line is an event in a backup: all that is stored of it.
type line struct {
	Sequence uint64 `json:"sequence"`
	Subject  string `json:"subject"`
	// Header are ours, the hash among them.
	Header map[string][]string `json:"header"`
	Body   []byte              `json:"body"`
}

func lineOf(m es.Message) line {
	return line{Sequence: m.Sequence, Subject: m.Subject, Header: m.Header, Body: m.Body}
}

func (l line) message() es.Message {
	return es.Message{Sequence: l.Sequence, Subject: l.Subject, Header: l.Header, Body: l.Body}
}

// Actor is an entry of the directory of actors, as it is stored.
type Actor struct {
	Key   string `json:"key"`
	Value []byte `json:"value"`
}

// Waiting is a message of a stream that holds commands which wait, as it is stored: for their turn in the inbox, or parked for a person.
type Waiting struct {
	Stream  string              `json:"stream"`
	Subject string              `json:"subject"`
	Header  map[string][]string `json:"header,omitempty"`
	Body    []byte              `json:"body"`
}

// checkpoint is a signed checkpoint.
type checkpoint struct {
	Signed string `json:"signed"`
}

const (
	// chunkBytes is how many bytes of lines are compressed together. With one more event of the largest size, a chunk that can't be
	// compressed still fits into one message.
	chunkBytes = 512 << 10
	// windowChunks is how many chunks come for one request: so much is on its way, and no more.
	windowChunks = 32
)

// packer compresses lines in chunks, each of which can be read by itself; together they are one compressed file.
type packer struct {
	encoder *zstd.Encoder
	text    bytes.Buffer
	lines   *json.Encoder
}

func newPacker() (*packer, error) {
	e, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1))
	p := &packer{encoder: e}
	p.lines = json.NewEncoder(&p.text)
	p.lines.SetEscapeHTML(false)
	return p, errors.Wrap(err, "compress")
}

// add takes a line in, and says whether a chunk is full.
func (p *packer) add(v any) (full bool, err error) {
	if err := p.lines.Encode(v); err != nil {
		return false, errors.Wrap(err, "encode a line")
	}
	return p.text.Len() >= chunkBytes, nil
}

// chunk gives what was taken in since the last one; nil for nothing.
func (p *packer) chunk() []byte {
	if p.text.Len() == 0 {
		return nil
	}
	out := p.encoder.EncodeAll(p.text.Bytes(), nil)
	p.text.Reset()
	return out
}

// unpacked gives the lines of compressed chunks.
func unpacked[T any](from io.Reader) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var none T
		d, err := zstd.NewReader(from, zstd.WithDecoderConcurrency(1))
		if err != nil {
			yield(none, errors.Wrap(err, "decompress"))
			return
		}
		defer d.Close()
		lines := json.NewDecoder(d)
		for {
			var v T
			err := lines.Decode(&v)
			if errors.Is(err, io.EOF) {
				return
			}
			if !yield(v, errors.Wrap(err, "decompress")) || err != nil {
				return
			}
		}
	}
}
