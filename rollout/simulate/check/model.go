package check

import (
	"time"

	"catenary/es"
	"catenary/events"
)

// model is what stands after some of the history.
type model struct {
	rollouts map[string]*rollout
	// order holds them as they were planned.
	order  []*rollout
	places map[events.StepName]*place
	// past holds all that was told of each place, in order.
	past    map[events.StepName][]standing
	hands   map[events.StepName]*hands
	nodes   map[string]*node
	modules map[string]*module
	freezes map[string]*freeze
	vetoed  map[string]bool
	lease   uint64
	releases
	// commands holds where a command's last event is.
	commands map[string]uint64
}

// Statuses of a rollout.
const (
	planning = "planning"
	queued   = "planned"
	asking   = "waiting for approval"
	running  = "running"
	paused   = "paused"
	final    = "final"
)

type rollout struct {
	id   string
	head events.PlanHead
	// by is who has begun to plan it, and when.
	by      string
	planned time.Time
	back    string
	edges   []events.Edge
	status  string
	tiers   []*tier
	steps   []*step
	pauses  []span
	begun   bool
	// closed says that its plan was closed, finished and failed how it came to its end, reverted which rollout takes it back.
	closed   bool
	finished bool
	failed   bool
	ended    time.Time
	reverted string
	// said is what was last said to block it; empty when something has moved since.
	said string
}

// span is a stretch of time; one that lasts has no end.
type span struct{ from, to time.Time }

type tier struct {
	events.Tier
	entered, approved bool
	// last is when a step of it last ended, begins when they began.
	last   time.Time
	begins []time.Time
}

type step struct {
	events.PlannedStep
	phase          string
	attempt, spent int
	begun, ended   time.Time
	notified       int
}

type place struct {
	// stands is what the node was last told to run; nil when it is to run nothing.
	stands  *events.Version
	source  uint64
	rollout string
	// said is the node's last report about just that.
	said string
}

// standing is what a place was told at a moment; nil for nothing.
type standing struct {
	at time.Time
	is *events.Version
}

type module struct {
	labels     map[string]string
	repository string
	requires   []string
}

type node struct {
	labels            map[string]string
	external, retired bool
}

type freeze struct {
	selector events.Selector
	schedule *events.Schedule
	broken   bool
}

func newModel() *model {
	return &model{
		rollouts: map[string]*rollout{}, places: map[events.StepName]*place{}, past: map[events.StepName][]standing{}, hands: map[events.StepName]*hands{},
		nodes:   map[string]*node{},
		modules: map[string]*module{}, freezes: map[string]*freeze{}, vetoed: map[string]bool{}, commands: map[string]uint64{}, releases: newReleases(),
	}
}

// of gives the rollout that an event is about; nil for one that is not known.
func (m *model) of(e es.Event) *rollout {
	id, err := es.UnescapeToken(e.Ref.Key)
	if err != nil {
		return nil
	}
	return m.rollouts[id]
}

func (m *model) place(n events.StepName) *place {
	if m.places[n] == nil {
		m.places[n] = &place{}
	}
	return m.places[n]
}

// take takes an event in.
func (m *model) take(e es.Event) {
	m.commands[e.Command.ID] = e.Sequence
	switch f := e.Data.(type) {
	case events.NodeRegistered:
		m.nodes[f.Node] = &node{labels: f.Labels, external: f.ManagedBy == events.ManagedByExternal}
	case events.NodeRelabelled:
		m.nodes[name(e)].labels = f.Labels
	case events.NodeRetired:
		m.nodes[name(e)].retired = true
	case events.ModuleRegistered:
		m.modules[f.Module] = &module{labels: f.Labels, repository: f.Repository, requires: f.Requires}
	case events.FreezeDeclared:
		m.freezes[f.Name] = frozen(f)
	case events.FreezeLifted:
		delete(m.freezes, name(e))
	case events.PublicationVetoed:
		m.vetoed[e.Ref.Key] = true
	case events.PublicationVetoLifted:
		delete(m.vetoed, e.Ref.Key)
	case events.LeaseTaken:
		m.lease = e.Sequence
	case events.LeaseReleased:
		m.lease = 0
	case events.Assignment:
		m.assignment(e, f)
	case events.Rollout:
		m.rollout(e, f)
	default:
		m.release(e)
	}
}

// name gives the name of the instance that an event is about.
func name(e es.Event) string {
	n, err := es.UnescapeToken(e.Ref.Key)
	if err != nil {
		return e.Ref.Key
	}
	return n
}

func frozen(f events.FreezeDeclared) *freeze {
	z := &freeze{selector: f.Selector}
	if f.Window != nil {
		s, err := f.Window.Schedule(time.LoadLocation)
		z.schedule, z.broken = &s, err != nil
	}
	return z
}

func (m *model) assignment(e es.Event, fact events.Assignment) {
	tell := func(n events.StepName, v *events.Version, rollout string) {
		*m.place(n) = place{stands: v, source: e.Sequence, rollout: rollout}
		m.past[n] = append(m.past[n], standing{at: e.Recorded, is: v})
	}
	version := func(t events.Told) *events.Version {
		return &events.Version{Reference: t.Reference, Build: t.Build, Commit: t.Commit}
	}
	m.hand(fact)
	see := func(s events.Seen, said string) {
		if p := m.place(events.StepName{Node: s.Node, Module: s.Module}); p.rollout != "" && p.about(s) {
			p.said = said
		}
	}
	switch f := fact.(type) {
	case events.AssignmentAssigned:
		tell(events.StepName{Node: f.Node, Module: f.Module}, version(f.Told), f.Rollout)
	case events.AssignmentMovedIn:
		tell(events.StepName{Node: f.Node, Module: f.Module}, version(f.Told), f.Rollout)
	case events.AssignmentPended:
		tell(events.StepName{Node: f.Node, Module: f.Module}, nil, f.Rollout)
	case events.AssignmentEnded:
		tell(events.StepName{Node: f.Node, Module: f.Module}, nil, f.Rollout)
	case events.AssignmentMovedOut:
		tell(events.StepName{Node: f.Node, Module: f.Module}, nil, "")
	case events.AssignmentApplied:
		see(f.Seen, saidApplied)
	case events.AssignmentApplyFailed:
		see(f.Seen, saidFailed)
	case events.AssignmentHealthy:
		see(f.Seen, saidHealthy)
	case events.AssignmentUnhealthy:
		see(f.Seen, saidFailed)
	case events.AssignmentRemoved:
		see(f.Seen, saidRemoved)
	case events.AssignmentRemoveFailed:
		see(f.Seen, saidFailed)
	case events.AssignmentDrifted:
		see(f.Seen, saidFailed)
	}
}

// What a node says.
const (
	saidApplied = "applied"
	saidHealthy = "healthy"
	saidRemoved = "removed"
	saidFailed  = "failed"
)

// about says whether a report is about what the node was last told: its rollout, its build, and no instruction before it.
func (p *place) about(s events.Seen) bool {
	if s.Rollout != p.rollout || s.Source != 0 && s.Source < p.source {
		return false
	}
	if p.stands == nil {
		return true
	}
	if s.Reference.IsZero() {
		return s.Build != "" && s.Build == p.stands.Build
	}
	return (events.Version{Reference: s.Reference, Build: s.Build}).Same(*p.stands)
}

func (m *model) rollout(e es.Event, fact events.Rollout) {
	if f, ok := fact.(events.RolloutPlanning); ok {
		r := begin(f)
		r.by, r.planned = e.Command.Actor, e.Recorded
		m.rollouts[f.ID], m.order = r, append(m.order, r)
		return
	}
	r := m.of(e)
	if r == nil {
		return
	}
	r.said = ""
	switch f := fact.(type) {
	case events.RolloutStepsPlanned:
		for _, p := range f.Steps {
			r.steps = append(r.steps, &step{PlannedStep: p, phase: events.StepWaiting, attempt: p.Tried, spent: p.Tried})
		}
	case events.RolloutPlanned:
		r.status, r.closed = queued, true
		if f.Approval {
			r.status = asking
		}
	case events.RolloutApproved:
		r.tier(f.Tier).approved = true
		if next := r.next(); r.status == asking && next != nil && next.Name == f.Tier {
			r.status = queued
		}
	case events.RolloutStarted:
		r.status = running
	case events.RolloutTierEntered:
		r.tier(f.Tier).entered = true
	case events.RolloutStepBegun:
		s := r.step(f.StepName)
		s.phase, s.attempt, s.begun, r.begun = events.StepPending, f.Attempt, e.Recorded, true
		t := r.tier(f.Tier)
		t.begins = append(t.begins, e.Recorded)
	case events.RolloutStepEnded:
		r.end(f, e.Recorded)
	case events.RolloutStepRetried:
		s := r.step(f.StepName)
		s.phase, s.spent, s.ended = events.StepWaiting, 0, time.Time{}
	case events.RolloutPaused:
		r.status, r.pauses = paused, append(r.pauses, span{from: e.Recorded})
	case events.RolloutResumed:
		r.status, r.pauses[len(r.pauses)-1].to = running, e.Recorded
	case events.RolloutFailed:
		r.final(e.Recorded)
		r.failed = true
	case events.RolloutFinished:
		r.final(e.Recorded)
		r.finished = true
	case events.RolloutAborted, events.RolloutSuperseded:
		r.final(e.Recorded)
	case events.RolloutReverted:
		r.reverted = f.By
	case events.RolloutBlocked:
		r.said = words(f)
	case events.RolloutPlanning:
	}
}

func begin(f events.RolloutPlanning) *rollout {
	r := &rollout{id: f.ID, head: f.PlanHead, status: planning}
	strategy, err := events.ParseStrategy(f.Strategy)
	if err != nil {
		return r // a step in a tier that it has not is a violation
	}
	r.back, r.edges = strategy.Rollback, strategy.Edges
	ordered, err := strategy.Ordered()
	if err != nil {
		return r
	}
	for _, t := range ordered {
		r.tiers = append(r.tiers, &tier{Tier: t})
	}
	return r
}

// final ends the rollout, and with it a pause.
func (r *rollout) final(at time.Time) {
	if r.status == paused {
		r.pauses[len(r.pauses)-1].to = at
	}
	r.status, r.ended = final, at
}

func (r *rollout) end(f events.RolloutStepEnded, at time.Time) {
	s := r.step(f.StepName)
	s.phase, s.ended = f.Outcome, at
	if f.Outcome == events.StepDone {
		s.notified = 0
	}
	if f.Again {
		s.phase = events.StepWaiting
	}
	if f.Outcome == events.StepFailed || f.Outcome == events.StepUnknown {
		s.spent++
	}
	r.tier(s.Tier).last = at
	for _, n := range f.Notified {
		r.step(n).notified++
	}
}

// step gives a step; one that is not planned is as one in no phase.
func (r *rollout) step(n events.StepName) *step {
	for _, s := range r.steps {
		if s.StepName == n {
			return s
		}
	}
	return &step{PlannedStep: events.PlannedStep{StepName: n}, phase: "not planned"}
}

func (r *rollout) tier(name string) *tier {
	for _, t := range r.tiers {
		if t.Name == name {
			return t
		}
	}
	return &tier{Tier: events.Tier{Name: name}}
}

// of gives the steps of a tier.
func (r *rollout) of(tier string) []*step {
	var list []*step
	for _, s := range r.steps {
		if s.Tier == tier {
			list = append(list, s)
		}
	}
	return list
}

// next gives the next tier that has steps; nil when there is none.
func (r *rollout) next() *tier {
	last := -1
	for i, t := range r.tiers {
		if t.entered {
			last = i
		}
	}
	for _, t := range r.tiers[last+1:] {
		if len(r.of(t.Name)) > 0 {
			return t
		}
	}
	return nil
}

// present gives the tier that was entered last; nil before the first.
func (r *rollout) present() *tier {
	var last *tier
	for _, t := range r.tiers {
		if t.entered {
			last = t
		}
	}
	return last
}

// count counts the steps of a tier in some phases.
func (r *rollout) count(tier string, phases ...string) (n int) {
	for _, s := range r.steps {
		if s.Tier != tier {
			continue
		}
		for _, p := range phases {
			if s.phase == p {
				n++
			}
		}
	}
	return n
}

// bad counts the steps of a tier that failed or of which nothing is known, budget gives how many may.
func (r *rollout) bad(tier string) int { return r.count(tier, events.StepFailed, events.StepUnknown) }
func (r *rollout) budget(t *tier) int  { return t.FailureBudget.Of(len(r.of(t.Name))) }

// active is how much of a stretch of time the rollout was not paused.
func (r *rollout) active(from, to time.Time) time.Duration {
	d := to.Sub(from)
	for _, p := range r.pauses {
		a, b := p.from, p.to
		if b.IsZero() || b.After(to) {
			b = to
		}
		if a.Before(from) {
			a = from
		}
		if b.After(a) {
			d -= b.Sub(a)
		}
	}
	return d
}

// open says whether a step has no outcome.
func (s *step) open() bool { return s.phase == events.StepWaiting || s.phase == events.StepPending }

func same(a, b *events.Version) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	return a.Same(*b)
}

func say(v *events.Version) string {
	if v == nil {
		return "nothing"
	}
	return v.String()
}
