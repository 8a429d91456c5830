package simulate

import (
	"slices"
	"time"

	"github.com/cockroachdb/errors"

	"catenary/commands"
	"catenary/es"
	"catenary/events"
	"catenary/rollout/plan"
	"catenary/rollout/simulate/check"
	"catenary/rollout/stage"
)

// Lengths of the parts of a run.
const (
	// faulty is how long everything goes wrong that can.
	faulty = 15 * time.Minute
	// settling is how long everything may take without faults: the longest time a step has, tries and freezes included.
	settling = 45 * time.Minute
	// helping is how often people look at what stands in the way, every so often.
	helping    = 90
	helpsEvery = 30 * time.Second
	// mostEvents bounds what happens in a run: an engine that asks for ever turns in a circle.
	mostEvents = 30_000
)

// person is the actor of all people.
const person = "ann"

// simulation is a run under way.
type simulation struct {
	timeline
	config  Config
	lucks   map[string]luck
	ledger  *stage.Ledger
	chart   *chart
	fleet   fleet
	engines []*engine
	agents  []*agent
	history check.History
	// trap waits for an engine that walks.
	trap trap
	// storm is until when the bus is bad; quiet says that there are no faults any more.
	storm time.Time
	quiet bool
	// sent, made, merged and cut count commands, plans, merges, and plans that an engine has died over.
	sent, made, merged, cut int
	err                     error
}

// Do makes a history. It gives errors for faults of what is run that are no matter of a history, such as an event that can't be folded.
func Do(c Config) (Run, error) {
	if c.Tools == nil {
		c.Tools = stage.NewTools()
	}
	ground := fleetOf(c.Seed)
	incidents := incidentsOf(c.Seed, len(ground.tracks) > 0)
	start := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	s := &simulation{
		timeline: timeline{now: start}, config: c, lucks: map[string]luck{}, chart: newChart(), fleet: ground,
		history: check.History{Fences: map[string]uint64{}, Engines: map[string]bool{}, Waiting: map[string][]check.Reason{}, Kept: map[string]string{}, Lease: leaseTTL, Late: late, Stale: late + mostHang},
	}
	var err error
	if s.ledger, err = stage.NewLedger(start, c.Tools); err != nil {
		return Run{}, err
	}
	s.ledger.Decide, s.ledger.Fold = c.Parts.Decide, c.Parts.Fold
	if c.Anew {
		s.history.Lease = 0 // it changes hands all the time
	}
	if err := s.settle(); err != nil {
		return Run{}, err
	}
	for i, d := range incidents {
		if c.Keep == nil || slices.Contains(c.Keep, i) {
			s.after(d.At, func() { s.do(d) })
		}
	}
	s.until(start.Add(faulty), nil)
	s.calm()
	s.history.Quiet = s.now
	s.until(s.now.Add(settling), s.over)
	s.history.Settled = s.now
	s.explain()
	for range helping {
		if s.over() {
			break
		}
		s.help()
		s.until(s.now.Add(helpsEvery), nil)
	}
	for _, a := range s.agents {
		if a.gone {
			s.history.Away = append(s.history.Away, check.Absence{Node: a.name, From: a.since, To: s.now})
		}
	}
	s.history.Events = s.ledger.Events
	return Run{Config: c, Incidents: incidents, History: s.history}, s.err
}

// fail ends the run.
func (s *simulation) fail(err error) {
	if s.err == nil {
		s.err = errors.Wrapf(err, "seed %d, after %d events", s.config.Seed, len(s.ledger.Events))
	}
}

// until lets things happen up to a moment, or until all is over.
func (s *simulation) until(end time.Time, over func() bool) {
	const between = 16 // of two questions whether all is over
	for n := 1; s.err == nil && s.next(end); n++ {
		if over != nil && n%between == 0 && over() {
			return
		}
		if over != nil && s.ahead == 0 && s.still() {
			s.skip(end)
			s.renew()
			return
		}
		if n > mostEvents {
			s.fail(errors.Newf("it never comes to rest: %d things have happened by %v", n, s.now))
		}
	}
}

// settle lets there be a fleet, and the engines start.
func (s *simulation) settle() error {
	list, err := s.fleet.settle()
	if err != nil {
		return err
	}
	for _, p := range list {
		s.now = s.now.Add(time.Millisecond) // what was published first is told by the time
		s.decide(es.Command{ID: "s" + p.Ref().String() + p.Verb(), Ref: p.Ref(), Verb: p.Verb(), Data: p, Actor: person})
	}
	for _, n := range s.fleet.nodes {
		s.agents = append(s.agents, newAgent(s, n))
	}
	for _, seat := range []string{"engine-a", "engine-b"} {
		e := &engine{simulation: s, luck: s.luckOf(seat), seat: seat}
		s.engines = append(s.engines, e)
		s.history.Engines[seat] = true
		e.start()
	}
	return nil
}

// calm lets the faults stop.
func (s *simulation) calm() {
	s.quiet, s.trap = true, trap{}
	for _, e := range s.engines {
		e.calm()
	}
	for _, a := range s.agents {
		a.calm()
	}
}

// still says whether nothing can happen by itself any more: nobody has anything to do, and no freeze comes or goes.
func (s *simulation) still() bool {
	e, ok := s.walking()
	return ok && !e.busy() && !s.chart.thaws(s.now) && !s.anyDue()
}

// renew renews the lease as it would have been in a time that was passed over.
func (s *simulation) renew() {
	if e, ok := s.walking(); ok && !s.config.Parts.Unrenewed {
		p := commands.RenewLease{Name: commands.EngineLease, Holder: e.holder}
		s.decide(es.Command{ID: s.commandID(), Ref: p.Ref(), Verb: p.Verb(), Data: p, Actor: e.seat})
	}
}

// over says whether every rollout is final and nothing is under way.
func (s *simulation) over() bool {
	for _, r := range s.chart.order {
		if !r.final || r.pending > 0 {
			return false
		}
	}
	e, ok := s.walking()
	return ok && !e.busy() && !s.anyDue()
}

// anyDue says whether a track has something to plan.
func (s *simulation) anyDue() bool {
	return slices.ContainsFunc(s.chart.automatic(), func(name string) bool {
		_, hold, err := s.due(s.chart.tracks[name], plan.Asked{})
		return hold == nil && err == nil
	})
}

// walking gives the engine that walks.
func (s *simulation) walking() (*engine, bool) {
	at := slices.IndexFunc(s.engines, func(e *engine) bool { return e.up && e.leads() })
	if at < 0 {
		return nil, false
	}
	return s.engines[at], true
}

// explain keeps why each rollout does not move, and each track does not plan.
func (s *simulation) explain() {
	for _, name := range s.chart.declared() {
		_, hold, err := s.due(s.chart.tracks[name], plan.Asked{})
		switch {
		case err != nil:
			s.fail(err)
		case hold == nil:
			s.history.Tracks = append(s.history.Tracks, check.Idle{Track: name})
		default:
			s.history.Tracks = append(s.history.Tracks, check.Idle{Track: name, Reason: hold.Reason, WaitsFor: hold.WaitsFor})
		}
	}
	e, ok := s.walking()
	if !ok {
		return
	}
	for _, r := range s.chart.order {
		for _, b := range e.walker.Blocked(r.id, s.now) {
			s.history.Waiting[r.id] = append(s.history.Waiting[r.id], check.Reason{
				Tier: b.Tier, StepName: events.StepName{Node: b.Node, Module: b.Module}, Reason: b.Reason,
			})
		}
	}
}

// help lets people take away what stands in the way.
func (s *simulation) help() {
	for _, a := range s.agents {
		a.left = false
		a.back()
	}
	for _, name := range s.chart.freezes() {
		s.ask(commands.LiftFreeze{Name: name})
	}
	for _, ref := range s.chart.vetoed() {
		s.ask(commands.LiftVeto{Reference: ref})
	}
	e, walks := s.walking()
	for _, r := range s.chart.order {
		switch {
		case r.final:
			continue
		case !r.planned:
			s.ask(commands.AbortRollout{ID: r.id, Reason: "nobody writes it down to its end"})
			continue
		}
		s.ask(commands.ApproveRollout{ID: r.id})
		s.ask(commands.StartRollout{ID: r.id})
		s.ask(commands.ResumeRollout{ID: r.id})
		if !walks {
			continue
		}
		for _, b := range e.walker.Blocked(r.id, s.now) {
			switch b.Reason {
			case events.HoldStale, "node-retired", "node-external", "still-required":
				s.ask(commands.SettleStep{ID: r.id, StepName: events.StepName{Node: b.Node, Module: b.Module}, Outcome: events.StepSkipped, Reason: b.Reason})
			}
		}
	}
}

// ask sends what a person wants, who does not look at the answer.
func (s *simulation) ask(p es.Payload) { s.send(command{Payload: p, actor: person}, nil) }

// makes plans on what is known now.
func (s *simulation) makes(r plan.Request) (plan.Plan, error) {
	s.made++
	r.Now, r.AllowMissing = s.now, true
	if s.config.Parts.Plan != nil {
		r = s.config.Parts.Plan(r)
	}
	return plan.Make(s.chart.facts(), r)
}
