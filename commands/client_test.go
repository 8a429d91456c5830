package commands_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/errors"
	"go.uber.org/goleak"

	"catenary/commands"
	"catenary/es"
	"catenary/es/dispatch"
)

// scripted is a bus that answers as it is told.
type scripted struct {
	mu      sync.Mutex
	answer  func(n int, r dispatch.Request) (es.Answer, error)
	got     []dispatch.Request
	now     int
	highest int
	inside  map[string]int // how many of an instance's are on their way
	overlap bool
}

func (b *scripted) Send(ctx context.Context, r dispatch.Request) (es.Answer, error) {
	p, err := commands.Commands().Decode(r.Aggregate, r.Verb, r.ContentType, r.Body)
	if err != nil {
		return es.Answer{}, err
	}
	b.mu.Lock()
	b.got = append(b.got, r)
	n := len(b.got)
	b.now++
	b.highest = max(b.highest, b.now)
	if b.inside == nil {
		b.inside = map[string]int{}
	}
	b.inside[p.Ref().Key]++
	b.overlap = b.overlap || b.inside[p.Ref().Key] > 1
	b.mu.Unlock()
	defer func() {
		b.mu.Lock()
		b.now--
		b.inside[p.Ref().Key]--
		b.mu.Unlock()
	}()
	return b.answer(n, r)
}

func accept(_ int, r dispatch.Request) (es.Answer, error) {
	return es.Answer{Status: es.StatusAccepted, Command: r.ID}, nil
}

func TestSendAgainUntilAnswered(t *testing.T) {
	t.Parallel()
	trouble := []func() (es.Answer, error){
		func() (es.Answer, error) { return es.Answer{}, errors.Mark(errors.New("x"), dispatch.ErrTimeout) },
		func() (es.Answer, error) { return es.Answer{}, errors.Mark(errors.New("x"), dispatch.ErrNoWriter) },
		func() (es.Answer, error) { return es.Answer{Status: es.StatusBusy}, nil },
		func() (es.Answer, error) { return es.Answer{Status: es.StatusUnknown}, nil },
	}
	bus := &scripted{answer: func(n int, r dispatch.Request) (es.Answer, error) {
		if n <= len(trouble) {
			return trouble[n-1]()
		}
		return accept(n, r)
	}}
	client := commands.NewClient(bus)
	if _, err := client.Send(t.Context(), commands.RegisterNode{Node: "n1"}, dispatch.Options{}); !errors.Is(err, dispatch.ErrTimeout) {
		t.Errorf("sent once: %v", err)
	}
	a, err := client.Within(time.Minute).Send(t.Context(), commands.RegisterNode{Node: "n1"}, dispatch.Options{})
	if err != nil || a.Status != es.StatusAccepted {
		t.Errorf("%+v, %v", a, err)
	}
	for _, r := range bus.got[1:] {
		if r.ID == "" || r.ID != bus.got[1].ID || r.ID == bus.got[0].ID {
			t.Errorf("tries have the ids %s and %s", bus.got[1].ID, r.ID)
		}
	}
	bus.answer = func(int, dispatch.Request) (es.Answer, error) { return es.Answer{Status: es.StatusBusy}, nil }
	if a, err := client.Within(50*time.Millisecond).Send(t.Context(), commands.RegisterNode{Node: "n1"}, dispatch.Options{}); err != nil || a.Status != es.StatusBusy {
		t.Errorf("busy to the end: %+v, %v", a, err)
	}
	bus.answer = func(int, dispatch.Request) (es.Answer, error) { return es.Answer{}, dispatch.ErrDenied }
	if _, err := client.Within(time.Minute).Send(t.Context(), commands.RegisterNode{Node: "n1"}, dispatch.Options{}); !errors.Is(err, dispatch.ErrDenied) {
		t.Errorf("denied: %v", err)
	}
	var refused *es.Refusal
	if _, err := client.Send(t.Context(), commands.RegisterNode{}, dispatch.Options{}); !errors.As(err, &refused) {
		t.Errorf("malformed: %v", err)
	}
}

func sendings(nodes, each int) func(func(commands.Sending) bool) {
	return func(yield func(commands.Sending) bool) {
		for i := range each {
			for n := range nodes {
				p := commands.RelabelNode{Node: fmt.Sprint("n", n), Labels: map[string]string{"i": fmt.Sprint(i)}}
				if !yield(commands.Sending{Payload: p}) {
					return
				}
			}
		}
	}
}

// Whatever has to be tried again, the commands of one instance keep their order, and never more are on their way than allowed.
func TestSendManyKeepsOrder(t *testing.T) {
	t.Parallel()
	const nodes, each, bound = 7, 40, 16
	var mu sync.Mutex
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 1))
	done := map[string][]string{}
	bus := &scripted{answer: func(_ int, r dispatch.Request) (es.Answer, error) {
		p, err := commands.Commands().Decode(r.Aggregate, r.Verb, r.ContentType, r.Body)
		if err != nil {
			return es.Answer{}, err
		}
		mu.Lock()
		defer mu.Unlock()
		switch rng.IntN(20) {
		case 0:
			return es.Answer{Status: es.StatusBusy}, nil
		case 1:
			return es.Answer{}, errors.Mark(errors.New("lost"), dispatch.ErrTimeout)
		}
		done[p.Ref().Key] = append(done[p.Ref().Key], p.(commands.RelabelNode).Labels["i"])
		return accept(0, r)
	}}
	indexes := map[int]bool{}
	for o := range commands.NewClient(bus).Within(time.Minute).SendMany(t.Context(), sendings(nodes, each), bound) {
		if o.Err != nil || o.Answer.Status != es.StatusAccepted || o.Options.ID == "" {
			t.Fatalf("%+v", o)
		}
		indexes[o.Index] = true
	}
	var want []string
	for i := range each {
		want = append(want, fmt.Sprint(i))
	}
	for key, got := range done {
		if !slices.Equal(want, got) {
			t.Errorf("%s: done in the order %v", key, got)
		}
	}
	if len(indexes) != nodes*each || len(done) != nodes || bus.overlap || bus.highest > bound {
		t.Errorf("%d outcomes of %d instances, overlap %v, %d on their way at once", len(indexes), len(done), bus.overlap, bus.highest)
	}
}

// A command without an answer holds back what came after it for the same instance, and nothing else; a refusal doesn't.
func TestSendManyHoldsBack(t *testing.T) {
	t.Parallel()
	bus := &scripted{answer: func(_ int, r dispatch.Request) (es.Answer, error) {
		p, err := commands.Commands().Decode(r.Aggregate, r.Verb, r.ContentType, r.Body)
		if err != nil {
			return es.Answer{}, err
		}
		labels := p.(commands.RelabelNode).Labels["i"]
		switch {
		case p.Ref().Key == "n0" && labels == "1":
			return es.Answer{}, errors.Mark(errors.New("lost"), dispatch.ErrTimeout)
		case p.Ref().Key == "n1" && labels == "1":
			return es.Answer{Status: es.StatusRejected, Error: &es.AnswerError{Code: "x"}}, nil
		}
		return accept(0, r)
	}}
	held, accepted := 0, 0
	for o := range commands.NewClient(bus).SendMany(t.Context(), sendings(3, 5), 4) {
		switch {
		case errors.Is(o.Err, commands.ErrHeldBack):
			held++
		case o.Err == nil && o.Answer.Status == es.StatusAccepted:
			accepted++
		}
	}
	if held != 3 || accepted != 1+4+5 {
		t.Errorf("%d held back and %d accepted, want 3 and 10", held, accepted)
	}
	malformed := func(yield func(commands.Sending) bool) {
		_ = yield(commands.Sending{Payload: commands.RegisterNode{}}) && yield(commands.Sending{Payload: commands.RelabelNode{Node: "n1"}})
	}
	var refused *es.Refusal
	count := 0
	for o := range commands.NewClient(bus).SendMany(t.Context(), malformed, 0) {
		count++
		if (o.Index == 0) != errors.As(o.Err, &refused) {
			t.Errorf("%+v", o)
		}
	}
	if count != 2 {
		t.Errorf("%d outcomes", count)
	}
}

// Whoever takes no more outcomes, or ends the context, leaves nothing behind.
func TestSendManyEndsEarly(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	bus := &scripted{answer: accept}
	taken := 0
	for range commands.NewClient(bus).SendMany(t.Context(), sendings(10, 1000), 8) {
		if taken++; taken == 20 {
			break
		}
	}
	if len(bus.got) > 40 {
		t.Errorf("%d commands were sent for 20 outcomes", len(bus.got))
	}
	ctx, cancel := context.WithCancel(t.Context())
	outcomes := 0
	for range commands.NewClient(bus).SendMany(ctx, sendings(10, 1000), 8) {
		if outcomes++; outcomes == 20 {
			cancel()
		}
	}
	cancel()
	if outcomes > 40 {
		t.Errorf("%d outcomes after the context had ended at 20", outcomes)
	}
}
