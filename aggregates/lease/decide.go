package lease

import (
	"fmt"
	"time"

	"catenary/aggregates/decision"
	"catenary/commands"
	"catenary/es"
	"catenary/events"
)

// Codes of the refusals of leases.
const (
	CodeHeld    = "held"
	CodeUnknown = "unknown-lease"
	CodeFenced  = "fenced"
)

// World is what deciding about a lease needs of everything else.
type World interface {
	// WriterStarted is when the present writer began, in nanoseconds since 1970.
	WriterStarted() int64
}

// Decide gives what a command about a lease leads to. It gives errors of type *[es.Refusal].
func Decide(w World, s State, c es.Command) ([]es.KeyedEvent, error) {
	switch p := c.Data.(type) {
	case commands.TakeLease:
		return take(w, s, c, p)
	case commands.RenewLease:
		return nil, holds(s, p.Name, p.Holder)
	case commands.ReleaseLease:
		return release(s, c, p)
	}
	return nil, decision.Unknown(c)
}

// take grants a lease that nobody holds. Taken again by its holder, with the same TTL and in time, it is only renewed: its
// fence stays.
func take(w World, s State, c es.Command, p commands.TakeLease) ([]es.KeyedEvent, error) {
	runsOut := s.RunsOut(w.WriterStarted(), c.Received)
	if s.Status == Held && c.Received.Before(runsOut) {
		if s.Holder != p.Holder {
			return nil, es.Refuse(CodeHeld, fmt.Sprintf("lease %s is held by %s until %s unless renewed", p.Name, s.Holder, runsOut.Format(time.RFC3339Nano)),
				"try again then")
		}
		if ttl, err := time.ParseDuration(p.TTL); err == nil && ttl == s.TTL {
			return nil, nil
		}
	}
	return decision.Record(c.Ref, events.LeaseTaken{Name: p.Name, Holder: p.Holder, TTL: p.TTL}), nil
}

func release(s State, c es.Command, p commands.ReleaseLease) ([]es.KeyedEvent, error) {
	switch {
	case s.Status == Unknown:
		return nil, es.Refuse(CodeUnknown, fmt.Sprintf("lease %s was never taken", p.Name), "")
	case s.Status == Released && s.Holder == p.Holder:
		return nil, nil
	}
	if err := holds(s, p.Name, p.Holder); err != nil {
		return nil, err
	}
	return decision.Record(c.Ref, events.LeaseReleased{Reason: p.Reason}), nil
}

// holds refuses whoever does not hold the lease. One that ran out is still held until another takes it.
func holds(s State, name, holder string) error {
	if s.Status == Held && s.Holder == holder {
		return nil
	}
	message := fmt.Sprintf("lease %s is not held by %s", name, holder)
	if s.Status == Held {
		message += " but by " + s.Holder
	}
	return &es.Refusal{Status: es.StatusFenced, Code: CodeFenced, Message: message, Hint: "stop acting; take the lease again"}
}
