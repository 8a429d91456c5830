package merge

import (
	"fmt"

	"catenary/aggregates/decision"
	"catenary/aggregates/rollout"
	"catenary/commands"
	"catenary/es"
	"catenary/events"
)

// Codes of the refusals of merges.
const (
	CodeUnknown    = "unknown-merge"
	CodeNotWaiting = "not-waiting"
	CodeNotTaken   = "not-taken"
	CodeAlone      = "alone"
)

// Decide gives what a command about a merge leads to. It gives errors of type *[es.Refusal].
func Decide(w World, s State, c es.Command) ([]es.KeyedEvent, error) {
	switch p := c.Data.(type) {
	case commands.HoldMerge:
		return hold(s, c, p)
	case commands.TakeMerge:
		return take(w, s, c, p)
	case commands.ReleaseMerge:
		return release(s, c, p)
	}
	return nil, decision.Unknown(c)
}

// hold lets a merge wait. Hearing of it again changes nothing, also when it has been brought to its place since.
func hold(s State, c es.Command, p commands.HoldMerge) ([]es.KeyedEvent, error) {
	fact := events.MergeHeld{
		Repository: p.Repository, Branch: p.Branch, Commit: p.Commit, Merged: p.Merged.UTC(), Heard: p.Heard.UTC(),
		Event: p.Event, Alone: p.Alone, Waiting: p.Waiting,
	}
	if s.Known && s.Content == said(fact) {
		return nil, nil
	}
	return decision.Record(c.Ref, fact), nil
}

func take(w World, s State, c es.Command, p commands.TakeMerge) ([]es.KeyedEvent, error) {
	what := name(p.Repository, p.Branch, p.Commit)
	switch {
	case !s.Known:
		return nil, unknown(what)
	case s.Rollout == p.Rollout:
		return nil, nil
	case !s.Waiting:
		return nil, es.Refuse(CodeNotWaiting, what+" does not wait: it was released", "hold it again first, and say why")
	}
	if err := rollout.Open(p.Rollout, w.Rollout(p.Rollout)); err != nil {
		return nil, err
	}
	others := w.MergesOf(p.Rollout)
	if s.Alone && len(others) > 0 {
		return nil, es.Refuse(CodeAlone, fmt.Sprintf("%s goes alone, and rollout %s carries %s", what, p.Rollout, decision.Count(len(others), "other merge")),
			"plan a rollout for it alone")
	}
	for _, o := range others {
		if o.Alone {
			return nil, es.Refuse(CodeAlone, fmt.Sprintf("rollout %s carries a merge that goes alone", p.Rollout), "take it into another rollout")
		}
	}
	return decision.Record(c.Ref, events.MergeTaken{Rollout: p.Rollout}), nil
}

func release(s State, c es.Command, p commands.ReleaseMerge) ([]es.KeyedEvent, error) {
	what := name(p.Repository, p.Branch, p.Commit)
	switch {
	case !s.Known:
		return nil, unknown(what)
	case !s.Waiting:
		return nil, nil
	case p.Placed && s.Rollout == "":
		return nil, es.Refuse(CodeNotTaken, what+" belongs to no rollout: nothing can have brought it to its place", "release it without saying that it was placed")
	}
	return decision.Record(c.Ref, events.MergeReleased{Placed: p.Placed, Reason: p.Reason}), nil
}

func name(repository, branch, commit string) string {
	return fmt.Sprintf("merge %s of %s on %s", commit, repository, branch)
}

func unknown(what string) error {
	return es.Refuse(CodeUnknown, what+" is not known", "record it with merge hold")
}
