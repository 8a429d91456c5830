package stage

import (
	"bytes"
	"fmt"
	"strconv"
	"time"

	"github.com/cockroachdb/errors"

	"catenary/aggregates"
	"catenary/aggregates/content"
	"catenary/commands"
	"catenary/es"
	"catenary/events"
)

// Ledger decides commands on a world and keeps what comes of them, as a writer does on its stream.
type Ledger struct {
	World *aggregates.World
	// Now is the writer's clock.
	Now time.Time
	// Events holds every event.
	Events []es.Event
	// Decide decides in the world's place, and Fold changes what the world takes in; nil leaves both as they are. Tests plant faults there.
	Decide func(*aggregates.World, es.Command) ([]es.KeyedEvent, error)
	Fold   func(es.Event) es.Event

	tools   *Tools
	writers int
	// accepted holds the last event of what was accepted: a command that comes again gets its first answer.
	accepted map[identity]uint64
}

// identity tells a command from every other one.
type identity struct {
	ref es.Ref
	id  string
}

// usual is how many events most histories have.
const usual = 192

// Tools are what ledgers read, write and measure with. Making them takes as long as a short history: ledgers that one goroutine uses, one after
// another, may share them.
type Tools struct {
	Registry *es.Registry
	measure  *content.Measure
}

// NewTools returns the tools for all kinds of events.
func NewTools() *Tools { return &Tools{Registry: events.Registry(), measure: &content.Measure{}} }

// NewLedger returns a ledger without events.
func NewLedger(now time.Time, tools *Tools) (*Ledger, error) {
	world, err := tools.world()
	return &Ledger{World: world, Now: now.UTC(), Events: make([]es.Event, 0, usual), tools: tools, accepted: make(map[identity]uint64, usual)}, err
}

func (t *Tools) world() (*aggregates.World, error) {
	return aggregates.NewWorld(aggregates.Config{Measure: t.measure})
}

// Do decides a command and records what it leads to. It gives errors for a payload of a wrong shape, and for faults of the program; a refusal
// is an answer.
func (l *Ledger) Do(c es.Command) (es.Answer, error) {
	if p, ok := c.Data.(es.Payload); ok {
		if err := p.Validate(); err != nil {
			return es.Answer{}, err
		}
	}
	id := identity{ref: c.Ref, id: c.ID}
	if last, ok := l.accepted[id]; ok {
		return es.Answer{Status: es.StatusAccepted, Sequence: last, Repeated: true}, nil
	}
	c.Received = l.Now
	if !c.Deadline.IsZero() && l.Now.After(c.Deadline) {
		return es.Answer{Status: es.StatusExpired, Error: &es.AnswerError{Code: "deadline-passed"}}, nil
	}
	if c.Fence != 0 && l.World.Fenced(c.Fence) {
		return es.Answer{Status: es.StatusFenced, Error: &es.AnswerError{Code: "fenced"}}, nil
	}
	if c.Expected != nil && *c.Expected != l.World.Version(c.Ref) {
		return es.Answer{Status: es.StatusConflict, Error: &es.AnswerError{Code: "version"}}, nil
	}
	facts, err := l.decide(c)
	var refusal *es.Refusal
	switch {
	case errors.As(err, &refusal):
		return es.Answer{Status: refusal.Status, Error: &es.AnswerError{
			Code: refusal.Code, Message: refusal.Message, RetryAfterMillis: refusal.RetryAfter.Milliseconds(),
		}}, nil
	case err != nil:
		return es.Answer{}, err
	case len(facts) == 0:
		l.World.Note(c)
		return es.Answer{Status: es.StatusUnchanged}, nil
	}
	for _, f := range facts {
		if err := l.record(c, f); err != nil {
			return es.Answer{}, err
		}
	}
	l.accepted[id] = uint64(len(l.Events))
	return es.Answer{Status: es.StatusAccepted, Sequence: uint64(len(l.Events))}, nil
}

func (l *Ledger) decide(c es.Command) ([]es.KeyedEvent, error) {
	if l.Decide != nil {
		return l.Decide(l.World, c)
	}
	return l.World.Decide(c)
}

// record stores an event and folds it, in the form in which it is read back.
func (l *Ledger) record(c es.Command, f es.KeyedEvent) error {
	name, body, err := l.tools.Registry.Encode(f.Data)
	if err != nil {
		return err
	}
	data, err := l.tools.Registry.DecodeBody(name, body)
	if err != nil {
		return err
	}
	e := es.Event{
		Sequence: uint64(len(l.Events)) + 1, ID: "e" + strconv.Itoa(len(l.Events)+1), Type: name, Ref: f.Ref, Version: l.World.Version(f.Ref) + 1,
		Recorded: l.Now, Effective: f.At(c), Backfill: f.Backfill, Data: data, Body: body,
		Command: es.Cause{ID: c.ID, Ref: c.Ref, Actor: c.Actor},
	}
	folded := e
	if l.Fold != nil {
		folded = l.Fold(e)
	}
	if err := l.World.Apply(folded); err != nil {
		return err
	}
	l.Events = append(l.Events, e)
	return nil
}

// Reopen goes on with another writer, whose world is the snapshot of this one's. Leases count as just renewed.
func (l *Ledger) Reopen() error {
	var snapshot bytes.Buffer
	if err := l.World.Snapshot(&snapshot); err != nil {
		return err
	}
	world, err := l.tools.world()
	if err != nil {
		return err
	}
	if err := world.Restore(&snapshot); err != nil {
		return err
	}
	l.World = world
	l.writers++
	start := commands.StartWriter{WriterStarted: events.WriterStarted{ID: fmt.Sprintf("writer-%d", l.writers), Program: "stage", Rules: aggregates.RulesVersion}}
	_, err = l.Do(es.Command{ID: start.ID, Ref: start.Ref(), Verb: start.Verb(), Data: start, Actor: "writer"})
	return err
}
