package proof

import (
	"encoding/binary"
	"github.com/cockroachdb/errors"
	"golang.org/x/mod/sumdb/tlog"

	"catenary/es"
)

// Record is an event with all that its hash covers, in the form in which it leaves the chain. In JSON the headers are sorted by
// name and the body is base64.
type Record struct {
	Sequence uint64 `json:"sequence"`
	Subject  string `json:"subject"`
	// Headers are ours, as stored, without the hash and without those of the server.
	Headers map[string][]string `json:"header"`
	Body    []byte              `json:"stored"`
	// Previous is the hash of the event before; zeros for the first one.
	Previous es.Hash `json:"previous"`
	// Hash is the event's own.
	Hash es.Hash `json:"hash"`
}

// NewRecord gives a stored message the form in which it leaves the chain. It gives errors marked [es.ErrBrokenChain] for a
// message that does not follow the head before it.
func NewRecord(before es.Head, m es.Message) (Record, error) {
	head, err := before.Verify(m)
	if err != nil {
		return Record{}, err
	}
	headers := make(map[string][]string, len(m.Header))
	for name, values := range m.Header {
		if name != es.HeaderHash {
			headers[name] = values
		}
	}
	return Record{Sequence: m.Sequence, Subject: m.Subject, Headers: headers, Body: m.Body, Previous: before.Hash, Hash: head.Hash}, nil
}

// Message gives the event as it is stored.
func (r Record) Message() es.Message {
	header := make(map[string][]string, len(r.Headers)+1)
	for name, values := range r.Headers {
		header[name] = values
	}
	header[es.HeaderHash] = []string{r.Hash.String()}
	return es.Message{Sequence: r.Sequence, Subject: r.Subject, Header: header, Body: r.Body}
}

// Check computes the event's hash anew. It gives errors marked [ErrEvent].
func (r Record) Check() error {
	if r.Sequence == 0 {
		return markf(ErrEvent, "event 0: sequences start at 1")
	}
	if _, err := (es.Head{Sequence: r.Sequence - 1, Hash: r.Previous}).Verify(r.Message()); err != nil {
		return errors.Mark(err, ErrEvent)
	}
	return nil
}

// Head is the head of the chain with this event.
func (r Record) Head() es.Head { return es.Head{Sequence: r.Sequence, Hash: r.Hash} }

// LeafHash gives the hash of the leaf of the event that a head ends with.
func LeafHash(h es.Head) tlog.Hash {
	leaf := binary.BigEndian.AppendUint64(make([]byte, 0, 8+len(h.Hash)), h.Sequence)
	return tlog.RecordHash(append(leaf, h.Hash[:]...))
}
