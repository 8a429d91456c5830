package build

import (
	"catenary/aggregates/content"
	"catenary/events"
)

// Evolve gives the state after a fact whose JSON has at most the given number of bytes.
func Evolve(s State, fact events.Build, bytes int) State {
	s.Bytes += uint32(bytes)
	switch e := fact.(type) {
	case events.BuildAsked:
		return s.specified(e.BuildSpec, Asked)
	case events.BuildNotAsked:
		s = s.specified(e.BuildSpec, NotAsked)
		s.Outcome = content.Of(e.Why)
		return s
	case events.BuildOutcomeUnknown:
		s.Status = OutcomeUnknown
		return s
	case events.BuildReaskPending:
		s.Reask = ReaskPending
		return s
	case events.BuildReaskClaimed:
		s.Reask, s.Other = ReaskClaimed, e.By
		return s
	case events.BuildReasked:
		s.Reask, s.Other = Reasked, e.As
		return s
	case events.BuildSucceeded:
		return s.answered(Succeeded, e)
	case events.BuildFailed:
		s = s.answered(Failed, e)
		s.Module, s.Commit = "", "" // nothing comes of it any more
		return s
	case events.BuildPublished:
		s.Published = e.Reference
		return s
	}
	return s
}

func (s State) specified(b events.BuildSpec, status Status) State {
	s.Status, s.Spec = status, content.Of(b)
	s.Module, s.Commit, s.ReuseKey = b.Module, b.Commit, b.ReuseKey
	return s
}

func (s State) answered(status Status, fact events.Build) State {
	s.Status, s.Outcome, s.ReuseKey = status, content.Of(fact), ""
	return s
}

// request is what a build's record says twice: of the build, and of the request that led to it.
type request struct {
	Repository string `json:"repository,omitempty"`
	Seat       string `json:"seat,omitempty"`
	Path       string `json:"path,omitempty"`
	Ref        string `json:"ref,omitempty"`
	Commit     string `json:"commit,omitempty"`
	For        string `json:"for,omitempty"`
}

// Repeated gives what the build's record holds of a fact a second time, or nil.
func Repeated(fact events.Build) any {
	switch e := fact.(type) {
	case events.BuildAsked:
		return requested(e.BuildSpec)
	case events.BuildNotAsked:
		return requested(e.BuildSpec)
	case events.BuildOutcomeUnknown, events.BuildReaskPending, events.BuildReaskClaimed, events.BuildReasked,
		events.BuildSucceeded, events.BuildFailed, events.BuildPublished:
	}
	return nil
}

func requested(b events.BuildSpec) request {
	return request{Repository: b.Repository, Seat: b.Seat, Path: b.Path, Ref: b.Ref, Commit: b.Commit, For: b.For}
}
