package check

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/anishathalye/porcupine"

	"catenary/es"
)

// Ordered judges I2.
func Ordered(ev Evidence) []Violation {
	f := &findings{invariant: "I2"}
	places := placesOf(f, ev.Events)
	inTime(f, ev, places)
	perKey(f, ev)
	for _, c := range ev.Commands {
		expected(f, c)
	}
	return f.list
}

// expected demands that a command which names a version was done on just that one, and was told of a conflict with another one only.
func expected(f *findings, c Command) {
	if c.Expected == nil {
		return
	}
	for _, t := range c.Tries {
		switch own, ok := changesOf(t.Answer.Events)[c.Ref]; {
		case t.Outcome() == Done && ok && own.found != *c.Expected:
			f.say("%s %s of %s was accepted on version %d, and expected %d", c.Verb, c.ID, c.Ref, own.found, *c.Expected)
		case t.Answer.Status == es.StatusConflict && t.Answer.Version == *c.Expected:
			f.say("%s %s of %s conflicts with version %d, which it expected", c.Verb, c.ID, c.Ref, t.Answer.Version)
		}
	}
}

// placesOf demands that versions count from 1 without a gap, and gives the sequence of each version of each instance.
func placesOf(f *findings, all []es.Event) map[es.Ref][]uint64 {
	places := map[es.Ref][]uint64{}
	for _, e := range all {
		if want := uint64(len(places[e.Ref])) + 1; e.Version != want {
			f.say("event %d is version %d of %s, want %d", e.Sequence, e.Version, e.Ref, want)
		}
		places[e.Ref] = append(places[e.Ref], e.Sequence)
	}
	return places
}

// span is what an answer says about where in the stream its command was decided: at or after from, and before until.
type span struct {
	from, until uint64
	accepted    bool
	what        *Command
	status      es.Status
}

// inTime demands that there is one order of all that was answered which agrees with time: what was answered before something else was asked comes
// first. An accepted command has its place in the stream; one that only saw a version was decided while that was the newest.
//
// Each answer is given the earliest place that is left for it, in the order in which answers came. If there is an order at all, this finds it.
func inTime(f *findings, ev Evidence, places map[es.Ref][]uint64) {
	type moment struct {
		at       time.Duration
		returned bool
		try      int
	}
	var spans []span
	var moments []moment
	stream := recorded(ev.Events)
	for i := range ev.Commands {
		c := &ev.Commands[i]
		stands := stream[identity{c.Ref, c.ID}]
		for _, t := range c.Tries {
			s, ok := spanOf(c, t, stands, places[c.Ref])
			if !ok {
				continue
			}
			moments = append(moments, moment{t.Called, false, len(spans)}, moment{t.Returned, true, len(spans)})
			spans = append(spans, s)
		}
	}
	// At the same moment calls come first: they overlap with what returns then.
	slices.SortFunc(moments, func(a, b moment) int {
		if c := cmp.Compare(a.at, b.at); c != 0 {
			return c
		}
		switch {
		case a.returned == b.returned:
			return cmp.Compare(a.try, b.try)
		case a.returned:
			return 1
		}
		return -1
	})
	least := make([]uint64, len(spans))
	var reached uint64
	for _, m := range moments {
		s := &spans[m.try]
		if !m.returned {
			least[m.try] = reached
			continue
		}
		place := max(s.from, least[m.try])
		switch {
		case s.accepted && least[m.try] >= s.until:
			f.say("%s %s of %s is event %d, and was asked when event %d was known already", s.what.Verb, s.what.ID, s.what.Ref, s.from, least[m.try])
		case !s.accepted && place >= s.until:
			f.say("%s %s of %s was answered %s from the past: event %d was known when it was asked, and what it saw was over with event %d",
				s.what.Verb, s.what.ID, s.what.Ref, s.status, least[m.try], s.until)
		default:
			reached = max(reached, place)
		}
	}
}

// spanOf says where a try was decided; not ok when it does not tell.
func spanOf(c *Command, t Try, stands []es.Event, versions []uint64) (span, bool) {
	s := span{what: c, status: t.Answer.Status, until: math.MaxUint64}
	switch {
	case t.Outcome() == Done && t.Answer.Repeated:
		// It may be answered at any time after it was done.
		s.from = t.Answer.Sequence
		return s, true
	case t.Outcome() == Done:
		s.from, s.until, s.accepted = t.Answer.Sequence, t.Answer.Sequence, true
		return s, true
	case !t.Saw():
		return s, false
	}
	saw := t.Answer.Version
	if saw > uint64(len(versions)) {
		s.from = math.MaxUint64 // a version that never was: no place is left for it
		return s, true
	}
	if saw > 0 {
		s.from = versions[saw-1]
	}
	if saw < uint64(len(versions)) {
		s.until = versions[saw]
	}
	if len(stands) > 0 {
		// Once a command is done, its repeat is answered so.
		s.until = min(s.until, stands[0].Sequence)
	}
	return s, true
}

// change is what a command does to one instance: it finds a version and leaves another.
type change struct{ found, left uint64 }

// perKey demands of each instance that what was answered about it is linearizable. It knows nothing of the stream but what became of the commands
// that were not answered, so that it does not hang on what inTime takes from there.
func perKey(f *findings, ev Evidence) {
	model := porcupine.Model{
		Init: func() any { return uint64(0) },
		Step: func(state, input, _ any) (bool, any) {
			version, does := state.(uint64), input.(change)
			return version == does.found, does.left
		},
	}
	all := historiesOf(ev)
	for _, ref := range slices.SortedFunc(maps.Keys(all), func(a, b es.Ref) int { return cmp.Compare(a.String(), b.String()) }) {
		if porcupine.CheckOperationsTimeout(model, all[ref], keyPatience) == porcupine.Illegal {
			f.say("what was answered about %s is not linearizable (%d answers)", ref, len(all[ref]))
		}
	}
}

// historiesOf gives what was answered about each instance that nobody but our senders has changed.
func historiesOf(ev Evidence) map[es.Ref][]porcupine.Operation {
	stream, foreign := recorded(ev.Events), foreignTo(ev)
	histories := map[es.Ref][]porcupine.Operation{}
	add := func(ref es.Ref, called, returned time.Duration, c change) {
		if foreign[ref] {
			return
		}
		histories[ref] = append(histories[ref], porcupine.Operation{
			ClientId: len(histories[ref]), Input: c, Call: int64(called), Return: int64(returned),
		})
	}
	var end time.Duration
	for _, c := range ev.Commands {
		for _, t := range c.Tries {
			end = max(end, t.Returned)
		}
	}
	for _, c := range ev.Commands {
		called, returned, did := doneBy(c, stream[identity{c.Ref, c.ID}], end)
		for ref, change := range changesOf(did) {
			add(ref, called, returned, change)
		}
		for _, t := range c.Tries {
			if t.Saw() {
				add(c.Ref, t.Called, t.Returned, change{t.Answer.Version, t.Answer.Version})
			}
		}
	}
	return histories
}

// foreignTo gives the instances that others than our senders have changed, at times that nobody knows.
func foreignTo(ev Evidence) map[es.Ref]bool {
	ours := map[identity]bool{}
	for _, c := range ev.Commands {
		ours[identity{c.Ref, c.ID}] = true
	}
	foreign := map[es.Ref]bool{}
	for _, e := range ev.Events {
		if !ours[identity{e.Command.Ref, e.Command.ID}] {
			foreign[e.Ref] = true
		}
	}
	return foreign
}

// doneBy gives what a command has done, and between which times: until its first answer, or until after the end when only the stream tells.
func doneBy(c Command, stands []es.Event, end time.Duration) (called, returned time.Duration, did []es.AnswerEvent) {
	called = end
	var first *Try
	for i := range c.Tries {
		// Two may send the same command at once, and tries stand in the order of their answers: any of them may be the one that did it.
		t := &c.Tries[i]
		called = min(called, t.Called)
		if t.Outcome() == Done && (first == nil || t.Returned < first.Returned) {
			first = t
		}
	}
	if first != nil {
		return called, first.Returned, first.Answer.Events
	}
	for _, e := range stands {
		did = append(did, es.AnswerEvent{Aggregate: e.Ref.Aggregate, Key: e.Ref.Key, Version: e.Version})
	}
	return called, end + 1, did
}

// keyPatience bounds the search for an order of one instance's answers. What is not found in it is judged by the order of the stream alone.
const keyPatience = 5 * time.Second

// changesOf gives what events have done to each instance.
func changesOf(list []es.AnswerEvent) map[es.Ref]change {
	found := map[es.Ref]change{}
	for _, e := range list {
		ref := es.Ref{Aggregate: e.Aggregate, Key: e.Key}
		c, known := found[ref]
		if !known {
			c.found = e.Version - 1
		}
		c.left = e.Version
		found[ref] = c
	}
	return found
}
