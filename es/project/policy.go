package project

import (
	"encoding/json"
	"strings"

	"github.com/cockroachdb/errors"

	"catenary/es"
)

// Policy is what a view does with an event that it can't fold.
type Policy string

// The policies of a view.
const (
	// PolicyStop lets the view stop at the event.
	PolicyStop Policy = "stop"
	// PolicyPark lets the view park the event, and those of the same instance after it. See [Park].
	PolicyPark Policy = "park"
)

// PolicyOf gives the policy of a view.
func PolicyOf(v View) Policy {
	if _, ok := v.(*parking); ok {
		return PolicyPark
	}
	return PolicyStop
}

// parkedPrefix begins the keys of parked records. An escaped name never has a slash, so no record of a view has such a key.
const parkedPrefix = "/parked."

// ParkedKey gives the key under which a bucket tells that an instance is parked.
func ParkedKey(ref es.Ref) string { return parkedPrefix + ref.Aggregate + "." + ref.Key }

// IsParkedKey says whether a key of a bucket belongs to the projector's own record of a parked instance.
func IsParkedKey(key string) bool { return strings.HasPrefix(key, parkedPrefix) }

// Why an event was parked. These words stand in buckets, where a fold has to give the same bytes always; what the fold said
// is told by the projector that met the event.
const (
	whyUnknownType = "unknown-type"
	whyUnreadable  = "unreadable"
	whyUnfolded    = "unfolded"
)

// Parked is the record of a parked instance, as it stands in the view's bucket.
type Parked struct {
	// Event is the first event that could not be folded, Type its type.
	Event uint64 `json:"event"`
	Type  string `json:"type"`
	// Why is unknown-type, unreadable or unfolded.
	Why string `json:"why,omitempty"`
	// Behind counts the events of the same instance that came after it and were parked too; Last is the last of them.
	Behind uint64 `json:"behind,omitempty"`
	Last   uint64 `json:"last,omitempty"`
	// Skipped says that the event was left out after all: nothing is parked.
	Skipped bool `json:"skipped,omitempty"`
}

// Park gives a view the policy to park. An event that it can't fold leads to a record of the event in the view's bucket, in
// the place of the value it should have led to, and so does each later event of the same instance: nothing is folded on a
// hole, and all others go on. What is parked is thus a fold of the events like all else in the bucket. When the event is
// skipped, a fresh fold gives the values of those behind it; the bucket gets them when it is repaired or rebuilt.
//
// In a view that is parked, what an event leads to MUST depend on the earlier events of its own instance alone, and the view
// MUST NOT give two instances one key. Park panics for a view that does not say which aggregates it reads.
func Park(v View) View {
	selective, ok := v.(Selective)
	if !ok {
		panic("project: a view that reads everything can't park")
	}
	return &parking{Selective: selective, parked: map[string]Parked{}, said: map[string]string{}}
}

// WithoutPolicy gives a view as it was before [Park]: one that gives an error for an event that it can't fold.
func WithoutPolicy(v View) View {
	if p, ok := v.(*parking); ok {
		return p.Selective
	}
	return v
}

// parking is a view with the policy to park.
type parking struct {
	Selective
	parked map[string]Parked // by key of the record
	said   map[string]string // what the fold said, by key; only since the program began
}

// Load takes in a value that stands in the bucket.
func (p *parking) Load(key string, value []byte) error {
	if !IsParkedKey(key) {
		return p.Selective.Load(key, value)
	}
	var r Parked
	if err := json.Unmarshal(value, &r); err != nil {
		return errors.Wrapf(err, "record of the parked instance %s", key)
	}
	delete(p.parked, key)
	if !r.Skipped {
		p.parked[key] = r
	}
	return nil
}

// Fold gives the values an event leads to: those of the view, or the record of what is parked.
func (p *parking) Fold(e es.Event) ([]Value, error) {
	if len(p.parked) > 0 {
		key := ParkedKey(e.Ref)
		if r, ok := p.parked[key]; ok {
			r.Behind, r.Last = r.Behind+1, e.Sequence
			return p.record(key, r)
		}
	}
	values, err := p.Selective.Fold(e)
	if err != nil {
		return p.park(e, err)
	}
	return values, nil
}

// park parks an event that can't be folded, or that can't even be read.
func (p *parking) park(e es.Event, reason error) ([]Value, error) {
	key := ParkedKey(e.Ref)
	r, behind := p.parked[key]
	switch {
	case behind:
		r.Behind, r.Last = r.Behind+1, e.Sequence
	default:
		r = Parked{Event: e.Sequence, Type: e.Type, Why: whyUnfolded}
		switch {
		case errors.Is(reason, es.ErrUndecodable):
			r.Why = whyUnreadable
		case errors.Is(reason, es.ErrUnknownType):
			r.Why = whyUnknownType
		}
		p.said[key] = reason.Error()
	}
	return p.record(key, r)
}

// skip leaves an event out. Where the instance is parked behind an earlier one it stays so.
func (p *parking) skip(e es.Event) ([]Value, error) {
	key := ParkedKey(e.Ref)
	if _, behind := p.parked[key]; behind {
		return nil, nil
	}
	return p.record(key, Parked{Event: e.Sequence, Type: e.Type, Skipped: true})
}

func (p *parking) record(key string, r Parked) ([]Value, error) {
	data, err := json.Marshal(r)
	if err != nil {
		return nil, errors.Wrapf(err, "record of the parked instance %s", key)
	}
	if r.Skipped {
		delete(p.said, key)
	} else {
		p.parked[key] = r
	}
	return []Value{{Key: key, Data: data}}, nil
}
