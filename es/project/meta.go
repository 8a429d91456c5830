package project

import (
	"strconv"
	"time"

	"catenary/es"
)

// Position is the place of a value in the order of a bucket: the event it was written at, and which of the event's values
// it is. It never decreases within a bucket.
type Position struct {
	// Sequence is the event's.
	Sequence uint64
	// Part counts the event's values from 1 to Parts.
	Part, Parts int
}

// String gives the position as it is stored: 17.1/2.
func (p Position) String() string { return string(p.Append(make([]byte, 0, 24))) }

// Append appends the position as it is stored.
func (p Position) Append(text []byte) []byte {
	text = strconv.AppendUint(text, p.Sequence, 10)
	text = strconv.AppendInt(append(text, '.'), int64(p.Part), 10)
	return strconv.AppendInt(append(text, '/'), int64(p.Parts), 10)
}

// Before says whether the position comes before another one.
func (p Position) Before(other Position) bool {
	if p.Sequence != other.Sequence {
		return p.Sequence < other.Sequence
	}
	return p.Part < other.Part
}

// complete says whether all values of the event stand.
func (p Position) complete() bool { return p.Part == p.Parts }

// Source names the event a value comes from. It differs from the position's event only for a value that was written again
// to mend a bucket.
type Source struct {
	Sequence uint64
	ID       string
}

// Meta is what a bucket keeps beside each value: where it stands in the order, and where it comes from.
type Meta struct {
	Position Position
	Source   Source
	// Fold is the version of the view that made the value.
	Fold int
	// Type is the stored name of the source event.
	Type string
	// Recorded and Effective are the source event's times, in UTC.
	Recorded, Effective time.Time
	// Actor and OnBehalfOf are opaque ids of the actor directory.
	Actor, OnBehalfOf string
	// Backfill marks a value that adds to history and never stands.
	Backfill bool
	// Mended is when the value was written again, after its event's own turn, to mend the bucket. It is zero for every value
	// that was written in its turn, and the one thing beside a value that follows from no event.
	Mended time.Time
	// Replaces is, for a mending value, the revision that was not as it should be. What stands there counts no more.
	Replaces uint64
}

// metaOf gives what is kept beside the value that is part i of n of an event.
func metaOf(e *es.Event, fold, part, parts int) Meta {
	return Meta{
		Position:   Position{Sequence: e.Sequence, Part: part, Parts: parts},
		Source:     Source{Sequence: e.Sequence, ID: e.ID},
		Fold:       fold,
		Type:       e.Type,
		Recorded:   e.Recorded.UTC(),
		Effective:  e.Effective.UTC(),
		Actor:      e.Command.Actor,
		OnBehalfOf: e.Command.OnBehalfOf,
		Backfill:   e.Backfill,
	}
}

// Equal says whether two say the same.
func (m Meta) Equal(other Meta) bool {
	if !m.Recorded.Equal(other.Recorded) || !m.Effective.Equal(other.Effective) || !m.Mended.Equal(other.Mended) {
		return false
	}
	for _, t := range []*time.Time{&m.Recorded, &m.Effective, &m.Mended, &other.Recorded, &other.Effective, &other.Mended} {
		*t = time.Time{}
	}
	return m == other
}

// mends says whether the value was written again, after its event's own turn, to mend a bucket.
func (m Meta) mends() bool { return !m.Mended.IsZero() }

// original gives what stood beside a mending value when it was written in its turn.
func (m Meta) original(turn Position) Meta {
	m.Position, m.Mended, m.Replaces = turn, time.Time{}, 0
	return m
}
