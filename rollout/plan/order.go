package plan

import (
	"cmp"
	"fmt"
	"slices"

	"catenary/commands"
	"catenary/events"
)

// edges makes steps of one tier wait for one another: on each node by what modules require, and by the edges of the strategy.
func (m *maker) edges() error {
	for _, e := range m.request.Strategy.Edges { // before any edge: those of others hold for them too
		if e.Notify {
			m.refreshes(e)
		}
	}
	for i, e := range m.request.Strategy.Edges {
		if err := m.edge(fmt.Sprintf("edges[%d]", i), e); err != nil {
			return err
		}
	}
	m.required()
	return nil
}

// required lets a step wait for the steps of all that its module requires, on the same node. What ends goes the other way: nothing is
// taken away while what requires it is there.
func (m *maker) required() {
	needs := map[string][]string{}
	for i := range m.steps {
		s := &m.steps[i]
		if s.Refresh {
			continue
		}
		if _, ok := needs[s.Module]; !ok {
			needs[s.Module] = m.requirements(s.Module)
		}
		for _, r := range needs[s.Module] {
			at, ok := m.places[events.StepName{Node: s.Node, Module: r}]
			if !ok || m.steps[at].tier != s.tier || m.steps[at].Refresh {
				continue
			}
			switch ends := m.steps[at].After == nil; {
			case !ends && s.After != nil:
				m.wait(i, at, false)
			case ends && s.After == nil:
				m.wait(at, i, false)
			}
		}
	}
}

// requirements lists what a module requires, through others too.
func (m *maker) requirements(module string) []string {
	var list []string
	seen := map[string]bool{}
	look := []string{module}
	for len(look) > 0 {
		for _, r := range m.facts.Modules[look[0]].Requires {
			if !seen[r] {
				seen[r] = true
				list, look = append(list, r), append(look, r)
			}
		}
		look = look[1:]
	}
	return list
}

func (m *maker) wait(i, on int, notify bool) {
	s := &m.steps[i]
	if at := slices.IndexFunc(s.waits, func(w wait) bool { return w.on == on }); at >= 0 {
		s.waits[at].notify = s.waits[at].notify || notify
		return
	}
	s.waits = append(s.waits, wait{on: on, notify: notify})
}

func picks(p events.Place, n events.StepName) bool {
	return (p.Module == "" || p.Module == n.Module) && (p.Node == "" || p.Node == n.Node)
}

// edge lets the steps that one end picks wait for those that the other picks.
func (m *maker) edge(place string, e events.Edge) error {
	onEach := e.From.Node == "" && e.To.Node == ""
	byNode := map[string][]int{}
	var from []int
	for i := range m.steps {
		if s := &m.steps[i]; picks(e.From, s.StepName) && !s.Refresh {
			from = append(from, i)
			if onEach {
				byNode[s.Node] = append(byNode[s.Node], i)
			}
		}
	}
	for i := range m.steps {
		s := &m.steps[i]
		if !picks(e.To, s.StepName) {
			continue
		}
		before := from
		if onEach {
			before = byNode[s.Node]
		}
		for _, at := range before {
			switch f := &m.steps[at]; {
			case at == i || f.tier < s.tier:
			case f.tier > s.tier:
				return &EdgeError{Place: place, Why: fmt.Sprintf("%s in tier %s can't wait for %s: that is in tier %s, which comes later", s.StepName, s.Tier, f.StepName, f.Tier)}
			default:
				m.wait(i, at, e.Notify)
			}
		}
		if n := len(m.steps[i].waits); n > commands.MaxWaitsFor {
			return &EdgeError{Place: place, Why: fmt.Sprintf("%s would wait for %d steps: the limit is %d; put what comes first into a tier of its own", s.StepName, n, commands.MaxWaitsFor)}
		}
	}
	return nil
}

// refreshes plans for places that only have to be told when something else has changed.
func (m *maker) refreshes(e events.Edge) {
	onEach := e.From.Node == "" && e.To.Node == ""
	nodes, any := map[string]bool{}, false
	for i := range m.steps {
		if s := &m.steps[i]; picks(e.From, s.StepName) && !s.Refresh {
			nodes[s.Node], any = true, true
		}
	}
	if !any {
		return
	}
	var names []events.StepName
	for n := range m.facts.Told {
		_, planned := m.places[n]
		if picks(e.To, n) && !planned && (!onEach || nodes[n.Node]) {
			names = append(names, n)
		}
	}
	for _, n := range inOrder(names) {
		now := m.facts.at(n)
		if tier, ok := m.allowed(n, now, now); ok {
			m.add(step{tier: tier, PlannedStep: events.PlannedStep{Tier: m.tiers[tier].Name, StepName: n, Before: now, After: now, Refresh: true}})
		}
	}
}

// ordered gives the steps tier by tier, each behind those it waits for, and else by node and module.
func (m *maker) ordered() ([]events.PlannedStep, error) {
	order := make([]int, len(m.steps))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int {
		s, o := &m.steps[a], &m.steps[b]
		return cmp.Or(cmp.Compare(s.tier, o.tier), cmp.Compare(s.Node, o.Node), cmp.Compare(s.Module, o.Module))
	})
	w := writer{maker: m, state: make([]uint8, len(m.steps)), steps: make([]events.PlannedStep, 0, len(m.steps))}
	for _, i := range order {
		if err := w.visit(i); err != nil {
			return nil, err
		}
	}
	return w.steps, nil
}

// writer puts steps behind those they wait for.
type writer struct {
	*maker
	state []uint8
	// trail holds the steps whose waits are being looked at.
	trail []int
	steps []events.PlannedStep
}

// How far a step is.
const (
	untouched = iota
	open
	written
)

// visit writes a step down, after those it waits for. It goes no deeper than the longest chain of steps.
func (w *writer) visit(i int) error {
	switch w.state[i] {
	case written:
		return nil
	case open:
		return w.circle(i)
	}
	w.state[i] = open
	w.trail = append(w.trail, i)
	s := &w.maker.steps[i]
	for _, on := range s.waits {
		if err := w.visit(on.on); err != nil {
			return err
		}
	}
	w.trail = w.trail[:len(w.trail)-1]
	w.state[i] = written
	p := s.PlannedStep
	if len(s.waits) > 0 {
		p.WaitsFor = make([]events.WaitFor, len(s.waits))
		for j, on := range s.waits {
			p.WaitsFor[j] = events.WaitFor{StepName: w.maker.steps[on.on].StepName, Notify: on.notify}
		}
	}
	w.steps = append(w.steps, p)
	return nil
}

func (w *writer) circle(i int) error {
	e := &CircleError{Tier: w.maker.steps[i].Tier}
	for _, at := range w.trail[slices.Index(w.trail, i):] {
		e.Steps = append(e.Steps, w.maker.steps[at].StepName)
	}
	return e
}
