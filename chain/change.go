package chain

import (
	"encoding/json"
	"time"

	"catenary/es/project"
)

// Change is one value of a key's history: what was recorded, when, by whom, and what was so from then on.
type Change[T any] struct {
	// Sequence is that of the event the value comes from.
	Sequence uint64
	// Recorded is when it was recorded, Effective when it became true.
	Recorded, Effective time.Time
	// Actor and OnBehalfOf are opaque ids; [Reader.ActorName] gives their names.
	Actor, OnBehalfOf string
	// Type is the event's stored name. It is not part of the JSON.
	Type string
	// Backfill is set for what was added to the history after the fact.
	Backfill bool
	Value    T
	// Raw is the value's JSON as it stands in the bucket. It keeps fields that a newer program has written.
	Raw []byte
}

// Entry is the newest value of a key.
type Entry[T any] struct {
	Key string
	// Revision is the value's sequence in the copy of the bucket that was read. It says nothing about another copy: whoever
	// acts on a value compares its Sequence.
	Revision uint64
	Change[T]
}

// changeHead is all of a change's JSON but the value.
type changeHead struct {
	Sequence   uint64    `json:"sequence"`
	Recorded   time.Time `json:"recorded"`
	Effective  time.Time `json:"effective"`
	Actor      string    `json:"actor,omitempty"`
	OnBehalfOf string    `json:"on-behalf-of,omitempty"`
	Backfill   bool      `json:"backfill,omitempty"`
}

// JSON gives {sequence, recorded, effective, actor, on-behalf-of, value}, with backfill where it is so. The value is in the
// form of [Encode], byte for byte. It gives the errors of Encode.
func (c Change[T]) JSON() ([]byte, error) {
	head, err := Encode(changeHead{
		Sequence: c.Sequence, Recorded: c.Recorded.UTC(), Effective: c.Effective.UTC(),
		Actor: c.Actor, OnBehalfOf: c.OnBehalfOf, Backfill: c.Backfill,
	})
	if err != nil {
		return nil, err
	}
	value := c.Raw
	if value == nil {
		if value, err = Encode(c.Value); err != nil {
			return nil, err
		}
	}
	out := append(head[:len(head)-1], `,"value":`...)
	return append(append(out, value...), '}'), nil
}

// MarshalJSON gives the same as [Change.JSON]. encoding/json takes white space out of what it is given here, so whoever
// needs raw JSON in the value byte for byte calls JSON.
func (c Change[T]) MarshalJSON() ([]byte, error) { return c.JSON() }

// UnmarshalJSON reads what [Change.JSON] wrote.
func (c *Change[T]) UnmarshalJSON(data []byte) error {
	var head struct {
		changeHead
		Value json.RawMessage `json:"value"`
	}
	if err := json.Unmarshal(data, &head); err != nil {
		return err
	}
	value, err := Decode[T](head.Value)
	if err != nil {
		return err
	}
	*c = Change[T]{
		Sequence: head.Sequence, Recorded: head.Recorded, Effective: head.Effective, Actor: head.Actor,
		OnBehalfOf: head.OnBehalfOf, Backfill: head.Backfill, Value: value, Raw: head.Value,
	}
	return nil
}

func changeOf[T any](e project.Entry) (Change[T], error) {
	value, err := Decode[T](e.Value)
	if err != nil {
		return Change[T]{}, err
	}
	m := e.Meta
	return Change[T]{
		Sequence: m.Source.Sequence, Recorded: m.Recorded, Effective: m.Effective, Actor: m.Actor,
		OnBehalfOf: m.OnBehalfOf, Type: m.Type, Backfill: m.Backfill, Value: value, Raw: e.Value,
	}, nil
}
