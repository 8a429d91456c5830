package publication

import (
	"slices"

	"catenary/aggregates/build"
	"catenary/aggregates/content"
	"catenary/events"
)

// State is what rules need of a publication.
type State struct {
	Recorded bool
	// Bytes bounds the size of the publication's record.
	Bytes uint32
	// Build, Commit and Module are where it comes from, as far as that is known.
	Build, Commit, Module string
	// Attested stands for each attestation.
	Attested []content.Digest
	// Veto is set while it must not be assigned by itself.
	Veto *Veto
}

// Veto tells who forbade a publication, and why.
type Veto struct{ By, Reason string }

// World is what deciding about a publication needs of everything else.
type World interface {
	// Build gives the state of a build.
	Build(id string) build.State
}

// Evolve gives the state after a fact that an actor caused, whose JSON has at most the given number of bytes.
func Evolve(s State, fact events.Publication, actor string, bytes int) State {
	s.Bytes += uint32(bytes)
	switch e := fact.(type) {
	case events.PublicationRecorded:
		s.Recorded, s.Build, s.Commit, s.Module = true, e.Build, e.Commit, e.Module
		return s
	case events.PublicationAttested:
		s.Attested = append(slices.Clip(s.Attested), content.Of(e.Attestation))
		return s
	case events.PublicationVetoed:
		s.Veto = &Veto{By: actor, Reason: e.Reason}
		return s
	case events.PublicationVetoLifted:
		s.Veto = nil
		return s
	}
	return s
}
