package simulate

import (
	"maps"
	"slices"
	"strconv"
	"time"

	"catenary/chain"
	"catenary/es"
	"catenary/events"
	"catenary/rollout/plan"
)

// chart is what the chain's records say: what plans are made on, and what nodes are told.
type chart struct {
	nodes     map[string]chain.Node
	modules   map[string]chain.Module
	published map[string]chain.Published
	// references gives what is published under a key, releases the names of what is published, in order.
	references map[string]events.Reference
	releases   []string
	frozen     map[string]chain.Freeze
	places     map[events.StepName]told
	// past holds all that was told of each place, in order.
	past     map[events.StepName][]told
	rollouts map[string]*charted
	order    []*charted
	// merges and builds are by the keys of their instances, heard and asked in order.
	merges     map[string]*chain.Merge
	heard      []*chain.Merge
	builds     map[string]*chain.Build
	asked      []*chain.Build
	tracks     map[string]chain.Track
	strategies map[string]events.Strategy
}

// told is what a node was told of a module, when, and by which event; nothing stands where there is no version.
type told struct {
	source  uint64
	at      time.Time
	version *events.Version
	rollout string
}

// charted is a rollout.
type charted struct {
	id             string
	planned, final bool
	pending        int
	record         chain.Rollout
	strategy       events.Raw
	steps          []chain.Step
}

func newChart() *chart {
	return &chart{
		nodes: map[string]chain.Node{}, modules: map[string]chain.Module{}, published: map[string]chain.Published{}, references: map[string]events.Reference{},
		frozen: map[string]chain.Freeze{}, places: map[events.StepName]told{}, past: map[events.StepName][]told{}, rollouts: map[string]*charted{},
		merges: map[string]*chain.Merge{}, builds: map[string]*chain.Build{}, tracks: map[string]chain.Track{}, strategies: map[string]events.Strategy{},
	}
}

// take takes an event in.
func (c *chart) take(e es.Event) {
	key := e.Ref.Key // names of nodes, freezes and rollouts are their keys here
	switch f := e.Data.(type) {
	case events.NodeRegistered:
		c.nodes[f.Node] = chain.Node{Node: f.Node, Labels: f.Labels, ManagedBy: f.ManagedBy, Registered: e.Recorded}
	case events.NodeRelabelled:
		n := c.nodes[key]
		n.Labels = f.Labels
		c.nodes[key] = n
	case events.NodeRetired:
		n := c.nodes[key]
		n.Retired = e.Recorded
		c.nodes[key] = n
	case events.ModuleRegistered:
		c.modules[f.Module] = chain.Module{Name: f.Module, Repository: f.Repository, Requires: f.Requires, Labels: f.Labels, Registered: e.Recorded}
	case events.PublicationRecorded:
		c.references[e.Ref.Key] = f.Reference
		c.releases = append(c.releases, f.Reference.String())
		c.published[f.Reference.String()] = chain.Published{Reference: f.Reference, Module: f.Module, Build: f.Build, Commit: f.Commit, At: e.Recorded}
	case events.PublicationVetoed:
		c.veto(e.Ref.Key, &chain.Veto{Reason: f.Reason})
	case events.PublicationVetoLifted:
		c.veto(e.Ref.Key, nil)
	case events.FreezeDeclared:
		c.frozen[f.Name] = chain.Freeze{Name: f.Name, Selector: f.Selector, Window: f.Window, Declared: e.Recorded}
	case events.FreezeLifted:
		delete(c.frozen, key)
	case events.AssignmentAssigned:
		v := &events.Version{Reference: f.Reference, Build: f.Build, Commit: f.Commit}
		c.tell(events.StepName{Node: f.Node, Module: f.Module}, told{source: e.Sequence, at: e.Recorded, version: v, rollout: f.Rollout})
	case events.AssignmentEnded:
		c.tell(events.StepName{Node: f.Node, Module: f.Module}, told{source: e.Sequence, at: e.Recorded, rollout: f.Rollout})
	case events.Rollout:
		c.rollout(e, key, f)
	default:
		c.takeRelease(e)
	}
}

func (c *chart) tell(n events.StepName, t told) {
	c.places[n] = t
	c.past[n] = append(c.past[n], t)
}

// stood gives what stood at a moment.
func (c *chart) stood(at time.Time) map[events.StepName]events.Version {
	list := map[events.StepName]events.Version{}
	for n, past := range c.past {
		for _, t := range past {
			switch {
			case t.at.After(at):
			case t.version == nil:
				delete(list, n)
			default:
				list[n] = *t.version
			}
		}
	}
	return list
}

func (c *chart) veto(key string, v *chain.Veto) {
	name := c.references[key].String()
	p := c.published[name]
	p.Vetoed = v
	c.published[name] = p
}

func (c *chart) rollout(e es.Event, id string, fact events.Rollout) {
	r := c.rollouts[id]
	if r == nil {
		r = &charted{id: id}
		c.rollouts[id], c.order = r, append(c.order, r)
	}
	switch f := fact.(type) {
	case events.RolloutPlanning:
		r.strategy = f.Strategy
		r.record = chain.Rollout{ID: id, State: chain.RolloutPlanning, Builds: f.Targets, Reverts: f.Reverts, Track: f.Track}
	case events.RolloutStepsPlanned:
		for _, p := range f.Steps {
			r.steps = append(r.steps, chain.Step{Rollout: id, Tier: p.Tier, Node: p.Node, Module: p.Module, Before: p.Before, After: p.After, Refresh: p.Refresh, Tried: p.Tried})
		}
	case events.RolloutPlanned:
		r.planned = true
		r.record.State, r.record.Digest = chain.RolloutPlanned, f.Digest
	case events.RolloutStepBegun:
		step := r.step(f.StepName)
		step.Sent, step.Outcome = e.Recorded, ""
		r.pending++
	case events.RolloutStepEnded:
		if f.From == "" {
			r.pending--
		}
		step := r.step(f.StepName)
		step.Outcome = f.Outcome
		if f.Outcome == events.StepFailed || f.Outcome == events.StepUnknown {
			step.Tried++
		}
	case events.RolloutStepRetried:
		r.step(f.StepName).Tried, r.step(f.StepName).Outcome = 0, ""
	case events.RolloutStarted, events.RolloutResumed:
		r.record.State = chain.RolloutRunning
	case events.RolloutPaused:
		r.record.State = chain.RolloutPaused
	case events.RolloutFinished:
		r.end(chain.RolloutFinished, e.Recorded)
	case events.RolloutFailed:
		r.end(chain.RolloutFailed, e.Recorded)
	case events.RolloutAborted:
		r.end(chain.RolloutAborted, e.Recorded)
	case events.RolloutSuperseded:
		r.end(chain.RolloutSuperseded, e.Recorded)
	case events.RolloutApproved, events.RolloutTierEntered, events.RolloutReverted, events.RolloutBlocked:
	}
}

func (r *charted) end(state string, at time.Time) {
	r.final, r.record.State, r.record.Times.Ended = true, state, at
}

func (r *charted) step(n events.StepName) *chain.Step {
	at := slices.IndexFunc(r.steps, func(s chain.Step) bool { return s.Node == n.Node && s.Module == n.Module })
	if at < 0 {
		return &chain.Step{}
	}
	return &r.steps[at]
}

// whole gives a rollout in the form in which it is read.
func (c *chart) whole(id string) chain.WholeRollout {
	r := c.rollouts[id]
	w := chain.WholeRollout{Rollout: r.record, All: r.steps}
	strategy, err := events.ParseStrategy(r.strategy)
	if err != nil {
		return w // it can't have begun then
	}
	for _, t := range strategy.Tiers {
		w.Tiers = append(w.Tiers, chain.TierNodes{Tier: chain.Tier{Name: t.Name, Policy: chain.Policy{Timeout: t.Timeout, Retry: t.Retry}}})
	}
	return w
}

// facts gives what a plan is made on.
func (c *chart) facts() plan.Facts {
	f := plan.Facts{Nodes: c.nodes, Modules: c.modules, Told: c.standing(), Published: c.published, Tried: map[plan.Change]int{}}
	for _, name := range c.freezes() {
		f.Freezes = append(f.Freezes, c.frozen[name])
	}
	return f
}

// standing gives what stands.
func (c *chart) standing() map[events.StepName]events.Version {
	list := map[events.StepName]events.Version{}
	for n, t := range c.places {
		if t.version != nil {
			list[n] = *t.version
		}
	}
	return list
}

// thaws says whether a freeze may come or go by itself from a moment on.
func (c *chart) thaws(now time.Time) bool {
	for _, z := range c.frozen {
		if z.Window == nil {
			continue
		}
		end, err := time.Parse(time.RFC3339, z.Window.End)
		if err != nil || now.Before(end.Add(planInterval)) { // that it is over has been seen after that
			return true
		}
	}
	return false
}

func (c *chart) freezes() []string { return slices.Sorted(maps.Keys(c.frozen)) }

// vetoed lists what is vetoed.
func (c *chart) vetoed() []events.Reference {
	var list []events.Reference
	for _, name := range c.releases {
		if p := c.published[name]; p.Vetoed != nil {
			list = append(list, p.Reference)
		}
	}
	return list
}

// other gives a version of a module that is not the one named.
func other(v *events.Version, module string) events.Reference {
	for n := 1; ; n++ {
		if r := version(module, n); v == nil || !r.Equal(v.Reference) {
			return r
		}
	}
}

// version gives a numbered version of a module.
func version(module string, n int) events.Reference {
	return events.Reference{Package: &events.Package{Name: module, Version: strconv.Itoa(n)}}
}
