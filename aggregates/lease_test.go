package aggregates_test

import (
	"testing"
	"time"

	"catenary/aggregates"
	"catenary/commands"
	"catenary/es"
	"catenary/events"
)

func take(holder string) commands.TakeLease {
	return commands.TakeLease{Name: "engine", Holder: holder, TTL: "10s"}
}

func renew(holder string) commands.RenewLease {
	return commands.RenewLease{Name: "engine", Holder: holder}
}

func release(holder string) commands.ReleaseLease {
	return commands.ReleaseLease{Name: "engine", Holder: holder}
}

func taken(holder string) es.KeyedEvent {
	return on(commands.LeaseRef("engine"), events.LeaseTaken{Name: "engine", Holder: holder, TTL: "10s"})
}

// after gives a moment of these stories.
func after(seconds float64) time.Time {
	return day.Add(time.Duration(seconds * float64(time.Second)))
}

func fenced(t *testing.T, w *aggregates.World, fence uint64, want bool) {
	t.Helper()
	if got := w.Fenced(fence); got != want {
		t.Errorf("fence %d is fenced: %v, want %v", fence, got, want)
	}
}

func TestLease(t *testing.T) {
	t.Parallel()
	t.Run("is held until it runs out", func(t *testing.T) {
		t.Parallel()
		s := given(t).when(take("e1")).then(taken("e1"))
		fenced(t, s.world, 1, false)
		s.at(after(9.999)).when(take("e2")).rejected("held", "held by e1", "2026-05-01T12:00:10Z")
		s.at(after(10)).when(take("e2")).then(taken("e2"))
		fenced(t, s.world, 1, true)
		fenced(t, s.world, 2, false)
		s.at(after(11)).
			when(renew("e1")).refused(es.StatusFenced, "fenced", "not held by e1 but by e2").
			when(release("e1")).refused(es.StatusFenced, "fenced")
	})
	t.Run("is taken anew once it ran out, or for another time", func(t *testing.T) {
		t.Parallel()
		longer := commands.TakeLease{Name: "engine", Holder: "e1", TTL: "20s"}
		s := given(t).
			when(take("e1")).then(taken("e1")).
			when(longer).then(on(commands.LeaseRef("engine"), events.LeaseTaken{Name: "engine", Holder: "e1", TTL: "20s"})).
			at(after(20)).when(longer).accepted()
		fenced(t, s.world, 1, true)
		fenced(t, s.world, 2, true)
		fenced(t, s.world, 3, false)
	})
	t.Run("is released", func(t *testing.T) {
		t.Parallel()
		s := given(t).
			when(release("e1")).rejected("unknown-lease").
			when(renew("e1")).refused(es.StatusFenced, "fenced").
			when(take("e1")).then(taken("e1")).
			when(release("e1")).then(on(commands.LeaseRef("engine"), events.LeaseReleased{})).
			again().unchanged().
			when(release("e2")).refused(es.StatusFenced, "fenced").
			when(renew("e1")).refused(es.StatusFenced, "fenced")
		fenced(t, s.world, 1, true)
		s.when(take("e2")).then(taken("e2"))
	})
	t.Run("is not held for as long as a clock was ahead", func(t *testing.T) {
		t.Parallel()
		s := given(t).at(after(200)).when(take("e1")).then(taken("e1"))
		s.at(after(1)).when(take("e2")).accepted()
		fenced(t, s.world, 1, true)
		s.at(after(0)).when(take("e3")).rejected("held", "held by e2")
		start := commands.StartWriter{WriterStarted: events.WriterStarted{ID: "w2", Program: "1", Rules: 1}}
		s.at(after(300)).when(start).accepted().
			at(after(12)).when(take("e3")).accepted()
	})
	t.Run("counts as renewed when a writer starts", func(t *testing.T) {
		t.Parallel()
		start := commands.StartWriter{WriterStarted: events.WriterStarted{ID: "w2", Program: "1", Rules: 1}}
		given(t).
			when(take("e1")).accepted().
			at(after(60)).when(start).accepted().
			at(after(69)).when(take("e2")).rejected("held", "12:01:10Z").
			at(after(70)).when(take("e2")).then(taken("e2"))
	})
}

// A world that reads the events again knows nothing of renewals, so the stories of them are told on one world alone.
func TestLeaseIsRenewedWithoutAnEvent(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	steps := []struct {
		name    string
		payload es.Payload
		at      float64
		want    es.Status
	}{
		{"taken", take("e1"), 0, es.StatusAccepted},
		{"renewed", renew("e1"), 8, es.StatusUnchanged},
		{"still held", take("e2"), 17, es.StatusRejected},
		{"taken by its holder: renewed, with the same fence", take("e1"), 17, es.StatusUnchanged},
		{"still held then", take("e2"), 26.9, es.StatusRejected},
		{"renewed by a clock that is behind", renew("e1"), 5, es.StatusUnchanged},
		{"which does not shorten it", take("e2"), 26.9, es.StatusRejected},
		{"renewed after it ran out, since nobody took it", renew("e1"), 60, es.StatusUnchanged},
		{"and held again", take("e2"), 61, es.StatusRejected},
		{"another's renewal", renew("e2"), 61, es.StatusFenced},
		{"does nothing", take("e2"), 70, es.StatusAccepted},
	}
	for i, s := range steps {
		if got := l.status(s.payload, after(s.at)); got != s.want {
			t.Fatalf("%s: %s, want %s", s.name, got, s.want)
		}
		fenced(t, l.world, 1, i == len(steps)-1)
	}
}

func TestARenewalIsUndoneWithTheRest(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	l.status(take("e1"), after(0))
	mark := l.world.Mark()
	l.status(renew("e1"), after(60))
	l.world.Rollback(mark)
	if got := l.status(take("e2"), after(60)); got != es.StatusAccepted {
		t.Errorf("%s: a renewal that was undone holds the lease", got)
	}
}

func TestWriterAlwaysRecordsItsStart(t *testing.T) {
	t.Parallel()
	started := events.WriterStarted{ID: "w1", Program: "1.0", Rules: 1}
	start := commands.StartWriter{WriterStarted: started}
	given(t).
		when(start).then(on(start.Ref(), started)).
		again().then(on(start.Ref(), started)).
		// A new writer's clock may be behind the old one's.
		at(day.Add(-time.Hour)).when(start).then(on(start.Ref(), started))
}
