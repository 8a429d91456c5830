package check

import (
	"slices"

	"catenary/events"
)

// ordered demands that what a module requires is done before it on its node, what it is required by is gone before it goes, and that the edges of
// the strategy hold: whatever the plan has made of that.
func (j *judge) ordered(r *rollout, s *step) {
	for _, o := range r.of(s.Tier) {
		if o == s || o.phase == events.StepDone {
			continue
		}
		if !o.Refresh && !s.Refresh && o.Node == s.Node {
			comes := s.After != nil && o.After != nil && j.requires(s.Module, o.Module)
			goes := s.After == nil && o.After == nil && j.requires(o.Module, s.Module)
			if comes || goes {
				j.say("begin-required", "%s of rollout %s begins, and %s is %s", s.StepName, r.id, o.StepName, o.phase)
			}
		}
		for _, edge := range r.edges {
			each := edge.From.Node == "" && edge.To.Node == ""
			if !o.Refresh && at(edge.From, o.StepName) && at(edge.To, s.StepName) && (!each || o.Node == s.Node) {
				j.say("begin-edge", "%s of rollout %s begins, and %s is %s", s.StepName, r.id, o.StepName, o.phase)
			}
		}
	}
}

func at(p events.Place, n events.StepName) bool {
	return (p.Module == "" || p.Module == n.Module) && (p.Node == "" || p.Node == n.Node)
}

// requires says whether a module requires another, through others too. No two require each other.
func (m *model) requires(module, other string) bool {
	known := m.modules[module]
	return known != nil && slices.ContainsFunc(known.requires, func(r string) bool { return r == other || m.requires(r, other) })
}
