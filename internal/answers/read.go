package answers

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Answer says what the server has stored.
type Answer struct {
	Stream string
	// Sequence is that of the last message stored.
	Sequence uint64
	// Count is how many messages of a batch are stored; 0 for a single one.
	Count uint64
	// Why is what the server has said, before the answer, of a message of the batch that it refused.
	Why error
}

// reader reads answers.
type reader struct {
	stream string
	// plain is how the answer to a single message begins; its sequence follows. Nearly all answers are such.
	plain []byte
}

func newReader(stream string) reader {
	return reader{stream: stream, plain: fmt.Appendf(nil, `{"stream":%q,"seq":`, stream)}
}

// read reads what the server says, and tells whether that is the answer. What comes before the answer to a batch is how far it has
// come, which is of no use here, or an error about one of its messages.
func (r reader) read(m *nats.Msg) (answer Answer, over bool, err error) {
	if sequence, ok := r.confirmed(m.Data); ok {
		return Answer{Stream: r.stream, Sequence: sequence}, true, nil
	}
	if len(m.Data) == 0 && m.Header.Get("Status") == "503" {
		return Answer{}, true, nats.ErrNoResponders
	}
	var said struct {
		Type     string              `json:"type"` // of what comes before the answer
		Stream   string              `json:"stream"`
		Sequence uint64              `json:"seq"`
		Count    uint64              `json:"count"`
		Error    *jetstream.APIError `json:"error"`
	}
	switch err := json.Unmarshal(m.Data, &said); {
	case err != nil:
		return Answer{}, true, err
	case said.Error != nil:
		return Answer{}, said.Type == "", said.Error
	case said.Type != "":
		return Answer{}, false, nil
	case said.Stream == "":
		return Answer{}, true, jetstream.ErrInvalidJSAck
	}
	return Answer{Stream: said.Stream, Sequence: said.Sequence, Count: said.Count}, true, nil
}

// confirmed reads the answer to a single message, at a tenth of what any other takes.
func (r reader) confirmed(data []byte) (uint64, bool) {
	rest, ok := bytes.CutPrefix(data, r.plain)
	if !ok {
		return 0, false
	}
	digits, ok := bytes.CutSuffix(rest, []byte("}"))
	if !ok {
		return 0, false
	}
	sequence, err := strconv.ParseUint(string(digits), 10, 64)
	return sequence, err == nil
}
