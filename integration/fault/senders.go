package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/errors"
	"github.com/google/uuid"
	"github.com/nats-io/nats.go"

	"catenary/commands"
	"catenary/es"
	"catenary/es/dispatch"
	"catenary/events"
	"catenary/integration/fault/check"
	"catenary/internal/hammer"
)

const (
	// senders is how many send at the same time.
	senders = 10
	// tryPatience is how long a sender waits for an answer before it sends again. It is shorter than the writer's patience, so that repeats meet
	// commands that are under way.
	tryPatience = 1500 * time.Millisecond
	// triesAtOnce is how often a command is sent before its sender does something else and comes back to it when the faults are over.
	triesAtOnce = 4
	// thinkLeast and thinkMost bound the pause between two commands of a sender.
	thinkLeast, thinkMost = 5 * time.Millisecond, 25 * time.Millisecond
	// stormCallers is how many want the same key in a storm.
	stormCallers = 64
)

// crowd is all that send commands.
type crowd struct {
	began  time.Time
	client *dispatch.Client
	nc     *nats.Conn

	mu       sync.Mutex
	records  []*record
	versions map[es.Ref]uint64 // as last heard
	accepted atomic.Int64
	lastDone atomic.Int64 // when something was last accepted, since began
}

// record is a command with its history.
type record struct {
	check.Command
	request dispatch.Request
	mu      sync.Mutex
}

func newCrowd(nc *nats.Conn) *crowd {
	return &crowd{began: time.Now(), client: dispatch.NewClient(nc), nc: nc, versions: map[es.Ref]uint64{}}
}

func (c *crowd) since() time.Duration { return time.Since(c.began) }

// note makes a command known.
func (c *crowd) note(p es.Payload, expected *uint64) (*record, error) {
	id, err := uuid.NewV7()
	if err != nil {
		return nil, errors.Wrap(err, "make a command id")
	}
	request, err := commands.Request(p, dispatch.Options{ID: id.String(), Expected: expected})
	if err != nil {
		return nil, errors.Wrapf(err, "%s %s", p.Ref(), p.Verb())
	}
	r := &record{Command: check.Command{ID: id.String(), Ref: p.Ref(), Verb: p.Verb(), Expected: expected}, request: request}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.records = append(c.records, r)
	return r, nil
}

// try sends a command once, and keeps what came of it.
func (c *crowd) try(ctx context.Context, r *record) check.Outcome {
	bounded, cancel := context.WithTimeout(ctx, tryPatience)
	defer cancel()
	t := check.Try{Called: c.since()}
	answer, err := c.client.Send(bounded, r.request)
	t.Returned = c.since()
	if err == nil {
		t.Answer = answer
	}
	r.mu.Lock()
	r.Tries = append(r.Tries, t)
	r.mu.Unlock()
	if t.Outcome() == check.Done {
		c.accepted.Add(1)
		c.lastDone.Store(int64(t.Returned))
	}
	if t.Outcome() == check.Done || t.Saw() {
		c.mu.Lock()
		c.versions[r.Ref] = t.Answer.Version
		c.mu.Unlock()
	}
	return t.Outcome()
}

// resolved says whether it is known what became of a command.
func (r *record) resolved() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, t := range r.Tries {
		if t.Outcome() == check.Done {
			return true
		}
	}
	n := len(r.Tries)
	return n > 0 && r.Tries[n-1].Outcome() == check.Not && r.Tries[n-1].Answer.Status != es.StatusBusy
}

// last is what the last try was answered.
func (r *record) last() es.Status {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.Tries[len(r.Tries)-1].Answer.Status
}

// insist sends a command so often, until it is known what became of it.
func (c *crowd) insist(ctx context.Context, r *record, tries int) bool {
	for range tries {
		if c.try(ctx, r); r.resolved() {
			return true
		}
		if ctx.Err() != nil {
			return false
		}
		time.Sleep(thinkLeast)
	}
	return false
}

// do sends a payload until it is known what became of it, for what a run needs before anything is broken.
func (c *crowd) do(ctx context.Context, list ...es.Payload) error {
	for _, p := range list {
		r, err := c.note(p, nil)
		if err != nil {
			return err
		}
		if !c.insist(ctx, r, 20) {
			return errors.Newf("%s %s is not answered", p.Ref(), p.Verb())
		}
		if s := r.last(); s != es.StatusAccepted && s != es.StatusUnchanged {
			return errors.Newf("%s %s: %s", p.Ref(), p.Verb(), s)
		}
	}
	return nil
}

// The chain that the senders play with. What has an agent is told by them and by rollouts, but never the same module by both.
var (
	externalNodes = []string{"c1", "c2", "c3"}
	// m3 pulls in m4.
	externalModules = []string{"m1", "m2", "m3", "m4"}
	agentModules    = []string{"x1", "x2"}
	freezes         = []string{"f1", "f2"}
)

// prepare makes nodes and modules known.
func (c *crowd) prepare(ctx context.Context) error {
	var list []es.Payload
	for _, n := range externalNodes {
		list = append(list, commands.RegisterNode{Node: n, ManagedBy: events.ManagedByExternal})
	}
	for _, n := range agentNodes() {
		list = append(list, commands.RegisterNode{Node: n, ManagedBy: events.ManagedByAgent})
	}
	for _, m := range append([]string{"m4", "m1", "m2"}, agentModules...) {
		list = append(list, commands.RegisterModule{ModuleSpec: events.ModuleSpec{Module: m}})
	}
	list = append(list, commands.RegisterModule{ModuleSpec: events.ModuleSpec{Module: "m3", Requires: []string{"m4"}}})
	return c.do(ctx, list...)
}

// sender draws commands.
type sender struct {
	*rand.Rand
	n    int
	made int
}

func of[T any](s *sender, list []T) T { return list[s.IntN(len(list))] }

func (s *sender) reference(module string) events.Reference {
	return events.Reference{Package: &events.Package{Name: module, Version: fmt.Sprintf("%d.%d", s.n, s.made)}}
}

// payload draws a command.
func (s *sender) payload() es.Payload {
	s.made++
	node, module := of(s, externalNodes), of(s, externalModules)
	switch n := s.IntN(100); {
	case n < 50:
		return commands.Assign{Node: node, Module: module, Reference: s.reference(module)}
	case n < 62:
		return commands.Unassign{Node: node, Module: module, Reason: "drawn"}
	case n < 74:
		return commands.Move{Node: node, Module: module, To: of(s, externalNodes), Reason: "drawn"}
	case n < 79:
		return commands.RegisterNode{Node: fmt.Sprintf("u%d-%d", s.n, s.made), ManagedBy: events.ManagedByExternal}
	case n < 84:
		return commands.DeclareFreeze{Name: of(s, freezes), Selector: events.Selector{Modules: []string{"m1"}}, Reason: fmt.Sprint(s.made)}
	case n < 88:
		return commands.LiftFreeze{Name: of(s, freezes)}
	case n < 98:
		module = of(s, agentModules)
		return commands.Assign{Node: of(s, agentNodes()), Module: module, Reference: s.reference(module)}
	}
	return commands.Unassign{Node: of(s, agentNodes()), Module: of(s, agentModules), Reason: "drawn"}
}

// run lets all senders send until the context ends. What they send follows from the seed; when, from how they are answered.
func (c *crowd) run(ctx context.Context, seed uint64) error {
	var all sync.WaitGroup
	failures := make(chan error, senders)
	for n := range senders {
		s := &sender{Rand: rand.New(rand.NewPCG(seed, uint64(n))), n: n}
		all.Go(func() {
			for ctx.Err() == nil {
				if err := c.next(ctx, s); err != nil {
					failures <- err
					return
				}
				time.Sleep(thinkLeast + time.Duration(s.Int64N(int64(thinkMost-thinkLeast))))
			}
		})
	}
	all.Wait()
	close(failures)
	return <-failures
}

// next sends the next command of a sender: a new one, or one that was done long ago.
func (c *crowd) next(ctx context.Context, s *sender) error {
	if s.IntN(12) == 0 {
		if r := c.anyRecord(s); r != nil {
			c.try(ctx, r)
			return nil
		}
	}
	p := s.payload()
	var expected *uint64
	if s.IntN(2) == 0 {
		c.mu.Lock()
		version := c.versions[p.Ref()]
		c.mu.Unlock()
		expected = &version
	}
	r, err := c.note(p, expected)
	if err == nil {
		c.insist(ctx, r, triesAtOnce)
	}
	return err
}

func (c *crowd) anyRecord(s *sender) *record {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.records) == 0 {
		return nil
	}
	return c.records[s.IntN(len(c.records))]
}

// anyID gives the id of a command that was sent.
func (c *crowd) anyID(random *rand.Rand) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.records) == 0 {
		return "none"
	}
	return c.records[random.IntN(len(c.records))].ID
}

// storm lets many want the same key at the same version at once. It is case B01.
func (c *crowd) storm(ctx context.Context, n int) error {
	ref := commands.AssignmentRef(externalNodes[0], externalModules[0])
	c.mu.Lock()
	version := c.versions[ref]
	c.mu.Unlock()
	var all sync.WaitGroup
	for i := range stormCallers {
		p := commands.Assign{Node: externalNodes[0], Module: externalModules[0], Reference: events.Reference{Package: &events.Package{Name: externalModules[0], Version: fmt.Sprintf("storm-%d-%d", n, i)}}}
		r, err := c.note(p, &version)
		if err != nil {
			return err
		}
		all.Go(func() { c.insist(ctx, r, triesAtOnce) })
	}
	all.Wait()
	return nil
}

// rollouts plans one rollout after another over the nodes with agents, until the context ends, and gives how many.
func (c *crowd) rollouts(ctx context.Context) (int, error) {
	for n := 1; ; n++ {
		module := fmt.Sprintf("y%d", n)
		id := fmt.Sprintf("r%d", n)
		version := &events.Version{Reference: events.Reference{Package: &events.Package{Name: module, Version: "1"}}}
		var steps []events.PlannedStep
		for _, node := range agentNodes() {
			steps = append(steps, events.PlannedStep{Tier: "all", StepName: events.StepName{Node: node, Module: module}, After: version})
		}
		list, err := hammer.Planned(id, events.Raw(`{"tiers":[{"name":"all"}]}`), steps...)
		if err != nil {
			return n - 1, err
		}
		list = append([]es.Payload{commands.RegisterModule{ModuleSpec: events.ModuleSpec{Module: module}}}, append(list, commands.StartRollout{ID: id})...)
		for _, p := range list {
			// Without this one the next can't be done.
			if done, err := c.untilTaken(ctx, p); err != nil || !done {
				return n - 1, err
			}
		}
		select {
		case <-ctx.Done():
			return n, nil
		case <-time.After(rolloutPause):
		}
	}
}

// untilTaken sends a payload until it is known what became of it, and as another command when a writer does not take its id: one whose clock is wrong takes
// it for one of the future. It says whether that came to an end before the context did.
func (c *crowd) untilTaken(ctx context.Context, p es.Payload) (bool, error) {
	for {
		r, err := c.note(p, nil)
		if err != nil {
			return false, err
		}
		for !c.insist(ctx, r, triesAtOnce) {
			if ctx.Err() != nil {
				return false, nil
			}
		}
		if r.last() != es.StatusInvalid {
			return true, nil
		}
	}
}

// rolloutPause is the time between two rollouts.
const rolloutPause = 400 * time.Millisecond

// open gives the commands of which it is not known what became of them.
func (c *crowd) open() []*record {
	c.mu.Lock()
	defer c.mu.Unlock()
	var list []*record
	for _, r := range c.records {
		if !r.resolved() {
			list = append(list, r)
		}
	}
	return list
}

// commands gives all histories.
func (c *crowd) commands() []check.Command {
	c.mu.Lock()
	defer c.mu.Unlock()
	list := make([]check.Command, len(c.records))
	for i, r := range c.records {
		r.mu.Lock()
		list[i] = r.Command
		r.mu.Unlock()
	}
	return list
}
