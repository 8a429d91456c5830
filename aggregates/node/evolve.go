package node

import (
	"catenary/aggregates/content"
	"catenary/events"
)

// Evolve gives the state after a fact.
func Evolve(s State, fact events.Node) State {
	switch e := fact.(type) {
	case events.NodeRegistered:
		return State{Status: Registered, External: e.ManagedBy == events.ManagedByExternal, Labels: labelled(e.Labels)}
	case events.NodeRelabelled:
		s.Labels = labelled(e.Labels)
		return s
	case events.NodeRetired:
		return State{Status: Retired}
	}
	return s
}

// labelled stands for labels; none and an empty set are the same.
func labelled(labels map[string]string) content.Digest {
	if len(labels) == 0 {
		return content.Digest{}
	}
	return content.Of(labels)
}
