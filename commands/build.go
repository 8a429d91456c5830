package commands

import (
	"catenary/es"
	"catenary/events"
)

// AskBuild says that a build was handed over to be made.
type AskBuild struct {
	events.BuildSpec
	// Reasks is the build this one asks again; it must have been claimed.
	Reasks string `json:"reasks,omitempty"`
}

// NotAskedBuild says that a build could not be handed over.
type NotAskedBuild struct {
	events.BuildSpec
	Why string `json:"why"`
}

// UnknownBuild says that the asker stopped waiting for the outcome.
type UnknownBuild struct {
	ID  string `json:"id"`
	Why string `json:"why"`
}

// ReaskBuild wants a build asked again.
type ReaskBuild struct {
	ID     string `json:"id"`
	Reason string `json:"reason,omitempty"`
}

// ClaimBuild takes the right to ask a build again.
type ClaimBuild struct {
	ID string `json:"id"`
	By string `json:"by,omitempty"`
}

// SucceedBuild says that a build was made. Request lets a build be recorded that was never asked through the chain.
type SucceedBuild struct {
	ID       string         `json:"id"`
	Made     []events.Made  `json:"made,omitempty"`
	Mirrored []string       `json:"mirrored,omitempty"`
	Read     []events.Read  `json:"read,omitempty"`
	Manifest events.Raw     `json:"manifest,omitempty"`
	Request  *RecordedBuild `json:"request,omitempty"`
}

// FailBuild says that a build could not be made. Request lets a build be recorded that was never asked through the chain.
type FailBuild struct {
	ID      string         `json:"id"`
	Failed  string         `json:"failed"`
	Request *RecordedBuild `json:"request,omitempty"`
}

// RecordedBuild is what a build that was asked elsewhere was asked to make; its id is the command's own.
type RecordedBuild struct {
	Module            string          `json:"module"`
	Repository        string          `json:"repository"`
	Seat              string          `json:"seat,omitempty"`
	Path              string          `json:"path,omitempty"`
	Ref               string          `json:"ref,omitempty"`
	Commit            string          `json:"commit"`
	For               string          `json:"for,omitempty"`
	On                string          `json:"on,omitempty"`
	Against           []string        `json:"against,omitempty"`
	Sources           []events.Source `json:"sources,omitempty"`
	SourceFingerprint string          `json:"source-fingerprint,omitempty"`
	ReuseKey          string          `json:"reuse-key,omitempty"`
}

// Spec gives the build's specification under the id.
func (r RecordedBuild) Spec(id string) events.BuildSpec {
	return events.BuildSpec{
		ID: id, Module: r.Module, Repository: r.Repository, Seat: r.Seat, Path: r.Path, Ref: r.Ref, Commit: r.Commit, For: r.For,
		On: r.On, Against: r.Against, Sources: r.Sources, SourceFingerprint: r.SourceFingerprint, ReuseKey: r.ReuseKey,
	}
}

// PublishBuild says what a build published. It also records the publication.
type PublishBuild struct {
	ID string `json:"id"`
	events.Reference
}

func buildRef(id string) es.Ref { return es.Ref{Aggregate: events.AggregateBuild, Key: es.Key(id)} }

// Ref is the build.
func (c AskBuild) Ref() es.Ref { return buildRef(c.ID) }

// Ref is the build.
func (c NotAskedBuild) Ref() es.Ref { return buildRef(c.ID) }

// Ref is the build.
func (c UnknownBuild) Ref() es.Ref { return buildRef(c.ID) }

// Ref is the build.
func (c ReaskBuild) Ref() es.Ref { return buildRef(c.ID) }

// Ref is the build.
func (c ClaimBuild) Ref() es.Ref { return buildRef(c.ID) }

// Ref is the build.
func (c SucceedBuild) Ref() es.Ref { return buildRef(c.ID) }

// Ref is the build.
func (c FailBuild) Ref() es.Ref { return buildRef(c.ID) }

// Ref is the build.
func (c PublishBuild) Ref() es.Ref { return buildRef(c.ID) }

// Verb is ask.
func (AskBuild) Verb() string { return "ask" }

// Verb is not-asked.
func (NotAskedBuild) Verb() string { return "not-asked" }

// Verb is unknown.
func (UnknownBuild) Verb() string { return "unknown" }

// Verb is reask.
func (ReaskBuild) Verb() string { return "reask" }

// Verb is claim.
func (ClaimBuild) Verb() string { return "claim" }

// Verb is succeed.
func (SucceedBuild) Verb() string { return "succeed" }

// Verb is fail.
func (FailBuild) Verb() string { return "fail" }

// Verb is publish.
func (PublishBuild) Verb() string { return "publish" }
