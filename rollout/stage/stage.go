package stage

import (
	"fmt"
	"time"

	"github.com/cockroachdb/errors"

	"catenary/commands"
	"catenary/es"
	"catenary/events"
	"catenary/rollout/walk"
)

// Actors of a stage.
const (
	Engine = "engine"
	Person = "ann"
)

// leaseTTL is the engine's: a stage's clock does not let it run out before another takes it.
const leaseTTL = "10s"

// Stage is a ledger, and an engine beside it on the same clock.
type Stage struct {
	*Ledger
	Walk *walk.State
	// Refused is what the writer refused the engine.
	Refused []Refused

	window   int
	engines  int
	told     map[events.StepName]Told
	commands int
}

// Refused is a command of the engine that the writer did not do.
type Refused struct {
	Action walk.Action
	Answer es.Answer
}

// Told is what a node was last told, and by which event.
type Told struct {
	events.Told
	Sequence uint64
	// Ended says that it was told to run the module no more.
	Ended bool
}

// New returns a stage whose engine has the lease. Window bounds the engine's commands under way; 0 means the engine's own bound.
func New(now time.Time, window int) (*Stage, error) {
	ledger, err := NewLedger(now, NewTools())
	if err != nil {
		return nil, err
	}
	s := &Stage{Ledger: ledger, window: window, told: map[events.StepName]Told{}}
	s.Walk = s.newWalk()
	return s, s.TakeOver()
}

func (s *Stage) newWalk() *walk.State {
	return walk.New(walk.Config{Registry: s.tools.Registry, Window: s.window})
}

// TakeOver lets another engine take the lease that the one before has given back. It begins with nothing but the log.
func (s *Stage) TakeOver() error {
	if s.engines > 0 {
		if err := s.must(Engine, commands.ReleaseLease{Name: commands.EngineLease, Holder: s.holder()}); err != nil {
			return err
		}
	}
	s.engines++
	if err := s.must(Engine, commands.TakeLease{Name: commands.EngineLease, Holder: s.holder(), TTL: leaseTTL}); err != nil {
		return err
	}
	return s.Restart()
}

// Restart makes the engine anew from the log, as after a crash that left the lease as it is.
func (s *Stage) Restart() error {
	fresh, err := s.Fold(len(s.Events))
	s.Walk = fresh
	return err
}

// Fold gives an engine that has read the first n events.
func (s *Stage) Fold(n int) (*walk.State, error) {
	w := s.newWalk()
	for _, e := range s.Events[:n] {
		if err := w.Apply(e); err != nil {
			return nil, err
		}
	}
	return w, nil
}

func (s *Stage) holder() string { return fmt.Sprintf("engine-%d", s.engines) }

// Send sends a command and records what it leads to.
func (s *Stage) Send(actor string, p es.Payload) (es.Answer, error) { return s.send(actor, 0, 0, p) }

func (s *Stage) send(actor string, fence, expected uint64, p es.Payload) (es.Answer, error) {
	s.commands++
	before := len(s.Events)
	c := es.Command{ID: fmt.Sprintf("c%d", s.commands), Ref: p.Ref(), Verb: p.Verb(), Data: p, Actor: actor, Fence: fence}
	if expected != 0 {
		c.Expected = &expected
	}
	answer, err := s.Do(c)
	if err != nil {
		return answer, err
	}
	for _, e := range s.Events[before:] {
		s.note(e)
		if s.Walk == nil {
			continue
		}
		if err := s.Walk.Apply(e); err != nil {
			return answer, err
		}
	}
	return answer, nil
}

func (s *Stage) note(e es.Event) {
	switch f := e.Data.(type) {
	case events.AssignmentAssigned:
		s.told[events.StepName{Node: f.Node, Module: f.Module}] = Told{Told: f.Told, Sequence: e.Sequence}
	case events.AssignmentEnded:
		n := events.StepName{Node: f.Node, Module: f.Module}
		s.told[n] = Told{Told: events.Told{Node: f.Node, Module: f.Module, Rollout: f.Rollout}, Sequence: e.Sequence, Ended: true}
	}
}

func (s *Stage) must(actor string, p es.Payload) error {
	a, err := s.Send(actor, p)
	if err == nil && a.Status != es.StatusAccepted && a.Status != es.StatusUnchanged {
		err = errors.Newf("%s %s: %s: %+v", p.Ref(), p.Verb(), a.Status, a.Error)
	}
	return err
}

// Must sends a person's commands, each of which has to be done.
func (s *Stage) Must(payloads ...es.Payload) error {
	for _, p := range payloads {
		if err := s.must(Person, p); err != nil {
			return err
		}
	}
	return nil
}

// Look lets the engine look once, sends what it asks for, and gives that, with when it wants to look again.
func (s *Stage) Look() ([]walk.Action, time.Time, error) {
	due, again := s.Walk.Next(s.Now)
	for _, a := range due {
		if err := s.Act(a); err != nil {
			return nil, time.Time{}, err
		}
	}
	return due, again, nil
}

// Act sends what the engine asks for, and tells it the answer.
func (s *Stage) Act(a walk.Action) error {
	answer, err := s.send(Engine, s.Walk.Lease().Fence, a.Expected, a.Payload)
	if err != nil {
		return errors.Wrapf(err, "%s %s", a.Payload.Ref(), a.Payload.Verb())
	}
	if answer.Status != es.StatusAccepted {
		s.Refused = append(s.Refused, Refused{Action: a, Answer: answer})
	}
	s.Walk.Answered(a, answer, nil, s.Now)
	return nil
}

// mostLooks bounds the looks without anything happening meanwhile: an engine that asks for ever turns in a circle.
const mostLooks = 10_000

// Settle lets the engine look until nothing is due any more, and gives when it wants to look again.
func (s *Stage) Settle() (time.Time, error) {
	for range mostLooks {
		due, again, err := s.Look()
		if err != nil || len(due) == 0 {
			return again, err
		}
	}
	return time.Time{}, errors.Newf("the engine asks for ever: %d looks", mostLooks)
}

// Told gives what a node was last told.
func (s *Stage) Told(node, module string) Told {
	return s.told[events.StepName{Node: node, Module: module}]
}

// Report lets a node report about what it was last told.
func (s *Stage) Report(node, module, outcome string) (es.Answer, error) {
	t := s.Told(node, module)
	seen := events.Seen{Node: node, Module: module, Reference: t.Reference, Build: t.Build, Rollout: t.Rollout, Source: t.Sequence}
	return s.Send(node, commands.Observe{Seen: seen, Outcome: outcome})
}

// Comply lets every node that has a pending step report that it did what the step's rollout told it, and gives how many did. A node that was told
// something else since says nothing of it.
func (s *Stage) Comply() (int, error) {
	n := 0
	for _, p := range s.Walk.Pending() {
		told := s.Told(p.Node, p.Module)
		if told.Rollout != p.Rollout {
			continue
		}
		outcome := commands.OutcomeApplied
		if told.Ended {
			outcome = commands.OutcomeRemoved
		}
		if _, err := s.Report(p.Node, p.Module, outcome); err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}

// Play lets the engine look and every node comply until neither has anything to do. Time stands still.
func (s *Stage) Play() error {
	for {
		if _, err := s.Settle(); err != nil {
			return err
		}
		before := len(s.Events)
		if _, err := s.Comply(); err != nil || len(s.Events) == before {
			return err
		}
	}
}
