package published

import (
	"cmp"

	"catenary/chain"
	"catenary/es"
	"catenary/es/project"
	"catenary/events"
	"catenary/projections/perkey"
)

const version = 1

// New returns the view without records.
func New() project.View {
	return perkey.New(chain.Publications, version, fold)
}

func fold(before *chain.Published, e es.Event, data events.Publication) (chain.Published, error) {
	at := e.Effective.UTC()
	switch data := data.(type) {
	case events.PublicationRecorded:
		p := chain.Published{
			Reference: data.Reference, Build: data.Build, Commit: data.Commit, Module: data.Module, At: at,
		}
		if before != nil {
			p.At, p.Attestations, p.Vetoed = before.At, before.Attestations, before.Vetoed
		}
		return p, nil
	case events.PublicationAttested:
		return change(before, e, func(p *chain.Published) { p.Attestations = append(p.Attestations, data.Attestation) })
	case events.PublicationVetoed:
		by := cmp.Or(e.Command.OnBehalfOf, e.Command.Actor)
		return change(before, e, func(p *chain.Published) {
			p.Vetoed = &chain.Veto{By: by, Reason: data.Reason, At: at}
		})
	case events.PublicationVetoLifted:
		return change(before, e, func(p *chain.Published) { p.Vetoed = nil })
	}
	return chain.Published{}, perkey.Unknown(e)
}

func change(before *chain.Published, e es.Event, how func(*chain.Published)) (chain.Published, error) {
	if before == nil {
		return chain.Published{}, perkey.Untold(e)
	}
	how(before)
	return *before, nil
}
