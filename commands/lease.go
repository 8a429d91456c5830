package commands

import (
	"time"

	"catenary/es"
	"catenary/events"
)

// TakeLease asks for the right to act alone. It is refused while another holds it.
type TakeLease struct {
	Name   string `json:"name"`
	Holder string `json:"holder"`
	// TTL is how long the lease holds without renewal, as a Go duration.
	TTL string `json:"ttl"`
}

// RenewLease lets the holder keep the lease for another TTL. It leaves no event.
type RenewLease struct {
	Name   string `json:"name"`
	Holder string `json:"holder"`
}

// ReleaseLease gives the lease back.
type ReleaseLease struct {
	Name   string `json:"name"`
	Holder string `json:"holder"`
	Reason string `json:"reason,omitempty"`
}

// LeaseRef is the instance of a lease.
func LeaseRef(name string) es.Ref {
	return es.Ref{Aggregate: events.AggregateLease, Key: es.Key(name)}
}

// Ref is the lease.
func (c TakeLease) Ref() es.Ref { return LeaseRef(c.Name) }

// Ref is the lease.
func (c RenewLease) Ref() es.Ref { return LeaseRef(c.Name) }

// Ref is the lease.
func (c ReleaseLease) Ref() es.Ref { return LeaseRef(c.Name) }

// Verb is take.
func (TakeLease) Verb() string { return "take" }

// Verb is renew.
func (RenewLease) Verb() string { return "renew" }

// Verb is release.
func (ReleaseLease) Verb() string { return "release" }

// MaxLeaseTTL bounds a lease: a holder that died without a word blocks its work for no longer.
const MaxLeaseTTL = 24 * time.Hour

// Validate checks the shape. It gives errors of type *[es.Refusal].
func (c TakeLease) Validate() error {
	var k check
	k.name("name", c.Name)
	k.name("holder", c.Holder)
	if c.TTL == "" {
		k.fail(CodeMissingField, "ttl is empty", "say how long the lease holds without renewal, like 10s")
	}
	k.duration("ttl", c.TTL, MaxLeaseTTL)
	return k.done(c.Ref())
}

// Validate checks the shape. It gives errors of type *[es.Refusal].
func (c RenewLease) Validate() error {
	var k check
	k.name("name", c.Name)
	k.name("holder", c.Holder)
	return k.done(c.Ref())
}

// Validate checks the shape. It gives errors of type *[es.Refusal].
func (c ReleaseLease) Validate() error {
	var k check
	k.name("name", c.Name)
	k.name("holder", c.Holder)
	k.text("reason", c.Reason)
	return k.done(c.Ref())
}
