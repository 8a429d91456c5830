package agent

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/errors"
	"github.com/google/go-cmp/cmp"

	"catenary/agent/driver"
	"catenary/events"
)

// patience bounds every wait. It is reached only when something is broken.
const patience = 30 * time.Second

// quick is how often agents of tests do what others do every few seconds.
const quick = 20 * time.Millisecond

// fakeDesk says what it is given, and notes what it hears.
type fakeDesk struct {
	mu     sync.Mutex
	answer Answer
	heard  []CheckIn
	away   bool
}

func (d *fakeDesk) tell(instructions ...Instruction) {
	d.mu.Lock()
	defer d.mu.Unlock()
	edition := fmt.Sprint(len(d.heard), "-", len(instructions), "-", instructions[len(instructions)-1].Source)
	d.answer = Answer{Node: "n1", Known: true, ManagedBy: events.ManagedByAgent, Edition: edition, Told: instructions}
}

func (d *fakeDesk) CheckIn(_ context.Context, c CheckIn) (Answer, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.away {
		return Answer{}, ErrNoDesk
	}
	d.heard = append(d.heard, c)
	if c.Known == d.answer.Edition {
		return Answer{Node: "n1", Unchanged: true}, nil
	}
	return d.answer, nil
}

func (d *fakeDesk) last() CheckIn {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.heard) == 0 {
		return CheckIn{}
	}
	return d.heard[len(d.heard)-1]
}

// fakeOutbox takes reports, but for the first few times.
type fakeOutbox struct {
	mu      sync.Mutex
	refuses int
	taken   []Report
}

func (o *fakeOutbox) Take(_ context.Context, r Report) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.refuses > 0 {
		o.refuses--
		return errors.New("the disk is full")
	}
	o.taken = append(o.taken, r)
	return nil
}

func (o *fakeOutbox) Unsent() int                 { return 0 }
func (o *fakeOutbox) Flush(context.Context) error { return nil }

func (o *fakeOutbox) said() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	var s State
	s.Reports = o.taken
	return s.outcomes()
}

// kept is a driver over what is kept when an agent ends. An apply waits for its gate, where it has one.
type kept struct {
	mu      sync.Mutex
	runs    map[string]string
	applied []uint64
	fails   int
	gate    chan struct{}
	begun   chan struct{}
}

func (k *kept) Describe() events.Driver                       { return simDriver }
func (k *kept) Check(context.Context, driver.Task) error      { return nil }
func (k *kept) Remove(_ context.Context, t driver.Task) error { k.set(t.Module, ""); return nil }
func (k *kept) set(module, version string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.runs[module] = version
}

func (k *kept) Apply(ctx context.Context, t driver.Task) (driver.Result, error) {
	k.mu.Lock()
	gate, fails := k.gate, k.fails > 0
	k.fails--
	k.mu.Unlock()
	if gate != nil {
		k.begun <- struct{}{}
		select {
		case <-gate:
		case <-ctx.Done():
			return driver.Result{}, ctx.Err()
		}
	}
	if fails {
		return driver.Result{}, driver.Fatal(errors.New("it fails"))
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.runs[t.Module], k.applied = t.Version(), append(k.applied, t.Source)
	return driver.Result{}, nil
}

func (k *kept) Observe(_ context.Context, t driver.Task) (driver.Finding, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch k.runs[t.Module] {
	case "":
		return driver.Finding{State: driver.Absent}, nil
	case t.Version():
		return driver.Finding{State: driver.AsTold}, nil
	}
	return driver.Finding{State: driver.Other, Found: "another one runs"}, nil
}

// scene is an agent with all it touches.
type scene struct {
	t      *testing.T
	desk   *fakeDesk
	outbox *fakeOutbox
	driver *kept
	memory Memory
	cfg    Config
	starts int
	// seldom lets the agent check in when it has a reason alone.
	seldom bool
}

func newScene(t *testing.T) *scene {
	return &scene{t: t, desk: &fakeDesk{}, outbox: &fakeOutbox{}, driver: &kept{runs: map[string]string{}}, memory: &Volatile{}}
}

// start runs the agent; what it gives ends it, and gives what Run gave.
func (s *scene) start() (end func() error) {
	s.t.Helper()
	c := s.cfg
	s.starts++
	c.Node, c.Run, c.Drivers, c.Memory, c.Desk, c.Outbox = "n1", fmt.Sprint("run", s.starts), s.cfg.Drivers, s.memory, s.desk, s.outbox
	if c.Drivers == nil {
		c.Drivers = []driver.Driver{s.driver}
	}
	c.Every, c.Observe, c.Retry, c.MostRetry, c.StopWithin = quick, quick, quick, quick, quick
	if s.seldom {
		c.Every = time.Hour
	}
	c.Logger = slog.New(slog.NewTextHandler(s.t.Output(), nil))
	a, err := New(c)
	if err != nil {
		s.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(s.t.Context())
	ended := make(chan error, 1)
	go func() { ended <- a.Run(ctx) }()
	return func() error {
		cancel()
		return <-ended
	}
}

func (s *scene) eventually(what string, so func() bool) {
	s.t.Helper()
	tick, limit := time.NewTicker(5*time.Millisecond), time.After(patience)
	defer tick.Stop()
	for !so() {
		select {
		case <-tick.C:
		case <-limit:
			s.t.Fatalf("waited in vain: %s; it has said %v, and was last heard as %+v", what, s.outbox.said(), s.desk.last())
		}
	}
}

func (s *scene) check(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Errorf("it ended with %v", err)
	}
}

func byHand(module string, source uint64, v string) Instruction {
	i := standing(module, source, v)
	i.Rollout = ""
	return i
}

// TestTriesAgain tries again what nobody's rollout told, until it is done, and reports each try.
func TestTriesAgain(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.driver.fails, s.outbox.refuses = 2, 1
	s.desk.tell(byHand("web", 7, "1"))
	end := s.start()
	s.eventually("it is done at last", func() bool { return s.desk.last().Status.Converged })
	s.check(end())
	want := []string{"web apply-failed of  at 7", "web apply-failed of  at 7", "web applied of  at 7"}
	if diff := cmp.Diff(want, s.outbox.said()); diff != "" {
		t.Errorf("reports (-want +got):\n%s", diff)
	}
	ids := map[string]bool{}
	for _, r := range s.outbox.taken {
		ids[r.ID] = true
	}
	if len(ids) != 3 {
		t.Errorf("reports share ids: %v", ids)
	}
}

// TestStoppedInTheMiddle ends an agent while it applies something; what comes of it then is settled at the next start.
func TestStoppedInTheMiddle(t *testing.T) {
	t.Parallel()
	for name, done := range map[string]bool{"it was done after all": true, "it was not done": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			s.driver.gate, s.driver.begun = make(chan struct{}), make(chan struct{}, 1)
			s.desk.tell(standing("web", 7, "1"))
			end := s.start()
			<-s.driver.begun
			s.check(end())
			if said := s.outbox.said(); len(said) > 0 {
				t.Errorf("it reports %v of what has no outcome", said)
			}
			if kept, _, err := s.memory.Load(); err != nil || kept.Doing == nil || kept.Doing.Instruction.Source != 7 {
				t.Errorf("kept is %+v, %v", kept.Doing, err)
			}
			if done {
				s.driver.set("web", "1")
			}
			close(s.driver.gate)
			end = s.start()
			s.eventually("it has converged", func() bool { return s.desk.last().Status.Converged })
			s.check(end())
			if diff := cmp.Diff([]string{"web applied of r1 at 7"}, s.outbox.said()); diff != "" {
				t.Errorf("reports (-want +got):\n%s", diff)
			}
			if applied := len(s.driver.applied); done && applied != 0 || !done && applied != 1 {
				t.Errorf("applied %d times", applied)
			}
		})
	}
}

// TestAsksForEverything after it was connected again, and soon after a hint.
func TestAsksForEverything(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	connected, hints := make(chan struct{}, 1), make(chan uint64, 8)
	s.cfg.Connected, s.cfg.Hints = connected, hints
	s.desk.tell(standing("web", 7, "1"))
	end := s.start()
	s.eventually("it has converged", func() bool { return s.desk.last().Status.Converged && s.desk.last().Known != "" })
	known := s.desk.last().Known
	connected <- struct{}{}
	s.eventually("it asks for everything", func() bool {
		s.desk.mu.Lock()
		defer s.desk.mu.Unlock()
		at := slices.IndexFunc(s.desk.heard, func(c CheckIn) bool { return c.Known == known })
		return slices.IndexFunc(s.desk.heard[at:], func(c CheckIn) bool { return c.Known == "" }) > 0
	})
	hints <- 11
	hints <- 12
	s.eventually("it asks for what it has heard of", func() bool {
		s.desk.mu.Lock()
		defer s.desk.mu.Unlock()
		return slices.ContainsFunc(s.desk.heard, func(c CheckIn) bool { return c.After == 12 })
	})
	s.check(end())
}

// TestGoesOnWithoutADesk acts on what it knows while nobody answers.
func TestGoesOnWithoutADesk(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.desk.tell(standing("web", 7, "1"))
	end := s.start()
	s.eventually("it has converged", func() bool { return s.desk.last().Status.Converged })
	s.check(end())
	s.desk.away = true
	s.driver.set("web", "by hand")
	end = s.start()
	s.eventually("it reports the drift", func() bool { return slices.Contains(s.outbox.said(), "web drifted of r1 at 7") })
	s.check(end())
}

// brokenMemory can't be written any more after a while.
type brokenMemory struct {
	Volatile
	left int
}

func (b *brokenMemory) Save(s State) error {
	if b.left--; b.left < 0 {
		return errors.New("the disk is gone")
	}
	return b.Volatile.Save(s)
}

// TestWithoutMemoryItEnds: what can't be remembered is not begun.
func TestWithoutMemoryItEnds(t *testing.T) {
	t.Parallel()
	for left := range 4 {
		s := newScene(t)
		memory := &brokenMemory{left: left}
		s.memory = memory
		s.desk.tell(standing("web", 7, "1"))
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		a, err := New(Config{
			Node: "n1", Run: "run", Drivers: []driver.Driver{s.driver}, Memory: memory, Desk: s.desk, Outbox: s.outbox, Every: quick,
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := a.Run(ctx); err == nil || ctx.Err() != nil {
			t.Errorf("with %d writes left it ends with %v", left, err)
		}
		cancel()
		if kept, _, err := memory.Load(); err != nil || len(s.driver.applied) > 0 && kept.Doing == nil && kept.Modules["web"].Applied == nil {
			t.Errorf("with %d writes left it has applied what it does not remember to have begun: %+v, %v", left, kept, err)
		}
	}
}

// stuck is a driver that never finds out what runs of one module.
type stuck struct{ *kept }

func (s stuck) Observe(ctx context.Context, t driver.Task) (driver.Finding, error) {
	if t.Module == "api" {
		<-ctx.Done()
		return driver.Finding{}, context.Cause(ctx)
	}
	return s.kept.Observe(ctx, t)
}

// TestLookThatHangs: a driver that does not find out what runs of one module keeps nobody from looking at the others.
func TestLookThatHangs(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.cfg.Drivers = []driver.Driver{stuck{s.driver}}
	s.desk.tell(standing("api", 6, "1"), standing("web", 7, "1"))
	end := s.start()
	s.eventually("both are applied", func() bool { return len(s.outbox.said()) == 2 })
	s.driver.set("web", "2")
	s.eventually("the drift of the other one is found", func() bool { return s.desk.last().Status.Drifted != nil })
	s.check(end())
}

// TestSaysAtOnceHowItStands: nobody waits for the next check-in to hear what an agent has, or that it has failed.
func TestSaysAtOnceHowItStands(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.seldom = true
	s.driver.fails = 1
	s.desk.tell(standing("web", 7, "1"))
	end := s.start()
	s.eventually("the failure is said", func() bool { return len(s.desk.last().Status.Failed) == 1 })
	if first := s.desk.heard[0].Status; len(first.Drivers) != 1 {
		t.Errorf("at first it says %+v", first)
	}
	s.check(end())
}

// TestStateOfYesterday: a node may be restored from a copy, and what it says then is not what it said once.
func TestStateOfYesterday(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	yesterday := &Volatile{}
	for source, version := range []string{"1", "2", "3"} {
		s.desk.tell(standing("web", uint64(source+1), version))
		end := s.start()
		s.eventually("it is applied", func() bool {
			return slices.Contains(s.outbox.said(), fmt.Sprintf("web applied of %s at %d", standing("web", 0, "").Rollout, source+1))
		})
		s.check(end())
		switch kept := s.memory.(*Volatile); version {
		case "1":
			yesterday.text = kept.text
		case "2":
			s.memory = yesterday
		}
	}
	said := map[string]Report{}
	for _, r := range s.outbox.taken {
		if before, again := said[r.ID]; again && !cmp.Equal(before, r) {
			t.Errorf("it says %+v by the id of %+v", r.Command, before.Command)
		}
		said[r.ID] = r
	}
}

func TestConfigThatCantWork(t *testing.T) {
	t.Parallel()
	good := Config{
		Node: "n1", Run: "r", Memory: &Volatile{}, Desk: &fakeDesk{}, Outbox: &fakeOutbox{},
		Drivers: []driver.Driver{&kept{}},
	}
	if _, err := New(good); err != nil {
		t.Fatal(err)
	}
	for name, spoil := range map[string]func(*Config){
		"no node":              func(c *Config) { c.Node = "" },
		"no memory":            func(c *Config) { c.Memory = nil },
		"no desk":              func(c *Config) { c.Desk = nil },
		"no outbox":            func(c *Config) { c.Outbox = nil },
		"no run":               func(c *Config) { c.Run = "" },
		"two of the same name": func(c *Config) { c.Drivers = append(c.Drivers, &kept{}) },
	} {
		c := good
		spoil(&c)
		if _, err := New(c); err == nil {
			t.Errorf("%s is taken", name)
		}
	}
}
