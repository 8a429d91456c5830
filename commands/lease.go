package commands

import (
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

func leaseRef(name string) es.Ref {
	return es.Ref{Aggregate: events.AggregateLease, Key: es.Key(name)}
}

// Ref is the lease.
func (c TakeLease) Ref() es.Ref { return leaseRef(c.Name) }

// Ref is the lease.
func (c RenewLease) Ref() es.Ref { return leaseRef(c.Name) }

// Ref is the lease.
func (c ReleaseLease) Ref() es.Ref { return leaseRef(c.Name) }

// Verb is take.
func (TakeLease) Verb() string { return "take" }

// Verb is renew.
func (RenewLease) Verb() string { return "renew" }

// Verb is release.
func (ReleaseLease) Verb() string { return "release" }
