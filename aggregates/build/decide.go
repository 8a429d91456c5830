package build

import (
	"fmt"

	"catenary/aggregates/content"
	"catenary/aggregates/decision"
	"catenary/commands"
	"catenary/es"
	"catenary/events"
)

// Codes of the refusals of builds. [CodeReused] comes with the status unchanged.
const (
	CodeUnknown         = "unknown-build"
	CodeReused          = "reused"
	CodeAsked           = "asked"
	CodeNotAsked        = "not-asked"
	CodeOutcomeUnknown  = "outcome-unknown"
	CodeAnswered        = "answered"
	CodeUnanswered      = "unanswered"
	CodeRequestMismatch = "request-mismatch"
	CodeNotPending      = "not-pending"
	CodeClaimed         = "claimed"
	CodeNotClaimed      = "not-claimed"
	CodeReasked         = "reasked"
	CodeNotSucceeded    = "not-succeeded"
	CodePublished       = "published"
	CodeRecorded        = "recorded"
)

// Decide gives what a command about a build leads to. It gives errors of type *[es.Refusal].
func Decide(w World, s State, c es.Command) ([]es.KeyedEvent, error) {
	switch p := c.Data.(type) {
	case commands.AskBuild:
		return ask(w, s, c, p)
	case commands.NotAskedBuild:
		return notAsked(s, c, p)
	case commands.UnknownBuild:
		return outcomeUnknown(s, c, p)
	case commands.ReaskBuild:
		return reask(s, c, p)
	case commands.ClaimBuild:
		return claim(s, c, p)
	case commands.SucceedBuild:
		fact := events.BuildSucceeded{Made: p.Made, Mirrored: p.Mirrored, Read: p.Read, Manifest: p.Manifest}
		return outcome(s, c, p.ID, p.Request, fact, Succeeded)
	case commands.FailBuild:
		return outcome(s, c, p.ID, p.Request, events.BuildFailed{Failed: p.Failed}, Failed)
	case commands.PublishBuild:
		return publish(w, s, c, p)
	}
	return nil, decision.Unknown(c)
}

// ask hands a build over. One that would give what a build gave already is not asked: the answer names that build. A re-ask is
// asked all the same, since whoever claimed it must be able to end the claim.
func ask(w World, s State, c es.Command, p commands.AskBuild) ([]es.KeyedEvent, error) {
	if s.Status != Unknown {
		return askedBefore(w, s, p)
	}
	fact := events.BuildAsked{BuildSpec: p.BuildSpec, Reasks: p.Reasks}
	if p.Reasks != "" {
		if err := claimed(p.Reasks, w.Build(p.Reasks)); err != nil {
			return nil, err
		}
		facts := decision.Record(c.Ref, fact)
		return append(facts, decision.Record(commands.BuildRef(p.Reasks), events.BuildReasked{As: p.ID})...), nil
	}
	if p.ReuseKey != "" {
		if id, ok := w.Reusable(p.ReuseKey); ok {
			return nil, &es.Refusal{
				Status: es.StatusUnchanged, Code: CodeReused, Message: fmt.Sprintf("build %s has the same reuse key and succeeded: it is reused", id),
				Hint: "use that build's result",
			}
		}
	}
	return decision.Record(c.Ref, fact), nil
}

func askedBefore(w World, s State, p commands.AskBuild) ([]es.KeyedEvent, error) {
	same := s.Spec == content.Of(p.BuildSpec)
	if p.Reasks != "" {
		old := w.Build(p.Reasks)
		same = same && old.Reask == Reasked && old.Other == p.ID
	}
	if same && s.Status == Asked {
		return nil, nil
	}
	if same {
		return nil, es.Refuse(CodeAsked, fmt.Sprintf("build %s was asked before and is %s", p.ID, s.Status), "ask under another id")
	}
	return nil, es.Refuse(CodeAsked, fmt.Sprintf("build %s was asked before, for something else", p.ID), "use another id")
}

// claimed refuses to ask a build again that nobody claimed.
func claimed(id string, old State) error {
	switch {
	case old.Status == Unknown:
		return unknown(id)
	case old.Reask == Reasked:
		return reasked(id, old)
	case old.Reask != ReaskClaimed:
		return es.Refuse(CodeNotClaimed, fmt.Sprintf("asking build %s again is not claimed", id), "claim it first with build claim")
	}
	return nil
}

func notAsked(s State, c es.Command, p commands.NotAskedBuild) ([]es.KeyedEvent, error) {
	spec := content.Of(p.BuildSpec)
	switch {
	case s.Status == Unknown, s.Status == Asked && s.Spec == spec:
		return decision.Record(c.Ref, events.BuildNotAsked{BuildSpec: p.BuildSpec, Why: p.Why}), nil
	case s.Spec != spec:
		return nil, es.Refuse(CodeAsked, fmt.Sprintf("build %s was asked before, for something else", p.ID), "use another id")
	case s.Status == NotAsked && s.Outcome == content.Of(p.Why):
		return nil, nil
	}
	return nil, wrongStatus(p.ID, s)
}

func outcomeUnknown(s State, c es.Command, p commands.UnknownBuild) ([]es.KeyedEvent, error) {
	switch s.Status {
	case Unknown:
		return nil, unknown(p.ID)
	case Asked:
		return decision.Record(c.Ref, events.BuildOutcomeUnknown{Why: p.Why}), nil
	case OutcomeUnknown:
		return nil, nil
	}
	return nil, wrongStatus(p.ID, s)
}

// reask wants a build asked again that was not handed over, or whose outcome stayed unknown.
func reask(s State, c es.Command, p commands.ReaskBuild) ([]es.KeyedEvent, error) {
	switch {
	case s.Status == Unknown:
		return nil, unknown(p.ID)
	case s.Reask == Reasked:
		return nil, reasked(p.ID, s)
	case s.Status.Answered():
		return nil, wrongStatus(p.ID, s)
	case s.Reask != NoReask:
		return nil, nil
	case s.Status == Asked:
		return nil, es.Refuse(CodeUnanswered, fmt.Sprintf("build %s is asked and not answered yet", p.ID), "say that its outcome is unknown first, with build unknown")
	}
	return decision.Record(c.Ref, events.BuildReaskPending{Reason: p.Reason}), nil
}

// claim gives the right to ask again to whoever comes first, and only once.
func claim(s State, c es.Command, p commands.ClaimBuild) ([]es.KeyedEvent, error) {
	switch {
	case s.Status == Unknown:
		return nil, unknown(p.ID)
	case s.Reask == ReaskClaimed:
		by := s.Other
		if by == "" {
			by = "somebody"
		}
		return nil, es.Refuse(CodeClaimed, fmt.Sprintf("asking build %s again is claimed by %s", p.ID, by), "leave it to them")
	case s.Reask == Reasked:
		return nil, reasked(p.ID, s)
	case s.Status.Answered():
		return nil, wrongStatus(p.ID, s)
	case s.Reask == NoReask:
		return nil, es.Refuse(CodeNotPending, fmt.Sprintf("nobody wants build %s asked again", p.ID), "use build reask first")
	}
	return decision.Record(c.Ref, events.BuildReaskClaimed{By: p.By}), nil
}

// outcome takes what became of a build. One that was asked elsewhere is recorded with its request.
func outcome(s State, c es.Command, id string, request *commands.RecordedBuild, fact events.Build, to Status) ([]es.KeyedEvent, error) {
	if request != nil {
		spec := request.Spec(id)
		if s.Status == Unknown {
			return decision.Record(c.Ref, events.BuildAsked{BuildSpec: spec}, fact), nil
		}
		if s.Spec != content.Of(spec) {
			return nil, es.Refuse(CodeRequestMismatch, fmt.Sprintf("build %s was asked for something else than the request says", id), "leave the request out, or use another id")
		}
	}
	switch {
	case s.Status == Unknown:
		return nil, unknown(id)
	case s.Status == Asked, s.Status == OutcomeUnknown:
		return decision.Record(c.Ref, fact), nil
	case s.Status == to && s.Outcome == content.Of(fact):
		return nil, nil
	}
	return nil, wrongStatus(id, s)
}

// publish records what a build published, as a publication too.
func publish(w World, s State, c es.Command, p commands.PublishBuild) ([]es.KeyedEvent, error) {
	switch {
	case s.Status == Unknown:
		return nil, unknown(p.ID)
	case s.Status != Succeeded:
		return nil, es.Refuse(CodeNotSucceeded, fmt.Sprintf("build %s is %s: only a build that succeeded publishes", p.ID, s.Status), "")
	case s.Published.Equal(p.Reference):
		return nil, nil
	}
	if err := Unpublished(p.ID, s); err != nil {
		return nil, err
	}
	facts := decision.Record(c.Ref, events.BuildPublished{Reference: p.Reference})
	other, recorded := w.RecordedFor(p.Reference)
	switch {
	case !recorded:
		return append(facts, decision.Record(commands.PublicationRef(p.Reference), events.PublicationRecorded{
			Reference: p.Reference, Build: p.ID, Commit: s.Commit, Module: s.Module,
		})...), nil
	case other != "" && other != p.ID:
		return nil, es.Refuse(CodeRecorded, fmt.Sprintf("%s is recorded as published by build %s", p.Reference, other), "one build publishes it; use that build")
	}
	return facts, nil
}

// Unpublished refuses a build that has published.
func Unpublished(id string, s State) error {
	if s.Published.IsZero() {
		return nil
	}
	return es.Refuse(CodePublished, fmt.Sprintf("build %s has published %s", id, s.Published), "a build publishes once: use another build")
}

func unknown(id string) error {
	return es.Refuse(CodeUnknown, fmt.Sprintf("build %s is not known", id), "ask it, or record it with its request")
}

// Known refuses a build that nobody asked.
func Known(id string, s State) error {
	if s.Status == Unknown {
		return unknown(id)
	}
	return nil
}

func reasked(id string, s State) error {
	return es.Refuse(CodeReasked, fmt.Sprintf("build %s was asked again as %s", id, s.Other), "look at that build")
}

// wrongStatus refuses what the build's status does not allow.
func wrongStatus(id string, s State) error {
	code, hint := CodeAnswered, "an outcome is final: ask a new build"
	switch s.Status {
	case NotAsked:
		code, hint = CodeNotAsked, "ask it again with build reask, or under another id"
	case OutcomeUnknown:
		code, hint = CodeOutcomeUnknown, "ask it again with build reask, or record its outcome"
	}
	return es.Refuse(code, fmt.Sprintf("build %s is %s", id, s.Status), hint)
}
