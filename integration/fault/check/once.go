package check

import (
	"slices"

	"github.com/google/go-cmp/cmp"

	"catenary/es"
)

// identity is what makes a command the same: the instance it is addressed to, and its id.
type identity struct {
	ref es.Ref
	id  string
}

// recorded gives the events of each command.
func recorded(all []es.Event) map[identity][]es.Event {
	found := map[identity][]es.Event{}
	for _, e := range all {
		by := identity{e.Command.Ref, e.Command.ID}
		found[by] = append(found[by], e)
	}
	return found
}

// Once judges I1.
func Once(ev Evidence) []Violation {
	f := &findings{invariant: "I1"}
	stream := recorded(ev.Events)
	for by, list := range stream {
		for i, e := range list {
			if e.Sequence != list[0].Sequence+uint64(i) {
				f.say("command %s of %s has events %d and %d: it was done twice, or in pieces", by.id, by.ref, list[0].Sequence, e.Sequence)
				break
			}
		}
	}
	for _, c := range ev.Commands {
		once(f, c, stream[identity{c.Ref, c.ID}])
	}
	return sorted(f)
}

func once(f *findings, c Command, stands []es.Event) {
	var first *es.Answer
	refused, open := "", false
	for i := range c.Tries {
		t := &c.Tries[i]
		switch t.Outcome() {
		case Open:
			open = true
		case Not:
			refused = string(t.Answer.Status)
		case Done:
			if first == nil {
				first = &t.Answer
				answered(f, c, t.Answer, stands)
			} else if diff := cmp.Diff(first.Events, t.Answer.Events); diff != "" {
				f.say("%s %s of %s was answered differently the second time:\n%s", c.Verb, c.ID, c.Ref, diff)
			}
		}
	}
	if first == nil && refused != "" && !open && len(stands) > 0 {
		f.say("%s %s of %s was answered %s each time, and stands as event %d", c.Verb, c.ID, c.Ref, refused, stands[0].Sequence)
	}
}

// answered holds the answer to an accepted command to what stands.
func answered(f *findings, c Command, a es.Answer, stands []es.Event) {
	if len(stands) == 0 {
		f.say("%s %s of %s was accepted as event %d, and is not in the stream", c.Verb, c.ID, c.Ref, a.Sequence)
		return
	}
	var found []es.AnswerEvent
	for _, e := range stands {
		found = append(found, es.AnswerEvent{Sequence: e.Sequence, Type: e.Type, Aggregate: e.Ref.Aggregate, Key: e.Ref.Key, Version: e.Version})
	}
	if diff := cmp.Diff(a.Events, found); diff != "" {
		f.say("%s %s of %s stands otherwise than it was answered (-answer +stream):\n%s", c.Verb, c.ID, c.Ref, diff)
	}
}

// sorted gives what was found in an order that does not hang on that of a map.
func sorted(f *findings) []Violation {
	slices.SortFunc(f.list, func(a, b Violation) int {
		if a.Text < b.Text {
			return -1
		}
		return 1
	})
	return f.list
}
