package audit

import (
	"bytes"
	"encoding/json"
	"strings"
	"time"

	"catenary/es"
)

// Item is one event as the log shows it.
type Item struct {
	Sequence  uint64    `json:"sequence"`
	ID        string    `json:"id,omitempty"`
	Type      string    `json:"type,omitempty"`
	Aggregate string    `json:"aggregate"`
	Key       string    `json:"key"`
	Version   uint64    `json:"version,omitempty"`
	Recorded  time.Time `json:"recorded,omitzero"`
	Effective time.Time `json:"effective,omitzero"`
	Backfill  bool      `json:"backfill,omitempty"`
	// Command is the id of the command the event came from.
	Command string `json:"command,omitempty"`
	// Actor and OnBehalfOf are opaque ids of the actor directory, until a reader puts names in their place.
	Actor       string `json:"actor,omitempty"`
	OnBehalfOf  string `json:"on-behalf-of,omitempty"`
	Causation   string `json:"causation,omitempty"`
	Correlation string `json:"correlation,omitempty"`
	// Data is the event's body as JSON. It is missing when this program can't read the body.
	Data json.RawMessage `json:"data,omitempty"`
	// Body is the body as stored, of an event without Data, and Problem says why it has none.
	Body    []byte `json:"body,omitempty"`
	Problem string `json:"problem,omitempty"`
	// Refused is set for a command that was not done. The item then has no sequence, id, type, version or data.
	Refused *Refused `json:"refused,omitempty"`
}

// NewItem shows a stored message. What can't be read is shown raw: a log that leaves out what it does not understand would
// hide just what one looks for.
func NewItem(registry *es.Registry, m es.Message) Item {
	e, err := registry.Decode(m)
	item := Item{Sequence: m.Sequence}
	if e.ID == "" {
		// Not an event of ours at all: its subject is all there is.
		rest, _ := strings.CutPrefix(m.Subject, es.SubjectPrefix+".")
		item.Aggregate, item.Key, _ = strings.Cut(rest, ".")
	} else {
		item.ID, item.Type = e.ID, e.Type
		item.Aggregate, item.Key, item.Version = e.Ref.Aggregate, e.Ref.Key, e.Version
		item.Recorded, item.Effective, item.Backfill = e.Recorded, e.Effective, e.Backfill
		item.Command, item.Actor, item.OnBehalfOf = e.Command.ID, e.Command.Actor, e.Command.OnBehalfOf
		item.Causation, item.Correlation = e.Command.Causation, e.Command.Correlation
	}
	if err == nil {
		item.Data, err = encode(e.Data)
	}
	if err != nil {
		item.Body, item.Problem = m.Body, err.Error()
	}
	return item
}

// encode gives JSON without the escapes that only web pages need.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}
