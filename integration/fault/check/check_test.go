package check_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"catenary/chain"
	"catenary/es"
	"catenary/es/project"
	"catenary/events"
	"catenary/integration/fault/check"
)

// view is a fold that is enough for assignments.
type view struct{}

func (*view) Name() string              { return chain.Assignments.Bucket() }
func (*view) Version() int              { return 1 }
func (*view) Load(string, []byte) error { return nil }
func (*view) Aggregates() []string      { return []string{events.AggregateAssignment} }
func (v *view) value(e es.Event) []byte {
	a := chain.Assignment{Node: "a1", Module: "m", Told: e.Sequence}
	if _, ended := e.Data.(events.AssignmentEnded); ended {
		a.Ended = e.Effective
	}
	text, err := json.Marshal(a)
	if err != nil {
		panic(err) // the record is made of words and times
	}
	return text
}

func (v *view) Fold(e es.Event) ([]project.Value, error) {
	return []project.Value{{Key: e.Ref.Key, Data: v.value(e)}}, nil
}

// told is what one command of a history leads to.
type told struct {
	ref   es.Ref
	facts []any
}

var (
	place   = es.Ref{Aggregate: events.AggregateAssignment, Key: "a1.m"}
	lease   = es.Ref{Aggregate: events.AggregateLease, Key: "rollout-engine"}
	rollout = es.Ref{Aggregate: events.AggregateRollout, Key: "r"}
)

func assigned(version string) events.AssignmentAssigned {
	return events.AssignmentAssigned{Told: events.Told{Node: "a1", Module: "m", Reference: events.Reference{Package: &events.Package{Name: "m", Version: version}}}}
}

// whole is a history in which nothing is wrong: each command is sent once, and answered before the next one is sent.
func whole(t *testing.T) check.Evidence {
	t.Helper()
	registry := events.Registry()
	at := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	ev := check.Evidence{Views: []project.View{&view{}}}
	var head es.Head
	versions := map[es.Ref]uint64{}
	for n, c := range []told{
		{place, []any{assigned("1")}},
		{place, []any{assigned("2")}},
		{place, []any{events.AssignmentEnded{Node: "a1", Module: "m"}}},
		{place, []any{assigned("3")}},
	} {
		id := fmt.Sprintf("command-%d", n+1)
		answer := es.Answer{Status: es.StatusAccepted, Command: id, Aggregate: c.ref.Aggregate, Key: c.ref.Key}
		for _, fact := range c.facts {
			name, body, err := registry.Encode(fact)
			if err != nil {
				t.Fatal(err)
			}
			versions[c.ref]++
			e := es.Event{
				ID: fmt.Sprintf("event-%d", head.Sequence+1), Type: name, Ref: c.ref, Version: versions[c.ref], Recorded: at, Effective: at.Add(time.Duration(n) * time.Second), Body: body,
				Command: es.Cause{ID: id, Ref: c.ref, Digest: es.Digest(body), Actor: "ann"},
			}
			m := e.Message(registry.Codec().ContentType())
			head = head.Seal(&m)
			m.Sequence = head.Sequence
			read, err := registry.Decode(m)
			if err != nil {
				t.Fatal(err)
			}
			ev.Messages, ev.Events = append(ev.Messages, m), append(ev.Events, read)
			answer.Sequence, answer.Version = read.Sequence, read.Version
			answer.Events = append(answer.Events, es.AnswerEvent{Sequence: read.Sequence, Type: name, Aggregate: c.ref.Aggregate, Key: c.ref.Key, Version: read.Version})
		}
		called := time.Duration(n) * time.Second
		ev.Commands = append(ev.Commands, check.Command{ID: id, Ref: c.ref, Verb: "do", Tries: []check.Try{{Called: called, Returned: called + time.Millisecond, Answer: answer}}})
	}
	var entries []project.Entry
	for n, e := range ev.Events {
		entries = append(entries, project.Entry{Key: e.Ref.Key, Value: (&view{}).value(e), Revision: uint64(n + 1)})
	}
	name := chain.Assignments.Bucket()
	ev.Buckets, ev.Copies = map[string][]project.Entry{name: entries}, map[string][]project.Entry{name: slices.Clone(entries)}
	ev.Nodes = []check.Runs{{Node: "a1", Module: "m", Version: "3", Applied: []uint64{1, 2, 2, 4}}}
	return ev
}

// later sends something more about the place, at a time, and gets an answer.
func later(ev *check.Evidence, id string, at time.Duration, a es.Answer) {
	ev.Commands = append(ev.Commands, check.Command{ID: id, Ref: place, Verb: "do", Tries: []check.Try{{Called: at, Returned: at + time.Millisecond, Answer: a}}})
}

// extra adds an event that nobody's history knows.
func extra(ev *check.Evidence, ref es.Ref, id string, data any, version uint64) {
	last := ev.Events[len(ev.Events)-1].Sequence
	ev.Events = append(ev.Events, es.Event{Sequence: last + 1, Ref: ref, Version: version, Data: data, Command: es.Cause{ID: id, Ref: ref, Actor: "engine"}})
}

func TestAll(t *testing.T) {
	t.Parallel()
	step := events.StepName{Node: "a1", Module: "m"}
	for _, c := range []struct {
		name string
		harm func(ev *check.Evidence)
		want string // invariant and part of its text; empty when nothing is wrong
	}{
		{name: "nothing is wrong", harm: func(*check.Evidence) {}},
		{name: "a repeat gets the first answer", harm: func(ev *check.Evidence) {
			c := &ev.Commands[0]
			again := c.Tries[0]
			again.Called, again.Returned, again.Answer.Repeated = time.Minute, time.Minute+1, true
			c.Tries = append(c.Tries, again)
		}},
		{name: "an answer that was lost, and one that never came", harm: func(ev *check.Evidence) {
			ev.Commands[1].Tries[0].Answer = es.Answer{}
			later(ev, "never", 10*time.Second, es.Answer{Status: es.StatusUnknown})
		}},
		{name: "a command that two send at once, of whom the second hears of it first", harm: func(ev *check.Evidence) {
			// What a third one sees meanwhile, the first one's sending has done.
			c := &ev.Commands[3]
			first := c.Tries[0]
			first.Returned += 500 * time.Millisecond
			second := first
			second.Called, second.Returned, second.Answer.Repeated = first.Called+300*time.Millisecond, first.Called+400*time.Millisecond, true
			c.Tries = []check.Try{second, first}
			later(ev, "third", first.Called+100*time.Millisecond, es.Answer{Status: es.StatusUnchanged, Version: 4})
		}},
		{name: "an accepted command that is not there", want: "I1 is not in the stream", harm: func(ev *check.Evidence) {
			later(ev, "gone", 10*time.Second, es.Answer{Status: es.StatusAccepted, Sequence: 5, Version: 5, Events: []es.AnswerEvent{{Sequence: 5, Aggregate: place.Aggregate, Key: place.Key, Version: 5}}})
		}},
		{name: "a command that was done twice", want: "I1 was done twice", harm: func(ev *check.Evidence) {
			extra(ev, place, "command-1", assigned("1"), 5)
		}},
		{name: "a refused command that is there", want: "I1 was answered rejected", harm: func(ev *check.Evidence) {
			ev.Commands[1].Tries[0].Answer = es.Answer{Status: es.StatusRejected}
		}},
		{name: "a repeat with another answer", want: "I1 differently", harm: func(ev *check.Evidence) {
			c := &ev.Commands[0]
			other := ev.Commands[1].Tries[0]
			other.Called, other.Returned = time.Minute, time.Minute+1
			c.Tries = append(c.Tries, other)
		}},
		{name: "a version left out", want: "I2 want 2", harm: func(ev *check.Evidence) {
			for i := 1; i < len(ev.Events); i++ {
				ev.Events[i].Version++
			}
		}},
		{name: "an answer from the past", want: "I2 from the past", harm: func(ev *check.Evidence) {
			later(ev, "late", 10*time.Second, es.Answer{Status: es.StatusUnchanged, Version: 2})
		}},
		{name: "an answer from the past about another key", want: "I2 from the past", harm: func(ev *check.Evidence) {
			ev.Commands = append(ev.Commands, check.Command{ID: "other", Ref: lease, Tries: []check.Try{{Called: 20 * time.Second, Returned: 21 * time.Second, Answer: es.Answer{Status: es.StatusUnchanged}}}})
			extra(ev, lease, "engine", events.LeaseTaken{}, 1)
			later(ev, "newest", 15*time.Second, es.Answer{Status: es.StatusAccepted, Sequence: 6, Version: 5, Events: []es.AnswerEvent{{Sequence: 6, Aggregate: place.Aggregate, Key: place.Key, Version: 5}}})
		}},
		{name: "an order that is not that of time", want: "I2 was known already", harm: func(ev *check.Evidence) {
			for i := range ev.Commands {
				try := &ev.Commands[i].Tries[0]
				try.Called = time.Duration(9-i) * time.Second
				try.Returned = try.Called + time.Millisecond
			}
		}},
		{name: "a version that never was", want: "I2 from the past", harm: func(ev *check.Evidence) {
			later(ev, "dream", 10*time.Second, es.Answer{Status: es.StatusUnchanged, Version: 9})
		}},
		{name: "an expected version that was passed over", want: "I2 expected 7", harm: func(ev *check.Evidence) {
			seven := uint64(7)
			ev.Commands[2].Expected = &seven
		}},
		{name: "a conflict with what was expected", want: "I2 which it expected", harm: func(ev *check.Evidence) {
			four := uint64(4)
			later(ev, "odd", 10*time.Second, es.Answer{Status: es.StatusConflict, Version: 4})
			ev.Commands[len(ev.Commands)-1].Expected = &four
		}},
		{name: "an event that was changed", want: "I3 after event 1", harm: func(ev *check.Evidence) {
			ev.Messages[1].Body = append([]byte(nil), ev.Messages[1].Body...)
			ev.Messages[1].Body[0] ^= 1
		}},
		{name: "an event that was cut out", want: "I3 after event 1", harm: func(ev *check.Evidence) { ev.Messages = append(ev.Messages[:1:1], ev.Messages[2:]...) }},
		{name: "a value that was left out", want: "I4 lacks, or has out of order", harm: func(ev *check.Evidence) {
			b := ev.Buckets[chain.Assignments.Bucket()]
			ev.Buckets[chain.Assignments.Bucket()] = append(b[:1:1], b[2:]...)
		}},
		{name: "a last value that is old", want: "I4 and the events give", harm: func(ev *check.Evidence) {
			b := ev.Buckets[chain.Assignments.Bucket()]
			ev.Buckets[chain.Assignments.Bucket()] = b[:3]
		}},
		{name: "a key that nobody told of", want: "I4 of which no event tells", harm: func(ev *check.Evidence) {
			b := ev.Buckets[chain.Assignments.Bucket()]
			ev.Buckets[chain.Assignments.Bucket()] = append(b, project.Entry{Key: "a9.m", Revision: 5})
		}},
		{name: "a copy that lacks the end", want: "I4 the copy of chain-assignments ends", harm: func(ev *check.Evidence) {
			b := ev.Copies[chain.Assignments.Bucket()]
			ev.Copies[chain.Assignments.Bucket()] = b[:2]
		}},
		{name: "a value that mends", harm: func(ev *check.Evidence) {
			name := chain.Assignments.Bucket()
			b := ev.Buckets[name]
			again := b[len(b)-1]
			again.Revision++
			ev.Buckets[name], ev.Copies[name] = append(b, again), append(ev.Copies[name], again)
		}},
		{name: "an assignment that is gone", want: "I5 is gone", harm: func(ev *check.Evidence) { ev.Buckets[chain.Assignments.Bucket()] = nil }},
		{name: "an end that is not shown", want: "I5 says ended", harm: func(ev *check.Evidence) {
			b := ev.Buckets[chain.Assignments.Bucket()]
			ev.Buckets[chain.Assignments.Bucket()] = append(b, project.Entry{Key: place.Key, Value: b[2].Value, Revision: 5})
		}},
		{name: "a step that begins twice", want: "I6 begins with event", harm: func(ev *check.Evidence) {
			extra(ev, lease, "l", events.LeaseTaken{}, 1)
			extra(ev, rollout, "b1", events.RolloutStepBegun{StepName: step, Attempt: 1}, 1)
			extra(ev, rollout, "b2", events.RolloutStepBegun{StepName: step, Attempt: 1}, 2)
		}},
		{name: "a step that ends twice", want: "I6 ends with event", harm: func(ev *check.Evidence) {
			extra(ev, rollout, "b1", events.RolloutStepEnded{StepName: step, Attempt: 1}, 1)
			extra(ev, rollout, "b2", events.RolloutStepEnded{StepName: step, Attempt: 1}, 2)
		}},
		{name: "a step that begins without a lease", want: "I6 nobody has the lease", harm: func(ev *check.Evidence) {
			extra(ev, rollout, "b1", events.RolloutStepBegun{StepName: step, Attempt: 1}, 1)
		}},
		{name: "a node that runs something else", want: `I7 runs "2"`, harm: func(ev *check.Evidence) { ev.Nodes[0].Version = "2" }},
		{name: "a node that went back", want: "I7 older instruction", harm: func(ev *check.Evidence) { ev.Nodes[0].Applied = []uint64{1, 4, 2, 4} }},
		{name: "a report of what was never told", want: "I7 by instruction 2", harm: func(ev *check.Evidence) {
			extra(ev, place, "report", events.AssignmentApplied{Seen: events.Seen{Node: "a1", Module: "m", Reference: assigned("9").Reference, Source: 2}}, 5)
		}},
		{name: "a bound that was passed", want: "I8 not within", harm: func(ev *check.Evidence) {
			ev.Problems = []check.Violation{{Invariant: "I8", Text: "not within 30s"}}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			ev := whole(t)
			c.harm(&ev)
			found := check.All(ev)
			if c.want == "" {
				if len(found) > 0 {
					t.Errorf("found %v", found)
				}
				return
			}
			invariant, text, _ := strings.Cut(c.want, " ")
			if !slices.ContainsFunc(found, func(v check.Violation) bool { return v.Invariant == invariant && strings.Contains(v.Text, text) }) {
				t.Errorf("found %v, want %s", found, c.want)
			}
		})
	}
}
