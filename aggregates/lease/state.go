package lease

import (
	"time"

	"github.com/cockroachdb/errors"

	"catenary/events"
)

// Status is how a lease stands.
type Status uint8

// The statuses of a lease.
const (
	Unknown Status = iota
	Held
	Released
)

// State is what rules need of a lease.
type State struct {
	Status Status
	// Holder holds the lease, or released it last.
	Holder string
	TTL    time.Duration
	// Fence is the sequence of the event that took it.
	Fence uint64
	// Renewed is when it was taken or last renewed, in nanoseconds since 1970.
	Renewed int64
}

// RunsOut gives when the lease ends unless it is renewed. started is when the present writer began.
//
// A moment that lies further ahead of now than the lease lasts was told by a clock that was wrong, or now is. It counts for nothing: a holder that
// has died would keep the lease for as long as that clock was ahead. One that lives is fenced and takes the lease again.
func (s State) RunsOut(started int64, now time.Time) time.Time {
	latest := int64(0)
	for _, at := range []int64{s.Renewed, started} {
		if time.Unix(0, at).Sub(now) <= s.TTL {
			latest = max(latest, at)
		}
	}
	return time.Unix(0, latest).UTC().Add(s.TTL)
}

// Renew gives the state after a command that keeps the lease. Renewals never shorten it.
func (s State) Renew(holder string, at time.Time) State {
	if s.Status == Held && s.Holder == holder {
		s.Renewed = max(s.Renewed, at.UnixNano())
	}
	return s
}

// Evolve gives the state after a fact with its sequence and recorded time. It gives an error for a TTL that can't be read.
func Evolve(s State, fact events.Lease, sequence uint64, recorded time.Time) (State, error) {
	switch e := fact.(type) {
	case events.LeaseTaken:
		ttl, err := time.ParseDuration(e.TTL)
		if err != nil {
			return s, errors.Wrapf(err, "lease %s", e.Name)
		}
		return State{Status: Held, Holder: e.Holder, TTL: ttl, Fence: sequence, Renewed: recorded.UnixNano()}, nil
	case events.LeaseReleased:
		return State{Status: Released, Holder: s.Holder}, nil
	}
	return s, nil
}
