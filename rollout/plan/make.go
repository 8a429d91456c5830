package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"catenary/chain"
	"catenary/commands"
	"catenary/events"
)

// Make gives the plan for a request. A plan without steps means that there is nothing to do, and that nothing is to be written.
//
// It gives errors of type *[MissingError], *[CircleError], *[EdgeError], *[CommitsError], *[TooManyError] and
// *[events.StrategyError].
func Make(f Facts, r Request) (Plan, error) {
	raw, digest, err := r.Strategy.Canonical()
	if err != nil {
		return Plan{}, err
	}
	m := maker{facts: f, request: r, missing: map[string]*Missing{}, places: map[events.StepName]int{}}
	if m.tiers, err = r.Strategy.Ordered(); err != nil {
		return Plan{}, err
	}
	if m.frosts, err = f.frosts(r.Now); err != nil {
		return Plan{}, err
	}
	m.wanted()
	if err := m.edges(); err != nil {
		return Plan{}, err
	}
	if len(m.steps) > commands.MaxPlanSteps {
		return Plan{}, &TooManyError{Steps: len(m.steps)}
	}
	p := Plan{ID: r.ID, Right: m.right, LeftOut: m.leftOut, Missing: m.absent()}
	if len(p.Missing) > 0 && !r.AllowMissing {
		return p, &MissingError{Missing: p.Missing}
	}
	if p.Steps, err = m.ordered(); err != nil {
		return Plan{}, err
	}
	p.Head = events.PlanHead{
		Strategy: raw, StrategyDigest: digest, StrategyName: r.StrategyName, Reason: r.Reason, Track: r.Track, Reverts: r.Reverts,
		Supersedes: r.Supersedes, Targets: m.targets(),
	}
	if r.Restore != nil {
		p.Head.Restores = r.Restore.At
	}
	if p.Head.Commits, err = m.commits(p.Head.Targets); err != nil {
		return Plan{}, err
	}
	p.Since = m.since(p.Head.Commits)
	p.Tiers = m.counted()
	for _, s := range p.Steps {
		if s.After == nil {
			p.Ends++
		}
	}
	return p, nil
}

// maker gathers a plan.
type maker struct {
	facts   Facts
	request Request
	tiers   []events.Tier
	frosts  []frost

	steps []step
	// places gives the place of a step in the list.
	places  map[events.StepName]int
	right   int
	leftOut []LeftOut
	missing map[string]*Missing
}

// step is a planned step with the place of its tier, and those it waits for by their places.
type step struct {
	events.PlannedStep
	tier  int
	waits []wait
}

type wait struct {
	on     int
	notify bool
}

// wanted looks at each place that the request is about.
func (m *maker) wanted() {
	switch {
	case m.request.Restore != nil:
		m.restore(*m.request.Restore)
	case m.request.Reverts != "":
		m.undo()
	default:
		m.set()
	}
}

func (m *maker) set() {
	targets := make(map[string]*events.Version, len(m.request.Targets))
	for i := range m.request.Targets {
		targets[m.request.Targets[i].Module] = &m.request.Targets[i].Version
	}
	var names []events.StepName
	for n := range m.facts.Told {
		if targets[n.Module] != nil {
			names = append(names, n)
		}
	}
	names = append(names, m.onto(targets)...)
	m.reserve(len(names))
	for _, n := range inOrder(names) {
		m.change(n, m.facts.at(n), targets[n.Module])
	}
}

// onto gives the places that the targets come to and do not stand at.
func (m *maker) onto(targets map[string]*events.Version) []events.StepName {
	nodes := map[string]bool{}
	for _, node := range m.request.Onto {
		nodes[node] = true
	}
	var names []events.StepName
	add := func(n events.StepName) {
		if _, stands := m.facts.Told[n]; !stands {
			names = append(names, n)
		}
	}
	for module := range targets {
		for node := range nodes {
			add(events.StepName{Node: node, Module: module})
		}
		if !m.request.Everywhere {
			continue
		}
		for name, node := range m.facts.Nodes {
			n := events.StepName{Node: name, Module: module}
			if _, picked := m.tierOf(n, node, m.facts.Modules[module]); picked && !nodes[name] && node.Stands() && node.ManagedBy != events.ManagedByExternal {
				add(n)
			}
		}
	}
	return names
}

func (m *maker) restore(r Restore) {
	names := make([]events.StepName, 0, len(m.facts.Told))
	for n := range m.facts.Told {
		names = append(names, n)
	}
	for n := range r.Told {
		if _, both := m.facts.Told[n]; !both {
			names = append(names, n)
		}
	}
	for _, n := range inOrder(names) {
		if r.Scope != nil && !r.Scope(n) {
			continue
		}
		var after *events.Version
		if then, ok := r.Told[n]; ok {
			after = &then
		}
		m.change(n, m.facts.at(n), after)
	}
}

// undo plans back what a rollout has changed. A place that has gone on since is not this rollout's any more.
func (m *maker) undo() {
	for _, c := range m.request.Undo {
		n := events.StepName{Node: c.Node, Module: c.Module}
		now := m.facts.at(n)
		if !same(now, c.After) && !same(now, c.Before) {
			m.leave(n, now, c.Before, LeftMovedOn, fmt.Sprintf("it is at %s by now, and not at %s, where rollout %s put it", say(now), say(c.After), m.request.Reverts))
			continue
		}
		m.change(n, now, c.Before)
	}
}

// reserve makes room for so many steps.
func (m *maker) reserve(n int) {
	m.steps, m.places = make([]step, 0, n), make(map[events.StepName]int, n)
}

func inOrder(names []events.StepName) []events.StepName {
	slices.SortFunc(names, func(a, b events.StepName) int {
		return cmp.Or(cmp.Compare(a.Node, b.Node), cmp.Compare(a.Module, b.Module))
	})
	return names
}

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

// change plans one change, or says why it is left out.
func (m *maker) change(n events.StepName, before, after *events.Version) {
	if same(before, after) {
		m.right++
		return
	}
	tier, ok := m.allowed(n, before, after)
	if !ok {
		return
	}
	m.published(n.Module, after)
	tried := m.facts.Tried[Change{StepName: n, To: to(after)}]
	m.add(step{tier: tier, PlannedStep: events.PlannedStep{
		Tier: m.tiers[tier].Name, StepName: n, Before: before, After: after, Tried: min(tried, events.MaxRetries),
	}})
}

func to(v *events.Version) string {
	if v == nil {
		return ""
	}
	return v.String()
}

func (m *maker) add(s step) {
	m.places[s.StepName] = len(m.steps)
	m.steps = append(m.steps, s)
}

func (m *maker) leave(n events.StepName, before, after *events.Version, reason, why string) {
	m.leftOut = append(m.leftOut, LeftOut{StepName: n, Before: before, After: after, Reason: reason, Why: why})
}

// allowed gives the tier of a change, unless it must not be made.
func (m *maker) allowed(n events.StepName, before, after *events.Version) (tier int, ok bool) {
	leave := func(reason, why string) (int, bool) {
		m.leave(n, before, after, reason, why)
		return 0, false
	}
	node, known := m.facts.Nodes[n.Node]
	switch {
	case !known:
		return leave(LeftUnknownNode, "the node is not registered")
	case !node.Stands():
		return leave(LeftNodeRetired, "the node is retired")
	case node.ManagedBy == events.ManagedByExternal:
		return leave(LeftExternal, "somebody else manages the node: no agent acts on it")
	}
	module, known := m.facts.Modules[n.Module]
	switch {
	case after == nil:
	case !known:
		return leave(LeftUnknownModule, "the module is not registered")
	case !module.Stands():
		return leave(LeftModuleEnded, "the module was forgotten")
	}
	if after != nil && !after.IsZero() {
		if p, ok := m.facts.Published[after.Reference.String()]; ok && p.Vetoed != nil {
			return leave(LeftVetoed, fmt.Sprintf("%s is vetoed: %s", after, p.Vetoed.Reason))
		}
	}
	if holding := m.frozen(n, node, module); len(holding) > 0 {
		m.leave(n, before, after, LeftFrozen, "frozen by "+named(holding))
		m.leftOut[len(m.leftOut)-1].Until = latest(holding)
		return 0, false
	}
	if tier, ok = m.tierOf(n, node, module); !ok {
		return leave(LeftNoTier, "no tier of the strategy picks it")
	}
	return tier, true
}

func (m *maker) frozen(n events.StepName, node chain.Node, module chain.Module) []frost {
	var holding []frost
	for _, f := range m.frosts {
		if f.selector.Picks(n, node.Labels, module.Labels) {
			holding = append(holding, f)
		}
	}
	return holding
}

func named(list []frost) string {
	names := make([]string, len(list))
	for i, f := range list {
		names[i] = f.name
	}
	return strings.Join(names, ", ")
}

// tierOf gives the place of the first tier that picks a change.
func (m *maker) tierOf(n events.StepName, node chain.Node, module chain.Module) (int, bool) {
	for i := range m.tiers {
		if m.tiers[i].Selector.Picks(n, node.Labels, module.Labels) {
			return i, true
		}
	}
	return 0, false
}

// published notes what shall run and is not recorded as published.
func (m *maker) published(module string, v *events.Version) {
	if v == nil || v.IsZero() {
		return
	}
	name := v.Reference.String()
	if _, ok := m.facts.Published[name]; ok {
		return
	}
	if m.missing[name] == nil {
		m.missing[name] = &Missing{Module: module, Version: *v}
	}
	m.missing[name].Places++
}
