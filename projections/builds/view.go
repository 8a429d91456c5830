package builds

import (
	"time"

	"catenary/chain"
	"catenary/es"
	"catenary/es/project"
	"catenary/events"
	"catenary/projections/perkey"
)

const version = 1

// New returns the view without records.
func New() project.View { return perkey.New(chain.Builds, version, fold) }

func fold(before *chain.Build, e es.Event, data events.Build) (chain.Build, error) {
	at := e.Effective.UTC()
	switch data := data.(type) {
	case events.BuildAsked:
		b := specified(data.BuildSpec, at)
		b.State, b.Asked = chain.BuildAsked, at
		return b, nil
	case events.BuildNotAsked:
		b := specified(data.BuildSpec, at)
		if before != nil && before.Request != nil {
			b.Asked, b.Request.At = before.Asked, before.Request.At // it was asked, but not handed over after all
		}
		b.State, b.Request.NotAsked, b.Request.AtTerminal = chain.BuildNotAsked, data.Why, at
		return b, nil
	case events.BuildOutcomeUnknown:
		return change(before, e, func(b *chain.Build) {
			b.State, b.Request.OutcomeUnknown = chain.BuildOutcomeUnknown, data.Why
			terminal(b, at)
		})
	case events.BuildReaskPending:
		return change(before, e, func(b *chain.Build) { b.Request.Reask = chain.ReaskPending })
	case events.BuildReaskClaimed:
		return change(before, e, func(b *chain.Build) { b.Request.Reask = chain.ReaskClaimed })
	case events.BuildReasked:
		return change(before, e, func(b *chain.Build) { b.Request.Reask = data.As })
	case events.BuildSucceeded:
		return change(before, e, func(b *chain.Build) {
			b.Made, b.Mirrored, b.Read, b.Manifest = data.Made, data.Mirrored, data.Read, data.Manifest
			answered(b, "", at)
		})
	case events.BuildFailed:
		return change(before, e, func(b *chain.Build) { answered(b, data.Failed, at) })
	case events.BuildPublished:
		return change(before, e, func(b *chain.Build) { b.Published = &data.Reference })
	}
	return chain.Build{}, perkey.Unknown(e)
}

func specified(s events.BuildSpec, at time.Time) chain.Build {
	return chain.Build{
		ID: s.ID, Repository: s.Repository, Ref: s.Ref, Module: s.Module, Commit: s.Commit, On: s.On, Path: s.Path,
		Against: s.Against, Sources: s.Sources, SourceFingerprint: s.SourceFingerprint, ReuseKey: s.ReuseKey,
		Request: &chain.Request{
			Repository: s.Repository, Seat: s.Seat, Path: s.Path, Ref: s.Ref, Commit: s.Commit, For: s.For, At: at,
		},
	}
}

func change(before *chain.Build, e es.Event, how func(*chain.Build)) (chain.Build, error) {
	if before == nil || before.Request == nil {
		return chain.Build{}, perkey.Untold(e)
	}
	how(before)
	return *before, nil
}

// answered sets the outcome. It ends a wish to ask again that nobody took up; one that was claimed is asked all the same.
func answered(b *chain.Build, failed string, at time.Time) {
	b.State, b.Failed, b.At = "", failed, at
	if b.Request.Reask == chain.ReaskPending {
		b.Request.Reask = ""
	}
	terminal(b, at)
}

// terminal sets when the request came to its end: when nobody waited any more, or the outcome came.
func terminal(b *chain.Build, at time.Time) {
	if b.Request.AtTerminal.IsZero() {
		b.Request.AtTerminal = at
	}
}
