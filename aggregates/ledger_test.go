package aggregates_test

import (
	"testing"
	"time"

	"github.com/cockroachdb/errors"

	"catenary/aggregates"
	"catenary/es"
)

// ledger sends commands to a world and applies what they lead to, with no more checks than a writer has: for worlds too large
// to tell a whole story of.
type ledger struct {
	t        testing.TB
	world    *aggregates.World
	sequence uint64
}

func newLedger(t testing.TB) *ledger {
	t.Helper()
	w, err := aggregates.NewWorld(aggregates.Config{})
	if err != nil {
		t.Fatal(err)
	}
	return &ledger{t: t, world: w}
}

// apply lets facts happen.
func (l *ledger) apply(at time.Time, facts ...es.KeyedEvent) {
	l.t.Helper()
	for _, f := range facts {
		l.sequence++
		e := es.Event{Sequence: l.sequence, Ref: f.Ref, Version: l.world.Version(f.Ref) + 1, Recorded: at, Effective: at, Backfill: f.Backfill, Data: f.Data}
		if err := l.world.Apply(e); err != nil {
			l.t.Fatal(err)
		}
	}
}

// do sends a command and lets happen what it leads to.
func (l *ledger) do(p es.Payload, at time.Time) ([]es.KeyedEvent, error) {
	l.t.Helper()
	c := es.Command{Ref: p.Ref(), Verb: p.Verb(), Data: p, Received: at}
	facts, err := l.world.Decide(c)
	switch {
	case err != nil:
		return nil, err
	case len(facts) == 0:
		l.world.Note(c)
	}
	l.apply(at, facts...)
	return facts, nil
}

// status sends a command and gives how it is answered.
func (l *ledger) status(p es.Payload, at time.Time) es.Status {
	l.t.Helper()
	facts, err := l.do(p, at)
	var r *es.Refusal
	switch {
	case errors.As(err, &r):
		return r.Status
	case err != nil:
		l.t.Fatal(err)
	case len(facts) == 0:
		return es.StatusUnchanged
	}
	return es.StatusAccepted
}
