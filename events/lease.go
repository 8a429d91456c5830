package events

// Lease is a fact about a lease: the right of one process to act alone.
//
//sumtype:decl
type Lease interface{ isLease() }

// LeaseTaken says who holds the lease from now on. Its own sequence is the fence.
type LeaseTaken struct {
	Name   string `json:"name"`
	Holder string `json:"holder"`
	// TTL is how long the lease holds without renewal, as a Go duration.
	TTL string `json:"ttl"`
}

// LeaseReleased says that the holder gave the lease back.
type LeaseReleased struct {
	Reason string `json:"reason,omitempty"`
}

func (LeaseTaken) isLease()    {}
func (LeaseReleased) isLease() {}
