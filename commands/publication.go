package commands

import (
	"catenary/es"
	"catenary/events"
)

// RecordPublication says that an artifact or package exists.
type RecordPublication struct {
	events.Reference
	Build  string `json:"build,omitempty"`
	Commit string `json:"commit,omitempty"`
	Module string `json:"module,omitempty"`
}

// AttestPublication adds a statement about it.
type AttestPublication struct {
	events.Reference
	Attestation events.Attestation `json:"attestation"`
}

// VetoPublication forbids assigning it, except by hand with a reason.
type VetoPublication struct {
	events.Reference
	Reason string `json:"reason"`
}

// LiftVeto takes the veto back.
type LiftVeto struct {
	events.Reference
	Reason string `json:"reason,omitempty"`
}

// PublicationRef is the instance of what is referred to: its key is the digest, or name and version.
func PublicationRef(r events.Reference) es.Ref {
	key := ""
	switch {
	case r.Package != nil:
		key = es.Key(r.Package.Name, r.Package.Version)
	case r.Artifact != "":
		key = es.Key(r.Artifact)
	}
	return es.Ref{Aggregate: events.AggregatePublication, Key: key}
}

// Ref is the publication.
func (c RecordPublication) Ref() es.Ref { return PublicationRef(c.Reference) }

// Ref is the publication.
func (c AttestPublication) Ref() es.Ref { return PublicationRef(c.Reference) }

// Ref is the publication.
func (c VetoPublication) Ref() es.Ref { return PublicationRef(c.Reference) }

// Ref is the publication.
func (c LiftVeto) Ref() es.Ref { return PublicationRef(c.Reference) }

// Verb is record.
func (RecordPublication) Verb() string { return "record" }

// Verb is attest.
func (AttestPublication) Verb() string { return "attest" }

// Verb is veto.
func (VetoPublication) Verb() string { return "veto" }

// Verb is lift-veto.
func (LiftVeto) Verb() string { return "lift-veto" }

// Validate checks the shape. It gives errors of type *[es.Refusal].
func (c RecordPublication) Validate() error {
	var k check
	k.reference(c.Reference, true)
	k.maybeName("build", c.Build)
	k.maybeName("commit", c.Commit)
	k.maybeName("module", c.Module)
	return k.done(c.Ref())
}

// Validate checks the shape. It gives errors of type *[es.Refusal].
func (c AttestPublication) Validate() error {
	var k check
	k.reference(c.Reference, true)
	k.name("attestation.kind", c.Attestation.Kind)
	k.line("attestation.reference", c.Attestation.Reference)
	k.maybeName("attestation.digest", c.Attestation.Digest)
	return k.done(c.Ref())
}

// Validate checks the shape. It gives errors of type *[es.Refusal].
func (c VetoPublication) Validate() error {
	var k check
	k.reference(c.Reference, true)
	k.need("reason", c.Reason)
	return k.done(c.Ref())
}

// Validate checks the shape. It gives errors of type *[es.Refusal].
func (c LiftVeto) Validate() error {
	var k check
	k.reference(c.Reference, true)
	k.text("reason", c.Reason)
	return k.done(c.Ref())
}
