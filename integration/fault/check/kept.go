package check

import (
	"encoding/json"
	"maps"
	"slices"

	"catenary/chain"
	"catenary/es"
	"catenary/events"
)

// Kept judges I5.
func Kept(ev Evidence) []Violation {
	f := &findings{invariant: "I5"}
	// The last fact about each assignment, and whether it stands by it.
	type fact struct {
		event es.Event
		ended bool
	}
	last := map[string]fact{}
	for _, e := range ev.Events {
		switch e.Data.(type) {
		case events.AssignmentAssigned, events.AssignmentMovedIn:
			last[e.Ref.Key] = fact{event: e}
		case events.AssignmentEnded, events.AssignmentMovedOut:
			last[e.Ref.Key] = fact{event: e, ended: true}
		}
	}
	bucket := byKey(ev.Buckets[chain.Assignments.Bucket()])
	for _, key := range slices.Sorted(maps.Keys(last)) {
		want, values := last[key], bucket[key]
		if len(values) == 0 {
			f.say("assignment %s is gone: event %d tells of it", key, want.event.Sequence)
			continue
		}
		var a chain.Assignment
		if err := json.Unmarshal(values[len(values)-1].Value, &a); err != nil {
			f.say("assignment %s can't be read: %v", key, err)
			continue
		}
		if a.Ended.IsZero() == want.ended {
			f.say("assignment %s: event %d says ended=%t, and the record says ended=%t", key, want.event.Sequence, want.ended, !a.Ended.IsZero())
		}
	}
	return f.list
}
