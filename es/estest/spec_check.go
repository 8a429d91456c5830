package estest

import (
	"github.com/cockroachdb/errors"
	"github.com/google/go-cmp/cmp"

	"catenary/es"
)

// checkDecider checks what every decider owes, whatever it decides.
func (s *Scenario) checkDecider(d *Decision) {
	s.t.Helper()
	s.wantSame(d, "asked again", ask(s.decider, d.command), d.outcome)
	s.checkReplay(d)
	s.checkRollback(d)
	for ref, version := range s.tail.versions {
		if got := s.decider.Version(ref); got != version {
			s.t.Fatalf("%s: the decider counts %d events of %s, there are %d", d, got, ref, version)
		}
	}
}

// checkReplay decides on a new decider that has read the same events. On the way it undoes each event once and does it
// again: nothing of it may be left in between.
func (s *Scenario) checkReplay(d *Decision) {
	s.t.Helper()
	fresh := s.fresh()
	for _, e := range s.recorded {
		before := ask(fresh, d.command)
		mark := fresh.Mark()
		apply(s.t, fresh, e)
		fresh.Rollback(mark)
		s.wantSame(d, "after "+e.Type+" was rolled back", ask(fresh, d.command), before)
		apply(s.t, fresh, e)
		fresh.Release(fresh.Mark())
	}
	s.wantSame(d, "on a new decider", ask(fresh, d.command), d.outcome)
}

// checkRollback applies what was decided, decides on top of it, and undoes both, at once and event by event.
func (s *Scenario) checkRollback(d *Decision) {
	s.t.Helper()
	at := s.tail.fork()
	events := s.stamp(&at, d.command, d.events)
	all := s.decider.Mark()
	var marks []es.Mark
	for _, e := range events {
		marks = append(marks, s.decider.Mark())
		apply(s.t, s.decider, e)
	}
	on := ask(s.decider, d.command)
	for i := len(marks) - 1; i >= 0; i-- {
		s.decider.Rollback(marks[i])
	}
	s.wantSame(d, "after its events were rolled back one by one", ask(s.decider, d.command), d.outcome)
	for _, e := range events {
		apply(s.t, s.decider, e)
	}
	s.wantSame(d, "on its own events, applied a second time", ask(s.decider, d.command), on)
	s.decider.Rollback(all)
	s.wantSame(d, "after its events were rolled back at once", ask(s.decider, d.command), d.outcome)
}

func (s *Scenario) wantSame(d *Decision, when string, got, want outcome) {
	s.t.Helper()
	if diff := cmp.Diff(want.events, got.events); diff != "" {
		s.t.Fatalf("%s, %s: other events (-first +now):\n%s", d, when, diff)
	}
	var a, b *es.Refusal
	if errors.As(want.err, &a) && errors.As(got.err, &b) {
		if diff := cmp.Diff(a, b); diff != "" {
			s.t.Fatalf("%s, %s: another refusal (-first +now):\n%s", d, when, diff)
		}
		return
	}
	if (want.err == nil) != (got.err == nil) || want.err != nil && want.err.Error() != got.err.Error() {
		s.t.Fatalf("%s, %s: first %v, now %v", d, when, want.err, got.err)
	}
}
