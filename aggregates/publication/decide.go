package publication

import (
	"fmt"
	"slices"

	"catenary/aggregates/build"
	"catenary/aggregates/content"
	"catenary/aggregates/decision"
	"catenary/commands"
	"catenary/es"
	"catenary/events"
)

// Codes of the refusals of publications.
const (
	CodeRecorded       = "recorded"
	CodeUnknown        = "unknown-publication"
	CodeVetoed         = "vetoed"
	CodeNotVetoed      = "not-vetoed"
	CodeCommitMismatch = "commit-mismatch"
	CodeModuleMismatch = "module-mismatch"
	CodeBuildFailed    = "build-failed"
)

// Decide gives what a command about a publication leads to. It gives errors of type *[es.Refusal].
func Decide(w World, s State, c es.Command) ([]es.KeyedEvent, error) {
	switch p := c.Data.(type) {
	case commands.RecordPublication:
		return record(w, s, c, p)
	case commands.AttestPublication:
		return attest(s, c, p)
	case commands.VetoPublication:
		return veto(s, c, p)
	case commands.LiftVeto:
		return liftVeto(s, c, p)
	}
	return nil, decision.Unknown(c)
}

// record takes a publication in. When the chain knows its build, commit and module come from there, and the build has published
// it, in the same append.
func record(w World, s State, c es.Command, p commands.RecordPublication) ([]es.KeyedEvent, error) {
	fact := events.PublicationRecorded{Reference: p.Reference, Build: p.Build, Commit: p.Commit, Module: p.Module}
	var facts []es.KeyedEvent
	if b := w.Build(p.Build); p.Build != "" && b.Status != build.Unknown {
		var err error
		if fact, err = agree(fact, b); err != nil {
			return nil, err
		}
		if b.Status == build.Succeeded && b.Published.IsZero() {
			facts = decision.Record(commands.BuildRef(p.Build), events.BuildPublished{Reference: p.Reference})
		}
	}
	switch {
	case !s.Recorded:
		return append(decision.Record(c.Ref, fact), facts...), nil
	case s.Build == fact.Build && s.Commit == fact.Commit && s.Module == fact.Module:
		return facts, nil
	}
	return nil, es.Refuse(CodeRecorded, fmt.Sprintf("%s is recorded with another build, commit or module", p.Reference), "a publication is recorded once and never changes")
}

// agree fills in what the build knows, and refuses what it knows otherwise.
func agree(fact events.PublicationRecorded, b build.State) (events.PublicationRecorded, error) {
	if b.Status == build.Failed {
		return fact, es.Refuse(CodeBuildFailed, fmt.Sprintf("build %s failed: it can't have published %s", fact.Build, fact.Reference), "")
	}
	if !b.Published.Equal(fact.Reference) {
		if err := build.Unpublished(fact.Build, b); err != nil {
			return fact, err
		}
	}
	if fact.Commit == "" {
		fact.Commit = b.Commit
	}
	if fact.Module == "" {
		fact.Module = b.Module
	}
	switch {
	case fact.Commit != b.Commit:
		return fact, es.Refuse(CodeCommitMismatch, fmt.Sprintf("build %s is of commit %s, not %s", fact.Build, b.Commit, fact.Commit), "leave the commit out")
	case fact.Module != b.Module:
		return fact, es.Refuse(CodeModuleMismatch, fmt.Sprintf("build %s is of module %s, not %s", fact.Build, b.Module, fact.Module), "leave the module out")
	}
	return fact, nil
}

func attest(s State, c es.Command, p commands.AttestPublication) ([]es.KeyedEvent, error) {
	switch {
	case !s.Recorded:
		return nil, unknown(p.Reference)
	case slices.Contains(s.Attested, content.Of(p.Attestation)):
		return nil, nil
	}
	return decision.Record(c.Ref, events.PublicationAttested{Attestation: p.Attestation}), nil
}

func veto(s State, c es.Command, p commands.VetoPublication) ([]es.KeyedEvent, error) {
	switch {
	case !s.Recorded:
		return nil, unknown(p.Reference)
	case s.Veto == nil:
		return decision.Record(c.Ref, events.PublicationVetoed{Reason: p.Reason}), nil
	case s.Veto.Reason == p.Reason:
		return nil, nil
	}
	return nil, es.Refuse(CodeVetoed, fmt.Sprintf("%s is vetoed by %s for another reason: %s", p.Reference, who(s.Veto.By), s.Veto.Reason), "lift that veto first to give another reason")
}

func liftVeto(s State, c es.Command, p commands.LiftVeto) ([]es.KeyedEvent, error) {
	switch {
	case !s.Recorded:
		return nil, unknown(p.Reference)
	case s.Veto == nil:
		return nil, es.Refuse(CodeNotVetoed, fmt.Sprintf("%s is not vetoed", p.Reference), "")
	}
	return decision.Record(c.Ref, events.PublicationVetoLifted{Reason: p.Reason}), nil
}

// Allowed refuses a vetoed publication to whoever gives no reason.
func Allowed(ref events.Reference, s State, reason string) error {
	if s.Veto == nil || reason != "" {
		return nil
	}
	return es.Refuse(CodeVetoed, fmt.Sprintf("%s is vetoed by %s: %s", ref, who(s.Veto.By), s.Veto.Reason), "give a reason to assign it all the same, or lift the veto")
}

func who(actor string) string {
	if actor == "" {
		return "somebody"
	}
	return actor
}

func unknown(ref events.Reference) error {
	return es.Refuse(CodeUnknown, fmt.Sprintf("%s is not recorded", ref), "record it with publication record")
}
