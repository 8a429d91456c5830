package dispatch_test

import (
	"context"
	"iter"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/errors"

	"catenary/es"
	"catenary/es/dispatch"
	"catenary/es/estest"
)

// Whoever comes after a writer has stopped is told so at once, instead of waiting for an answer that never comes.
func TestStoppedWriterIsBusy(t *testing.T) {
	t.Parallel()
	b := start(t, memory(t))
	if err := b.stop(); err != nil {
		t.Fatal(err)
	}
	if a := b.send(command(pay{Account: "shop", Amount: 1})); a.Status != es.StatusBusy || a.Error.Code != "stopping" {
		t.Errorf("got %+v", a)
	}
}

// Commands that came in before a start that fails are answered too.
func TestFailedStartAnswers(t *testing.T) {
	t.Parallel()
	store := memory(t)
	b := start(t, store)
	b.send(command(pay{Account: "shop", Amount: 1}))
	if err := b.stop(); err != nil {
		t.Fatal(err)
	}
	changed := estest.Tamper(store, func(m es.Message) (es.Message, bool) {
		m.Body = append(m.Body, 'x')
		return m, true
	})
	w, err := dispatch.NewWriter(dispatch.Config{Store: changed, Registry: ledgerRegistry(), NewModel: newLedger, Start: begin{}, Now: time.Now, NewID: newID})
	if err != nil {
		t.Fatal(err)
	}
	early := (&bench{t: t, writer: w}).submit(command(pay{Account: "shop", Amount: 1}))
	if err := w.Run(t.Context()); !errors.Is(err, es.ErrBrokenChain) {
		t.Fatalf("the writer ended with %v", err)
	}
	if a := <-early; a.Status != es.StatusBusy {
		t.Errorf("got %+v", a)
	}
}

// shaky is a store of which the first reads give other things than they should.
type shaky struct {
	es.Store
	mu    sync.Mutex
	reads []func(iter.Seq2[es.Message, error]) iter.Seq2[es.Message, error]
}

func (s *shaky) Read(ctx context.Context, after uint64) iter.Seq2[es.Message, error] {
	messages := s.Store.Read(ctx, after)
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.reads) == 0 {
		return messages
	}
	next := s.reads[0]
	s.reads = s.reads[1:]
	return next(messages)
}

// upTo gives n messages, and then an error if there is one.
func upTo(n int, err error) func(iter.Seq2[es.Message, error]) iter.Seq2[es.Message, error] {
	return func(messages iter.Seq2[es.Message, error]) iter.Seq2[es.Message, error] {
		return func(yield func(es.Message, error) bool) {
			left := n
			for m, e := range messages {
				if left == 0 {
					break
				}
				left--
				if !yield(m, e) {
					return
				}
			}
			if err != nil {
				yield(es.Message{}, err)
			}
		}
	}
}

// A store that can't be reached for a while, a change of leaders say, does not end the writer. And a command of which it
// first read a part, be it so or because the read ended there, keeps its whole answer.
func TestWriterReadsOn(t *testing.T) {
	t.Parallel()
	away := errors.Mark(errors.New("no leader"), es.ErrUnavailable)
	for name, reads := range map[string][]func(iter.Seq2[es.Message, error]) iter.Seq2[es.Message, error]{
		"after errors":                  {upTo(0, away), upTo(3, away), upTo(0, away)},
		"after an end within a command": {upTo(3, nil)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := memory(t)
			first := start(t, store)
			first.send(command(pay{Account: "shop", Amount: 5}))
			transfer := command(pay{Account: "shop", To: "pay", Amount: 3})
			want := first.send(transfer) // events 3 and 4
			if err := first.stop(); err != nil {
				t.Fatal(err)
			}
			second := start(t, &shaky{Store: store, reads: reads}, func(c *dispatch.Config) { c.Patience = 40 * time.Millisecond })
			got := second.send(transfer)
			if !got.Repeated || len(got.Events) != len(want.Events) || got.Sequence != want.Sequence {
				t.Errorf("the repeat got %+v, first %+v", got, want)
			}
		})
	}
}

// slowTail is a store whose tail is not told before it is released.
type slowTail struct {
	es.Store
	release chan struct{}
}

func (s slowTail) Tail(ctx context.Context) (uint64, error) {
	select {
	case <-s.release:
		return s.Store.Tail(ctx)
	case <-ctx.Done():
		return 0, errors.Mark(ctx.Err(), es.ErrUnavailable)
	}
}

// Commands that lead to nothing wait for the stream's tail. As many wait as may, and the rest is told busy.
func TestWaitingIsBounded(t *testing.T) {
	t.Parallel()
	const limit, sent = 8, 2000
	release := make(chan struct{})
	b := start(t, slowTail{memory(t), release}, func(c *dispatch.Config) { c.QueueLimit = limit; c.Patience = time.Minute })
	answers := make(chan es.Answer, sent)
	for range sent {
		b.writer.Submit(command(pay{Account: "shop"}), func(a es.Answer) { answers <- a })
	}
	close(release)
	count := map[es.Status]int{}
	for range sent {
		count[(<-answers).Status]++
	}
	if count[es.StatusUnchanged] == 0 || count[es.StatusUnchanged] > 3*limit || count[es.StatusUnchanged]+count[es.StatusBusy] != sent {
		t.Errorf("got %v, want at most %d that waited", count, 3*limit)
	}
}
