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

// BuildRef is the instance of a build.
func BuildRef(id string) es.Ref { return es.Ref{Aggregate: events.AggregateBuild, Key: es.Key(id)} }

// Ref is the build.
func (c AskBuild) Ref() es.Ref { return BuildRef(c.ID) }

// Ref is the build.
func (c NotAskedBuild) Ref() es.Ref { return BuildRef(c.ID) }

// Ref is the build.
func (c UnknownBuild) Ref() es.Ref { return BuildRef(c.ID) }

// Ref is the build.
func (c ReaskBuild) Ref() es.Ref { return BuildRef(c.ID) }

// Ref is the build.
func (c ClaimBuild) Ref() es.Ref { return BuildRef(c.ID) }

// Ref is the build.
func (c SucceedBuild) Ref() es.Ref { return BuildRef(c.ID) }

// Ref is the build.
func (c FailBuild) Ref() es.Ref { return BuildRef(c.ID) }

// Ref is the build.
func (c PublishBuild) Ref() es.Ref { return BuildRef(c.ID) }

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

// Validate checks the shape. It gives errors of type *[es.Refusal].
func (c AskBuild) Validate() error {
	var k check
	k.build(c.BuildSpec)
	k.maybeName("reasks", c.Reasks)
	if c.Reasks != "" && c.Reasks == c.ID {
		k.failf(CodeBadValue, "give the new build an id of its own", "build %s reasks itself", c.ID)
	}
	return k.done(c.Ref())
}

// Validate checks the shape. It gives errors of type *[es.Refusal].
func (c NotAskedBuild) Validate() error {
	var k check
	k.build(c.BuildSpec)
	k.need("why", c.Why)
	return k.done(c.Ref())
}

// Validate checks the shape. It gives errors of type *[es.Refusal].
func (c UnknownBuild) Validate() error {
	var k check
	k.name("id", c.ID)
	k.need("why", c.Why)
	return k.done(c.Ref())
}

// Validate checks the shape. It gives errors of type *[es.Refusal].
func (c ReaskBuild) Validate() error {
	var k check
	k.name("id", c.ID)
	k.text("reason", c.Reason)
	return k.done(c.Ref())
}

// Validate checks the shape. It gives errors of type *[es.Refusal].
func (c ClaimBuild) Validate() error {
	var k check
	k.name("id", c.ID)
	k.maybeName("by", c.By)
	return k.done(c.Ref())
}

// Validate checks the shape. It gives errors of type *[es.Refusal].
func (c SucceedBuild) Validate() error {
	var k check
	k.name("id", c.ID)
	k.count("made", len(c.Made))
	for i, m := range c.Made {
		k.name(item("made", i)+".name", m.Name)
		k.maybeName(item("made", i)+".kind", m.Kind)
		k.line(item("made", i)+".reference", m.Reference)
	}
	k.lines("mirrored", c.Mirrored)
	k.count("read", len(c.Read))
	for i, r := range c.Read {
		k.origin(item("read", i), r.Repository, r.Ref, r.Paths)
	}
	k.raw("manifest", c.Manifest)
	k.recorded(c.ID, c.Request)
	return k.done(c.Ref())
}

// Validate checks the shape. It gives errors of type *[es.Refusal].
func (c FailBuild) Validate() error {
	var k check
	k.name("id", c.ID)
	k.need("failed", c.Failed)
	k.recorded(c.ID, c.Request)
	return k.done(c.Ref())
}

// Validate checks the shape. It gives errors of type *[es.Refusal].
func (c PublishBuild) Validate() error {
	var k check
	k.name("id", c.ID)
	k.reference(c.Reference, true)
	return k.done(c.Ref())
}

func (c *check) recorded(id string, r *RecordedBuild) {
	if r != nil {
		c.build(r.Spec(id))
	}
}

func (c *check) build(b events.BuildSpec) {
	c.name("id", b.ID)
	c.name("module", b.Module)
	c.name("repository", b.Repository)
	c.name("commit", b.Commit)
	c.line("seat", b.Seat)
	c.line("path", b.Path)
	c.line("ref", b.Ref)
	if b.For != "" {
		c.oneOf("for", b.For, events.ForMerge, events.ForPlan, events.ForBuild, events.ForAssign)
	}
	c.line("on", b.On)
	c.lines("against", b.Against)
	c.count("sources", len(b.Sources))
	for i, s := range b.Sources {
		c.origin(item("sources", i), s.Repository, s.Ref, s.Paths)
	}
	c.line("source-fingerprint", b.SourceFingerprint)
	c.line("reuse-key", b.ReuseKey)
}

// origin is a repository that a build is made of or read from.
func (c *check) origin(field, repository, ref string, paths []string) {
	c.name(field+".repository", repository)
	c.line(field+".ref", ref)
	c.lines(field+".paths", paths)
}
