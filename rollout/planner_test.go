package rollout

import (
	"context"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/errors"
	"github.com/google/go-cmp/cmp"

	"catenary/chain"
	"catenary/commands"
	"catenary/es"
	"catenary/es/dispatch"
	"catenary/events"
	"catenary/rollout/walk"
)

// desk is a writer that answers when the test says so.
type desk struct {
	// asked names the rollouts that it was asked to abort, in order; at says when.
	asked []string
	at    []time.Time
	// waiting is how many wait for their answer, most how many ever have at once.
	waiting, most int
	answers       chan es.Answer
}

func (d *desk) Send(ctx context.Context, r dispatch.Request) (es.Answer, error) {
	var abort commands.AbortRollout
	if err := (es.Msgpack{}).Unmarshal(r.Body, &abort); err != nil {
		return es.Answer{}, err
	}
	d.asked, d.at = append(d.asked, abort.ID), append(d.at, time.Now())
	d.waiting++
	d.most = max(d.most, d.waiting)
	defer func() { d.waiting-- }()
	select {
	case a := <-d.answers:
		return a, nil
	case <-ctx.Done():
		return es.Answer{}, ctx.Err()
	}
}

var (
	fine    = es.Answer{Status: es.StatusAccepted}
	refused = es.Answer{Status: es.StatusRejected, Error: &es.AnswerError{Code: "broken", Message: "it does not work"}}
)

// planning runs a planner in a bubble of time, until the test is over.
func planning(t *testing.T, test func(*testing.T, *planner, *desk)) {
	synctest.Test(t, func(t *testing.T) {
		d := &desk{answers: make(chan es.Answer)}
		p := newPlanner(Config{Bus: d, Logger: slog.New(slog.DiscardHandler), Now: time.Now}, commands.NewClient(d), 1)
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			p.run(ctx)
			close(ended)
		}()
		test(t, p, d)
		stop()
		<-ended
	})
}

// abandoned tells of plans that nobody writes down to their end.
func abandoned(position uint64, ids ...string) summary {
	s := summary{position: position}
	for _, id := range ids {
		s.half = append(s.half, walk.HalfPlan{Rollout: id, Version: 1})
	}
	return s
}

// TestThePlannerNeverRunsAgainstItself tells a planner of more while it is at something: that waits, and becomes one.
func TestThePlannerNeverRunsAgainstItself(t *testing.T) {
	t.Parallel()
	planning(t, func(t *testing.T, p *planner, d *desk) {
		p.tell(abandoned(1, "a"))
		synctest.Wait()
		for position := range uint64(100) {
			p.tell(abandoned(2+position, "b"))
		}
		p.tell(abandoned(200, "b", "c"))
		p.tell(abandoned(150, "of before")) // one that comes late says nothing new
		synctest.Wait()
		if !slices.Equal(d.asked, []string{"a"}) {
			t.Errorf("while it is at a, it asks for %v", d.asked)
		}
		for range 3 {
			d.answers <- fine
			synctest.Wait()
		}
		if !slices.Equal(d.asked, []string{"a", "b", "c"}) || d.waiting != 0 || d.most != 1 {
			t.Errorf("it asks for %v, %d at once; %d wait yet", d.asked, d.most, d.waiting)
		}
	})
}

// TestThePlannerTriesAgain refuses a planner what it asks for: it asks again after one to fifteen seconds, and for what has come meanwhile too.
func TestThePlannerTriesAgain(t *testing.T) {
	t.Parallel()
	planning(t, func(t *testing.T, p *planner, d *desk) {
		const tries = 12
		p.tell(abandoned(1, "a"))
		for range tries {
			d.answers <- refused
		}
		p.tell(abandoned(2, "a", "b"))
		d.answers <- fine
		d.answers <- fine
		synctest.Wait()
		want := append(slices.Repeat([]string{"a"}, tries+1), "b")
		if diff := cmp.Diff(want, d.asked); diff != "" {
			t.Fatalf("asked (-want +got):\n%s", diff)
		}
		for i := range tries {
			if wait := d.at[i+1].Sub(d.at[i]); wait < firstPlanRetry || wait > lastPlanRetry {
				t.Errorf("try %d comes after %v, want %v to %v", i+2, wait, firstPlanRetry, lastPlanRetry)
			}
		}
		if wait := d.at[tries].Sub(d.at[tries-1]); wait < lastPlanRetry/2 {
			t.Errorf("after %d tries it comes again after %v", tries, wait)
		}
		// When it has gone well, the first wait is short again.
		p.tell(abandoned(3, "c"))
		d.answers <- refused
		d.answers <- fine
		synctest.Wait()
		if last := len(d.at) - 1; d.at[last].Sub(d.at[last-1]) > 2*firstPlanRetry {
			t.Errorf("after a success it comes again after %v", d.at[last].Sub(d.at[last-1]))
		}
	})
}

// TestSummariesMerge demands that nothing of two summaries is lost, and that the newer one says which plans are half.
func TestSummariesMerge(t *testing.T) {
	t.Parallel()
	older := summary{position: 3, tracks: true, takeBack: []string{"a", "b"}, half: []walk.HalfPlan{{Rollout: "x", Version: 1}}}
	newer := summary{position: 5, takeBack: []string{"b", "c"}, half: []walk.HalfPlan{{Rollout: "y", Version: 2}}}
	for _, both := range []summary{older.merged(newer), newer.merged(older)} {
		slices.Sort(both.takeBack)
		if both.position != 5 || !both.tracks || !slices.Equal(both.takeBack, []string{"a", "b", "c"}) || !slices.Equal(both.half, newer.half) {
			t.Errorf("merged they are %+v", both)
		}
	}
	if !(summary{position: 7}).none() || older.none() {
		t.Error("what there is to do is taken for nothing, or nothing for something")
	}
}

// TestInputsOfAMillisecondAreOneBatch gives the loop inputs at once and a while apart: those of a millisecond are looked at together.
func TestInputsOfAMillisecondAreOneBatch(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e, err := New(Config{Stream: &ledger{}, Registry: events.Registry(), Bus: &desk{}})
		if err != nil {
			t.Fatal(err)
		}
		const many, later = 50, 2 * batchSpan
		for range many {
			e.presence <- Presence{Node: "n1"}
		}
		began := time.Now()
		time.AfterFunc(batchSpan/2, func() { e.outcomes <- outcome{fence: 1} }) // of another lease
		time.AfterFunc(later, func() { e.presence <- Presence{Node: "n2"} })
		if more, err := e.batch(t.Context(), nil); err != nil || !more {
			t.Fatal(more, err)
		}
		if took := time.Since(began); len(e.presence) != 0 || len(e.outcomes) != 0 || took != batchSpan {
			t.Errorf("after %v there are %d and %d left of a batch", took, len(e.presence), len(e.outcomes))
		}
		if more, err := e.batch(t.Context(), nil); err != nil || !more || time.Since(began) != later+batchSpan {
			t.Errorf("the next one ends after %v: %v, %v", time.Since(began), more, err)
		}
		// A long backlog is no reason to do nothing.
		go func() {
			for range maxBatch + many {
				e.presence <- Presence{Node: "n1"}
			}
		}()
		if more, err := e.batch(t.Context(), nil); err != nil || !more {
			t.Fatal(more, err)
		}
		synctest.Wait()
		if left := len(e.presence); left < many-1 || left > many {
			t.Errorf("%d are left of %d more than a batch holds", left, many)
		}
		for len(e.presence) > 0 {
			<-e.presence
		}
	})
}

// TestOneFailureHoldsNoOther serves two ways back of which the first can't be planned: the second does not wait for it.
func TestOneFailureHoldsNoOther(t *testing.T) {
	t.Parallel()
	broken := errors.New("the bucket is broken")
	reader := chain.NewReader(chain.Config{
		Open:      func(context.Context, string) (chain.Bucket, error) { return nil, broken },
		Positions: func(context.Context, uint64) ([]chain.Position, error) { return nil, nil },
	})
	p := &planner{cfg: Config{Reader: reader, Now: time.Now}, log: slog.New(slog.DiscardHandler), settled: map[string]bool{"second": true}}
	left, err := p.serve(t.Context(), summary{takeBack: []string{"first", "second"}})
	if !errors.Is(err, broken) || !slices.Equal(left.takeBack, []string{"first"}) {
		t.Errorf("left are %q, with error %v", left.takeBack, err)
	}
}
