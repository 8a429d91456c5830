package dispatch_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/cockroachdb/errors"
	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"

	"catenary/es"
	"catenary/es/dispatch"
	"catenary/es/estest"
)

type result struct {
	answer es.Answer
	err    error
}

func pipeline(t *testing.T, nc *nats.Conn, timeout time.Duration) *dispatch.Pipeline {
	t.Helper()
	p, err := dispatch.NewPipeline(nc, timeout)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

// await gives the next outcome, or fails the test when there is none.
func await(t *testing.T, results <-chan result) result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	select {
	case r := <-results:
		return r
	case <-ctx.Done():
		t.Fatal("nothing came of a command")
		return result{}
	}
}

// TestPipelineKeepsOrder: each command expects the version the one before leads to, and none waits for an answer.
func TestPipelineKeepsOrder(t *testing.T) {
	const count = 500
	c := serve(t)
	p := pipeline(t, c.conn, 0)
	results := make(chan result, count)
	for i := range count {
		p.Post(dispatch.Request{
			Aggregate: "account", Verb: "pay", Body: fmt.Appendf(nil, `{"account":"shop","amount":%d}`, i+1), Options: dispatch.Options{ID: newID(), Expected: at(uint64(i))},
		}, func(a es.Answer, err error) { results <- result{a, err} })
	}
	versions := map[uint64]bool{}
	for range count {
		r := await(t, results)
		if r.err != nil || r.answer.Status != es.StatusAccepted {
			t.Fatalf("%+v, %v", r.answer, r.err)
		}
		versions[r.answer.Version] = true
	}
	if len(versions) != count {
		t.Errorf("%d versions for %d commands", len(versions), count)
	}
	for i, e := range history(t, c.bench.store)[1:] {
		if diff := cmp.Diff(moved{Amount: i + 1}, e.Data); diff != "" {
			t.Fatalf("event %d (-want +got):\n%s", e.Sequence, diff)
		}
	}
}

func TestPipelineSaysWhyNoAnswerCame(t *testing.T) {
	bus := estest.Server(t, false)
	nc := bus.Connect(t)
	results := make(chan result, 3)
	post := func(p *dispatch.Pipeline, body []byte) {
		p.Post(dispatch.Request{Aggregate: "account", Verb: "pay", Body: body, Options: dispatch.Options{ID: newID()}},
			func(a es.Answer, err error) { results <- result{a, err} })
	}
	p := pipeline(t, nc, 0)
	post(p, []byte(`{}`))
	if r := await(t, results); !errors.Is(r.err, dispatch.ErrNoWriter) {
		t.Errorf("without a writer: %v", r.err)
	}
	post(p, make([]byte, 5<<20))
	if r := await(t, results); !errors.Is(r.err, dispatch.ErrTooLarge) {
		t.Errorf("with 5 MiB: %v", r.err)
	}

	silent := bus.Connect(t)
	if _, err := silent.Subscribe(dispatch.CommandPrefix+".>", func(*nats.Msg) {}); err != nil {
		t.Fatal(err)
	}
	if err := silent.Flush(); err != nil {
		t.Fatal(err)
	}
	hasty := pipeline(t, nc, 30*time.Millisecond)
	for range 2 { // the clock starts anew for what comes after all had timed out
		post(hasty, []byte(`{}`))
		post(hasty, []byte(`{}`))
		for range 2 {
			if r := await(t, results); !errors.Is(r.err, dispatch.ErrTimeout) {
				t.Errorf("without an answer: %v", r.err)
			}
		}
	}

	post(p, []byte(`{}`))
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	if r := await(t, results); !errors.Is(r.err, dispatch.ErrTimeout) {
		t.Errorf("closed with a command on its way: %v", r.err)
	}
	post(p, []byte(`{}`))
	if r := await(t, results); !errors.Is(r.err, es.ErrUnavailable) {
		t.Errorf("after closing: %v", r.err)
	}
}
