package agent

import (
	"cmp"
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/cockroachdb/errors"

	"catenary/agent/driver"
	"catenary/es"
	"catenary/internal/failpoint"
)

// Defaults of a configuration.
const (
	// DefaultEvery is the time between two check-ins: three of them without a word, and a node counts as off.
	DefaultEvery = 10 * time.Second
	// DefaultObserve is the time between two looks at what really runs.
	DefaultObserve = 30 * time.Second
	// minLookTime is what a look has at least, which a command may need on a busy machine. Otherwise it has as long as until the next.
	minLookTime = 2 * time.Second
	// DefaultStopWithin is how long something that is being done when the agent is told to stop may go on.
	DefaultStopWithin = 10 * time.Second
	// DefaultRetry and DefaultMostRetry are the first and the longest pause before something that nobody's rollout told is tried again.
	DefaultRetry     = time.Minute
	DefaultMostRetry = time.Hour
)

// Desk is where an agent checks in, and learns what its node is told.
type Desk interface {
	// CheckIn says how the agent stands, and gives all that the desk has to say, whole. It gives errors when there is no answer, which
	// is nothing unusual: the agent goes on with what it knows.
	CheckIn(ctx context.Context, c CheckIn) (Answer, error)
}

// Outbox takes reports.
type Outbox interface {
	// Take makes a report durable until the bus has it. It gives errors when it can't; the report is then given again.
	Take(ctx context.Context, r Report) error
	// Unsent counts the reports that the bus does not have yet.
	Unsent() int
	// Flush waits until there is none, or the context ends. It gives the context's error, and why nothing more can be sent.
	Flush(ctx context.Context) error
}

// Config is what an agent needs.
type Config struct {
	Node string
	// Run is a name that no other run of an agent has, and Version is the program's.
	Run, Version string
	// Drivers are those it has, in the order in which they are tried where a module names none.
	Drivers []driver.Driver
	Memory  Memory
	Desk    Desk
	Outbox  Outbox
	// Hints gives the sources of values that were told of, and Connected something whenever the bus is there again. Nil gives none.
	Hints     <-chan uint64
	Connected <-chan struct{}
	// Logs keeps what commands say. Nil keeps no more than the end, for the report of a failure.
	Logs Logs
	// Did is told of each deed when it begins; what it gives is called when it has ended, with why it has failed, empty when it is done. It may
	// be nil.
	Did func(a Action) (ended func(failure string))
	// Zero means the defaults.
	Every, Observe, StopWithin, Retry, MostRetry time.Duration
	Logger                                       *slog.Logger
}

func (c Config) withDefaults() (Config, error) {
	if err := es.CheckName("node", c.Node); err != nil {
		return c, err
	}
	if c.Memory == nil || c.Desk == nil || c.Outbox == nil || c.Run == "" {
		return c, errors.AssertionFailedf("an agent needs a memory, a desk, an outbox, and a name for its run")
	}
	seen := map[string]bool{}
	for _, d := range c.Drivers {
		name := d.Describe().Name
		if seen[name] {
			return c, errors.Newf("two drivers are called %s: give each a name of its own", name)
		}
		seen[name] = true
	}
	c.Every, c.Observe = cmp.Or(c.Every, DefaultEvery), cmp.Or(c.Observe, DefaultObserve)
	c.StopWithin, c.Retry, c.MostRetry = cmp.Or(c.StopWithin, DefaultStopWithin), cmp.Or(c.Retry, DefaultRetry), cmp.Or(c.MostRetry, DefaultMostRetry)
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c, nil
}

// Agent acts for one node.
type Agent struct {
	cfg      Config
	delivery delivery
	state    State
	// dirty says that the state has changed since it was saved, urgent that it MUST be saved before anything rests on it.
	dirty, urgent bool
	// rests says until when a module is not tried again.
	rests map[string]time.Time

	results  chan result
	answers  chan Answer
	findings chan finding
	verdicts chan judged
	flushed  chan struct{}
	working  bool
	looking  bool
	flushing bool
	checks   map[string]*healthWatch
	tasks    sync.WaitGroup

	mu     sync.Mutex
	status Status
	poke   chan struct{}
}

// finding is what was found of something that is applied.
type finding struct {
	module string
	source uint64
	found  driver.Finding
	last   bool
}

// New makes an agent. It gives errors for a configuration that can't work.
func New(c Config) (*Agent, error) {
	c, err := c.withDefaults()
	if err != nil {
		return nil, err
	}
	log := c.Logger.With("node", c.Node)
	c.Logger = log
	return &Agent{
		cfg: c, delivery: delivery{node: c.Node, drivers: c.Drivers, logs: c.Logs, looks: max(c.Observe, minLookTime), log: log}, rests: map[string]time.Time{},
		results: make(chan result, 1), answers: make(chan Answer), findings: make(chan finding), verdicts: make(chan judged), flushed: make(chan struct{}),
		checks: map[string]*healthWatch{}, poke: make(chan struct{}, 1),
	}, nil
}

// Run acts until the context ends, and returns nil then, with nothing left running. What is being done may go on for a while; what is not
// done by then is settled at the next start. It gives errors of the memory, since without one an agent can't be trusted.
func (a *Agent) Run(ctx context.Context) error {
	if err := a.load(); err != nil {
		return err
	}
	live, end := context.WithCancel(context.WithoutCancel(ctx))
	defer a.tasks.Wait()
	defer end()
	talking, hangUp := context.WithCancel(live)
	defer hangUp()
	a.tellStatus()
	a.tasks.Go(func() { a.talk(talking) })
	defer a.endChecks()
	look := time.NewTicker(a.cfg.Observe)
	defer look.Stop()
	for {
		wake, err := a.step(live)
		if err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			hangUp()
			return a.stop(end)
		case answer := <-a.answers:
			a.learn(answer)
		case r := <-a.results:
			a.end(r)
		case f := <-a.findings:
			a.found(f)
		case j := <-a.verdicts:
			if a.state.Judge(j.module, j.source, j.verdict, j.reason) {
				a.cfg.Logger.Info("another verdict", "module", j.module, "verdict", j.verdict, "reason", j.reason)
				a.urgent = true
			}
		case <-look.C:
			a.look(live)
		case <-a.flushed:
			a.flushing = false
		case <-wake:
		}
	}
}

// load takes up what the agent remembers.
func (a *Agent) load() error {
	s, ok, err := a.cfg.Memory.Load()
	switch {
	case err != nil:
		return err
	case !ok:
		s = NewState(a.cfg.Node)
	case s.Node != a.cfg.Node:
		return errors.Mark(errors.Newf("the state is that of node %s, and this is the agent of node %s: give each node a directory of its own", s.Node, a.cfg.Node), ErrMemory)
	}
	s.begin(a.cfg.Run)
	a.state, a.urgent = s, true
	return nil
}

// step does all that can be done at once, and gives what to wait for besides.
func (a *Agent) step(ctx context.Context) (<-chan time.Time, error) {
	if err := a.save(); err != nil {
		return nil, err
	}
	wake := a.handOn(ctx)
	if !a.working {
		action, ok := a.state.Next(a.resting)
		if ok {
			if err := a.begin(ctx, action); err != nil {
				return nil, err
			}
		}
	}
	a.watchChecks(ctx)
	a.watchOutbox(ctx)
	a.tellStatus()
	if next := a.nextTry(); wake == nil && next > 0 {
		wake = time.After(next)
	}
	return wake, nil
}

func (a *Agent) save() error {
	if !a.urgent {
		return nil
	}
	if err := failpoint.Fail(failpoint.AgentBeforeState); err != nil {
		return err
	}
	if err := a.cfg.Memory.Save(a.state); err != nil {
		return err
	}
	a.urgent, a.dirty = false, false
	return nil
}

// handOnAgain is how long a report that the outbox does not take waits.
const handOnAgain = time.Second

// handOn gives the reports to the outbox, one after another. That they are there is noted in memory at the next occasion: until then they may
// be given once more, which their ids make harmless.
func (a *Agent) handOn(ctx context.Context) <-chan time.Time {
	for len(a.state.Reports) > 0 {
		failpoint.Pass(failpoint.AgentBeforeReport)
		if err := a.cfg.Outbox.Take(ctx, a.state.Reports[0]); err != nil {
			a.cfg.Logger.Warn("a report is not taken by the outbox, trying again", "waiting", len(a.state.Reports), "error", err)
			return time.After(handOnAgain)
		}
		failpoint.Pass(failpoint.AgentAfterReport)
		a.state.HandedOn(1)
		a.dirty = true
	}
	return nil
}

// watchOutbox lets the loop hear when the bus has all reports.
func (a *Agent) watchOutbox(ctx context.Context) {
	if a.flushing || a.cfg.Outbox.Unsent() == 0 {
		return
	}
	a.flushing = true
	a.tasks.Go(func() {
		if err := a.cfg.Outbox.Flush(ctx); err != nil {
			if ctx.Err() == nil {
				a.cfg.Logger.Error("reports can't be sent any more; start the agent again", "error", err)
			}
			return
		}
		select {
		case a.flushed <- struct{}{}:
		case <-ctx.Done():
		}
	})
}

func (a *Agent) begin(ctx context.Context, action Action) error {
	i := action.Instruction
	if !action.Settle {
		a.state.Begin(action)
		a.urgent = true
		if err := a.save(); err != nil {
			return err
		}
		if action.Deed == Apply {
			action.By = a.state.by(i.Module)
		}
	}
	a.cfg.Logger.Info("begins", "deed", action.Deed, "module", i.Module, "version", i.task(a.cfg.Node, 1).Version(), "source", i.Source, "attempt", action.Attempt, "settles", action.Settle)
	a.working = true
	ended := func(string) {}
	if a.cfg.Did != nil && !action.Settle {
		ended = a.cfg.Did(action)
	}
	a.tasks.Go(func() {
		failpoint.Pass(failpoint.AgentBeforeDeed)
		r := a.delivery.do(ctx, action)
		failpoint.Pass(failpoint.AgentAfterDeed)
		ended(r.done.Failure)
		a.results <- r
	})
	return nil
}

// end takes what came of an action.
func (a *Agent) end(r result) {
	a.working = false
	i := r.action.Instruction
	switch {
	case r.interrupted:
		a.cfg.Logger.Info("interrupted; it is settled at the next start", "deed", r.action.Deed, "module", i.Module)
		return
	case r.action.Settle:
		settled := a.state.Settle(r.found, r.done)
		a.cfg.Logger.Info("what was begun is looked at", "deed", r.action.Deed, "module", i.Module, "found", r.found.State, "settled", settled)
	default:
		a.state.End(r.done)
		if r.done.Failure != "" {
			a.rests[i.Module] = time.Now().Add(a.pause(r.action.Attempt))
			a.cfg.Logger.Warn("has failed", "deed", r.action.Deed, "module", i.Module, "source", i.Source, "reason", r.done.Failure)
		} else {
			delete(a.rests, i.Module)
			a.cfg.Logger.Info("is done", "deed", r.action.Deed, "module", i.Module, "source", i.Source)
		}
	}
	a.urgent = true
}

// pause is how long a try that failed is waited for: twice as long each time.
func (a *Agent) pause(attempt int) time.Duration {
	pause := a.cfg.Retry
	for range attempt - 1 {
		if pause *= 2; pause >= a.cfg.MostRetry {
			return a.cfg.MostRetry
		}
	}
	return min(pause, a.cfg.MostRetry)
}

// resting says that it is too early to try a module again. An instruction that was never tried does not rest.
func (a *Agent) resting(module string) bool {
	return a.state.Modules[module].Failure != "" && time.Now().Before(a.rests[module])
}

// nextTry is how long it is until something may be tried again; zero when nothing is to be.
func (a *Agent) nextTry() time.Duration {
	var next time.Duration
	for module, at := range a.rests {
		m := a.state.Modules[module]
		if !m.open() || m.Failure == "" {
			continue
		}
		if left := time.Until(at); left > 0 && (next == 0 || left < next) {
			next = left
		}
	}
	return next
}

// learn takes in what the desk says.
func (a *Agent) learn(answer Answer) {
	before := a.state.Stale
	changed := a.state.Learn(answer)
	if a.state.Stale > before {
		a.cfg.Logger.Warn("an instruction is refused: a later one is known", "last", a.state.LastStale)
	}
	if len(changed) > 0 {
		a.cfg.Logger.Info("is told", "modules", changed, "edition", a.state.Edition)
		a.urgent = true
	}
}

// look begins a look at what really runs, unless one is still under way.
func (a *Agent) look(ctx context.Context) {
	if a.looking || a.state.Held != "" {
		return
	}
	var all []Applied
	for _, name := range a.state.names() {
		if applied := a.state.Modules[name].Applied; applied != nil && !a.state.busyWith(name) {
			all = append(all, *applied)
		}
	}
	if len(all) == 0 {
		return
	}
	a.looking = true
	a.tasks.Go(func() {
		for n, applied := range all {
			f := finding{module: applied.Instruction.Module, source: applied.Instruction.Source, last: n == len(all)-1}
			var err error
			if f.found, err = a.delivery.observe(ctx, applied); err != nil {
				a.cfg.Logger.Warn("what runs can't be found out", "module", f.module, "error", err)
				f.found = driver.Finding{State: driver.Unknown}
			}
			select {
			case a.findings <- f:
			case <-ctx.Done():
				return
			}
		}
	})
}

func (a *Agent) found(f finding) {
	if f.last {
		a.looking = false
	}
	if a.state.Observe(f.module, f.source, f.found) {
		a.cfg.Logger.Warn("what runs has changed", "module", f.module, "found", f.found.State, "what", f.found.Found)
		a.urgent = true
	}
}

// stop lets what is being done come to its end, for a while, and keeps what came of it.
func (a *Agent) stop(end context.CancelFunc) error {
	late := time.AfterFunc(a.cfg.StopWithin, end)
	defer late.Stop()
	for a.working {
		select {
		case r := <-a.results:
			a.end(r)
		case f := <-a.findings:
			a.found(f)
		}
	}
	end()
	if a.dirty {
		a.urgent = true
	}
	return a.save()
}
