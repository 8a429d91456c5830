package estest

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/errors"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"catenary/es"
)

// step is how far the clock of a scenario moves on with every fact and every command.
const step = time.Minute

// Scenario is a given-when-then over a decider. Facts and decided events pass through their stored form before they are
// applied, so a decider sees what it would see after a restart.
//
//	estest.Spec(t, world, registry).
//		Given(registered("n1")).
//		When(commands.RetireNode{Node: "n1"}).
//		Then(retired("n1")).
//		Again().ThenUnchanged()
type Scenario struct {
	t        testing.TB
	fresh    func() es.Decider
	registry *es.Registry
	clock    *Clock
	ids      *IDs

	decider  es.Decider
	recorded []es.Event
	tail     tail
	last     *Decision
}

// tail is what the next event is stamped with.
type tail struct {
	head     es.Head
	versions map[es.Ref]uint64
}

func (t tail) fork() tail { return tail{head: t.head, versions: maps.Clone(t.versions)} }

// Spec starts a scenario on a new decider. The clock starts at [Epoch].
func Spec(t testing.TB, newDecider func() es.Decider, registry *es.Registry) *Scenario {
	clock := NewClock()
	s := &Scenario{
		t: t, fresh: newDecider, registry: registry, clock: clock, ids: NewIDs(clock.Now),
		decider: newDecider(), tail: tail{versions: map[es.Ref]uint64{}},
	}
	t.Cleanup(func() {
		if s.last != nil && !s.last.judged {
			t.Errorf("%s: nothing says what comes of it: add Then, ThenRefused or ThenUnchanged", s.last)
		}
	})
	return s
}

// At sets the clock: what follows is recorded from there on.
func (s *Scenario) At(at time.Time) *Scenario {
	s.clock.Set(at.Add(-step))
	return s
}

// Given records facts, each a minute after the one before.
func (s *Scenario) Given(facts ...es.KeyedEvent) *Scenario {
	s.t.Helper()
	return s.GivenSince(time.Time{}, facts...)
}

// GivenSince records facts that became true at another time than they were recorded.
func (s *Scenario) GivenSince(effective time.Time, facts ...es.KeyedEvent) *Scenario {
	s.t.Helper()
	for _, fact := range facts {
		c := es.Command{ID: s.ids.Next(), Ref: fact.Ref, Actor: "tester", Received: s.clock.Advance(step), Effective: effective}
		s.record(c, []es.KeyedEvent{fact})
	}
	return s
}

// Recorded gives all events so far.
func (s *Scenario) Recorded() []es.Event { return s.recorded }

// Option changes a command before it is decided on.
type Option func(*es.Command)

// WithID gives the command an id.
func WithID(id string) Option { return func(c *es.Command) { c.ID = id } }

// By says who sends the command.
func By(actor string) Option { return func(c *es.Command) { c.Actor = actor } }

// OnBehalfOf says for whom the command is sent.
func OnBehalfOf(actor string) Option { return func(c *es.Command) { c.OnBehalfOf = actor } }

// Effective says when what the command reports became true.
func Effective(at time.Time) Option { return func(c *es.Command) { c.Effective = at } }

// Backfill asks that the command only adds to history.
func Backfill() Option { return func(c *es.Command) { c.Backfill = true } }

// Expecting gives the version that the sender decided on.
func Expecting(version uint64) Option { return func(c *es.Command) { c.Expected = &version } }

// UnderFence gives the lease that the sender acts under.
func UnderFence(fence uint64) Option { return func(c *es.Command) { c.Fence = fence } }

// When decides on a command. The decision is checked for what every decider owes: the same command on the same facts
// gives the same, however often it is asked, on a new decider as well, and after anything applied meanwhile is rolled back.
func (s *Scenario) When(payload es.Payload, options ...Option) *Decision {
	s.t.Helper()
	if err := payload.Validate(); err != nil {
		s.t.Fatalf("%T is malformed, so no decider ever sees it: %v", payload, err)
	}
	body, err := s.registry.Codec().Marshal(payload)
	if err != nil {
		s.t.Fatalf("encode %T: %v", payload, err)
	}
	c := es.Command{
		ID: s.ids.Next(), Ref: payload.Ref(), Verb: payload.Verb(), Data: payload, Digest: es.Digest(body),
		Actor: "tester", Received: s.clock.Advance(step),
	}
	for _, o := range options {
		o(&c)
	}
	return s.decide(c)
}

// Again sends the last command once more, as another command that asks the same.
func (s *Scenario) Again() *Decision {
	s.t.Helper()
	if s.last == nil {
		s.t.Fatalf("again, but no command came before")
	}
	c := s.last.command
	c.ID, c.Received = s.ids.Next(), s.clock.Advance(step)
	return s.decide(c)
}

// Decision is what came of a command. It MUST be judged by one of its Then methods.
type Decision struct {
	scenario *Scenario
	command  es.Command
	outcome
	judged bool
}

// outcome is what a decider gave.
type outcome struct {
	events []es.KeyedEvent
	err    error
}

func (d *Decision) String() string {
	return fmt.Sprintf("%s %s %s", d.command.Ref, d.command.Verb, d.command.ID)
}

func (s *Scenario) decide(c es.Command) *Decision {
	s.t.Helper()
	if s.last != nil && !s.last.judged {
		s.t.Fatalf("%s: nothing says what comes of it: add Then, ThenRefused or ThenUnchanged", s.last)
	}
	s.last = &Decision{scenario: s, command: c, outcome: ask(s.decider, c)}
	s.checkDecider(s.last)
	return s.last
}

func ask(d es.Decider, c es.Command) outcome {
	events, err := d.Decide(c)
	return outcome{events: events, err: err}
}

// Then says that the command is accepted and leads to exactly these events. They are recorded.
func (d *Decision) Then(want ...es.KeyedEvent) *Scenario {
	s := d.scenario
	s.t.Helper()
	d.judged = true
	if d.err != nil {
		s.t.Fatalf("%s: %v, want %d events", d, d.err, len(want))
	}
	if diff := cmp.Diff(want, d.events, cmpopts.EquateEmpty()); diff != "" {
		s.t.Fatalf("%s: events (-want +got):\n%s", d, diff)
	}
	s.record(d.command, d.events)
	return s
}

// ThenUnchanged says that all the command asks for is so already.
func (d *Decision) ThenUnchanged() *Scenario {
	s := d.scenario
	s.t.Helper()
	d.judged = true
	if d.err != nil || len(d.events) > 0 {
		s.t.Fatalf("%s: events %+v, error %v, want it unchanged", d, d.events, d.err)
	}
	s.decider.Note(d.command)
	return s
}

// ThenRefused says that the command is refused with a code, and that the refusal mentions what it is about.
func (d *Decision) ThenRefused(code string, mentions ...string) *Scenario {
	s := d.scenario
	s.t.Helper()
	d.judged = true
	var refusal *es.Refusal
	if !errors.As(d.err, &refusal) {
		s.t.Fatalf("%s: events %+v, error %v, want it refused as %s", d, d.events, d.err, code)
	}
	if refusal.Code != code || len(d.events) > 0 {
		s.t.Fatalf("%s: refused as %s with %d events, want %s: %v", d, refusal.Code, len(d.events), code, refusal)
	}
	if refusal.Message == "" || refusal.Status == "" {
		s.t.Fatalf("%s: the refusal %s has no message or no status", d, code)
	}
	for _, m := range mentions {
		if !strings.Contains(refusal.Error(), m) {
			s.t.Fatalf("%s: the refusal does not mention %q: %v", d, m, refusal)
		}
	}
	return s
}

// record stamps, stores and applies what a command led to.
func (s *Scenario) record(c es.Command, facts []es.KeyedEvent) {
	s.t.Helper()
	for _, e := range s.stamp(&s.tail, c, facts) {
		apply(s.t, s.decider, e)
		s.recorded = append(s.recorded, e)
	}
	s.decider.Release(s.decider.Mark())
}

// stamp makes recorded events of facts, as they are read back from the stream.
func (s *Scenario) stamp(at *tail, c es.Command, facts []es.KeyedEvent) []es.Event {
	s.t.Helper()
	var out []es.Event
	for i, fact := range facts {
		name, body, err := s.registry.Encode(fact.Data)
		if err != nil {
			s.t.Fatalf("fact %d on %s: %v", i, fact.Ref, err)
		}
		at.versions[fact.Ref]++
		e := es.Event{
			ID: fmt.Sprintf("%s/%d", c.ID, i), Type: name, Ref: fact.Ref, Version: at.versions[fact.Ref],
			Recorded: c.Received, Effective: fact.At(c), Backfill: fact.Backfill, Body: body,
			Command: es.Cause{ID: c.ID, Ref: c.Ref, Digest: c.Digest, Actor: c.Actor, OnBehalfOf: c.OnBehalfOf},
		}
		m := e.Message(s.registry.Codec().ContentType())
		at.head = at.head.Seal(&m)
		if e, err = s.registry.Decode(m); err != nil {
			s.t.Fatalf("fact %d on %s can't be read back: %v", i, fact.Ref, err)
		}
		out = append(out, e)
	}
	return out
}

func apply(t testing.TB, d es.Decider, e es.Event) {
	t.Helper()
	if err := d.Apply(e); err != nil {
		t.Fatalf("apply event %d, %s of %s: %v", e.Sequence, e.Type, e.Ref, err)
	}
}
