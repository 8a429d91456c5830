package commands

import (
	"catenary/es"
	"catenary/events"
)

// DeclareTrack lets a track plan rollouts by itself.
type DeclareTrack struct{ events.TrackSpec }

// ChangeTrack replaces all that is said of a track.
type ChangeTrack struct{ events.TrackSpec }

// EndTrack lets a track plan no more.
type EndTrack struct {
	Track  string `json:"track"`
	Reason string `json:"reason,omitempty"`
}

// TrackRef is the instance of a track.
func TrackRef(name string) es.Ref {
	return es.Ref{Aggregate: events.AggregateTrack, Key: es.Key(name)}
}

// Ref is the track.
func (c DeclareTrack) Ref() es.Ref { return TrackRef(c.Track) }

// Ref is the track.
func (c ChangeTrack) Ref() es.Ref { return TrackRef(c.Track) }

// Ref is the track.
func (c EndTrack) Ref() es.Ref { return TrackRef(c.Track) }

// Verb is declare.
func (DeclareTrack) Verb() string { return "declare" }

// Verb is change.
func (ChangeTrack) Verb() string { return "change" }

// Verb is end.
func (EndTrack) Verb() string { return "end" }

// Validate checks the shape. It gives errors of type *[es.Refusal].
func (c DeclareTrack) Validate() error { return checkTrack(c.TrackSpec, c.Ref()) }

// Validate checks the shape. It gives errors of type *[es.Refusal].
func (c ChangeTrack) Validate() error { return checkTrack(c.TrackSpec, c.Ref()) }

// Validate checks the shape. It gives errors of type *[es.Refusal].
func (c EndTrack) Validate() error {
	var k check
	k.name("track", c.Track)
	k.text("reason", c.Reason)
	return k.done(c.Ref())
}

func checkTrack(s events.TrackSpec, ref es.Ref) error {
	var k check
	k.name("track", s.Track)
	k.names("modules", s.Modules)
	if len(s.Modules) == 0 {
		k.fail(CodeMissingField, "modules is empty", "name the modules that the track carries")
	}
	k.name("strategy", s.Strategy)
	k.oneOf("on", s.On, events.OnMerge, events.OnPublication, events.OnManual)
	return k.done(ref)
}
