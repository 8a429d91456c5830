package node

import "catenary/events"

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

// labelled makes none of an empty set.
func labelled(labels map[string]string) map[string]string {
	if len(labels) == 0 {
		return nil
	}
	return labels
}
