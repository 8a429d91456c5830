package hammer_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/errors"
	"github.com/google/go-cmp/cmp"

	"catenary/commands"
	"catenary/es"
	"catenary/es/dispatch"
	"catenary/internal/hammer"
)

// desk answers when it has as many commands as it waits for, so that a test sees how many are in flight at most.
type desk struct {
	waitFor int
	answer  func(n int) (es.Answer, error)

	mu      sync.Mutex
	n       int
	pending []func()
	most    int
}

func (d *desk) Send(_ es.Payload, done func(es.Answer, error)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.n++
	a, err := d.answer(d.n)
	d.pending = append(d.pending, func() { done(a, err) })
	d.most = max(d.most, len(d.pending))
	if len(d.pending) == d.waitFor {
		for _, answer := range d.pending {
			go answer()
		}
		d.pending = nil
	}
}

func accepted(int) (es.Answer, error) { return es.Answer{Status: es.StatusAccepted}, nil }

// TestPacedLoad sends at even distances, however fast the answers are.
func TestPacedLoad(t *testing.T) {
	t.Parallel()
	d := &desk{waitFor: 1, answer: accepted}
	r, err := hammer.Run(t.Context(), d, hammer.Load{Callers: 2, InFlight: 8, Commands: 21, Rate: 200, Next: hammer.NewFleet("f", 1, 1).Next})
	if err != nil || r.Accepted() != 21 || r.Took < 100*time.Millisecond {
		t.Errorf("result %+v, %v: the 21st command is due after 100 ms", r, err)
	}
	r, err = hammer.Run(t.Context(), d, hammer.Load{For: 20 * time.Millisecond, Rate: 0.001, Next: hammer.NewFleet("f", 1, 1).Next})
	if err != nil || r.Accepted() != 1 {
		t.Errorf("result %+v, %v: the second command is due long after the end", r, err)
	}
}

func TestCallersWaitForTheirAnswers(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ callers, inFlight, atOnce int }{{0, 0, 1}, {8, 0, 8}, {1, 16, 16}, {4, 4, 16}} {
		d := &desk{waitFor: c.atOnce, answer: accepted}
		r, err := hammer.Run(t.Context(), d, hammer.Load{Callers: c.callers, InFlight: c.inFlight, Commands: 10 * c.atOnce, Next: hammer.NewFleet("f", 1, 1).Next})
		if err != nil {
			t.Fatal(err)
		}
		// The desk would wait for ever for one more than the load has in flight.
		if d.most != c.atOnce || r.Accepted() != 10*c.atOnce || r.Waited.Count() != uint64(10*c.atOnce) || r.Err() != nil {
			t.Errorf("%+v: %d at once, result %+v", c, d.most, r)
		}
		if r.Rate() <= 0 {
			t.Errorf("%+v: the rate is %v", c, r.Rate())
		}
	}
}

func TestLoadEndsWithItsTime(t *testing.T) {
	t.Parallel()
	d := &desk{waitFor: 1, answer: accepted}
	r, err := hammer.Run(t.Context(), d, hammer.Load{For: 300 * time.Millisecond, Next: hammer.NewFleet("f", 1, 1).Next})
	if err != nil || r.Accepted() == 0 || r.Accepted() != d.n {
		t.Errorf("%d of %d accepted (%v)", r.Accepted(), d.n, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if r, err = hammer.Run(ctx, d, hammer.Load{For: time.Hour, Next: hammer.NewFleet("f", 1, 1).Next}); err != nil || len(r.Answers) != 0 {
		t.Errorf("after its context the load went on: %+v (%v)", r, err)
	}
}

func TestAnswersAreToldApart(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	d := &desk{waitFor: 1, answer: func(n int) (es.Answer, error) {
		switch n % 4 {
		case 0:
			return es.Answer{}, broken
		case 1:
			return es.Answer{Status: es.StatusBusy, Error: &es.AnswerError{Code: "queue-full", Message: "too many"}}, nil
		}
		return accepted(n)
	}}
	r, err := hammer.Run(t.Context(), d, hammer.Load{Commands: 100, Next: hammer.NewFleet("f", 1, 1).Next})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[es.Status]int{es.StatusAccepted: 50, es.StatusBusy: 25}, r.Answers); diff != "" || r.Failed != 25 {
		t.Errorf("%d failed; answers (-want +got):\n%s", r.Failed, diff)
	}
	if err := r.Err(); !errors.Is(err, broken) {
		t.Errorf("error %v, want %v", err, broken)
	}
	r.Failed = 0
	if err := r.Err(); err == nil || !strings.Contains(err.Error(), "queue-full") {
		t.Errorf("error %v, want the writer's reason", err)
	}
}

func TestLoadWithoutBounds(t *testing.T) {
	t.Parallel()
	for _, l := range []hammer.Load{{Next: hammer.NewFleet("f", 1, 1).Next}, {Commands: 1}} {
		if _, err := hammer.Run(t.Context(), &desk{}, l); err == nil {
			t.Errorf("%+v was run", l)
		}
	}
}

// Both senders hand over what the fleet gave, with an id of its own.
func TestSenders(t *testing.T) {
	t.Parallel()
	p := hammer.NewFleet("f", 1, 1).Next()
	id := func() string { return "id" }
	var command es.Command
	hammer.InProcess{Submit: func(c es.Command, answer func(es.Answer)) { command = c; answer(es.Answer{}) }, Decoder: commands.Commands(), NewID: id, Actor: "a"}.
		Send(p, func(es.Answer, error) {})
	digest, err := commands.Commands().Digest(p)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(es.Command{ID: "id", Ref: p.Ref(), Verb: p.Verb(), Data: p, Digest: digest, Actor: "a"}, command); diff != "" {
		t.Errorf("command (-want +got):\n%s", diff)
	}
	var request dispatch.Request
	hammer.OverBus{Post: func(r dispatch.Request, done func(es.Answer, error)) { request = r; done(es.Answer{}, nil) }, NewID: id}.
		Send(p, func(es.Answer, error) {})
	read, err := commands.Commands().Decode(request.Aggregate, request.Verb, request.ContentType, request.Body)
	if err != nil || request.ID != "id" {
		t.Fatalf("id %q (%v)", request.ID, err)
	}
	if diff := cmp.Diff(p, read); diff != "" {
		t.Errorf("payload (-want +got):\n%s", diff)
	}
}
