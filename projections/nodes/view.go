package nodes

import (
	"catenary/chain"
	"catenary/es"
	"catenary/es/project"
	"catenary/events"
	"catenary/projections/perkey"
)

const version = 1

// New returns the view without records.
func New() project.View { return perkey.New(chain.Nodes, version, fold) }

func fold(before *chain.Node, e es.Event, data events.Node) (chain.Node, error) {
	at := e.Effective.UTC()
	switch data := data.(type) {
	case events.NodeRegistered:
		return chain.Node{Node: data.Node, Labels: data.Labels, ManagedBy: data.ManagedBy, Registered: at}, nil
	case events.NodeRelabelled:
		if before == nil {
			return chain.Node{}, perkey.Untold(e)
		}
		before.Labels = data.Labels
		return *before, nil
	case events.NodeRetired:
		if before == nil {
			return chain.Node{}, perkey.Untold(e)
		}
		before.Retired = at
		return *before, nil
	}
	return chain.Node{}, perkey.Unknown(e)
}
