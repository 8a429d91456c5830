package natsstore

import (
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"catenary/es"
	"catenary/internal/pull"
)

// serverPrefix starts the headers that belong to the server: guards and batches. They are no part of an event.
const serverPrefix = "Nats-"

// serverHeaders are the server's own headers of one message.
type serverHeaders struct {
	names  [5]string
	values []string
}

func (h *serverHeaders) set(name, value string) {
	h.names[len(h.values)] = name
	h.values = append(h.values, value)
}

// toNATS copies a message, since its headers gain the server's.
func toNATS(m es.Message, own *serverHeaders) *nats.Msg {
	// A map for one more than it has to hold may be twice as large.
	header := make(nats.Header, len(m.Header)+len(own.values))
	for name, values := range m.Header {
		if !strings.HasPrefix(name, serverPrefix) {
			header[name] = values
		}
	}
	for i := range own.values {
		header[own.names[i]] = own.values[i : i+1 : i+1]
	}
	return &nats.Msg{Subject: m.Subject, Header: header, Data: m.Body}
}

// storedSize is what the server's limits count: headers as they stand on the wire, and the body.
func storedSize(m *nats.Msg) int { return m.Size() - len(m.Subject) }

// fromNATS takes over a message that a consumer delivered.
func fromNATS(m pull.Message) es.Message {
	return es.Message{Sequence: m.Sequence, Subject: m.Subject, Header: ours(m.Header), Body: m.Data}
}

func fromRaw(m *jetstream.RawStreamMsg) es.Message {
	return es.Message{Sequence: m.Sequence, Subject: m.Subject, Header: ours(m.Header), Body: m.Data}
}

// serverNames are the server's headers that an append sets.
var serverNames = [...]string{
	jetstream.ExpectedLastSeqHeader, jetstream.ExpectedLastMsgIDHeader, jetstream.MsgIDHeader, headerBatchID, headerBatchSequence, headerBatchCommit,
}

// ours drops the server's headers from a map that nobody else holds. Those that no append of ours sets are left in it: nothing reads
// them, an event's hash does not cover them, and looking at each header of each event takes longer than checking its hash.
func ours(header nats.Header) map[string][]string {
	for _, name := range serverNames {
		delete(header, name)
	}
	return header
}
