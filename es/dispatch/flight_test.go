package dispatch_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/errors"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"catenary/es"
	"catenary/es/dispatch"
	"catenary/es/estest"
	"catenary/es/natsstore"
	"catenary/internal/topology"
)

// slowly answers an append of a fault a moment later, so that others are in the air with it.
func slowly(after time.Duration, fault estest.Fault) estest.Fault {
	return func(f *estest.Faulty, ctx context.Context, head es.Head, batch []es.Message) es.Pending {
		inner, outer := fault(f, ctx, head, batch), es.NewPromise()
		time.AfterFunc(after, func() { outer.Resolve(es.Wait(context.WithoutCancel(ctx), inner)) })
		return outer
	}
}

// what can become of an append, by name.
func faults() map[string]estest.Fault {
	mark := func(kind error) estest.Fault {
		return func(f *estest.Faulty, ctx context.Context, after es.Head, batch []es.Message) es.Pending {
			if batch[0].Header[es.HeaderType][0] == "writer.opened.v1" {
				return estest.Pass(f, ctx, after, batch) // a writer whose start is refused ends
			}
			return estest.Refuse(errors.Mark(errors.New("by the test"), kind))(f, ctx, after, batch)
		}
	}
	return map[string]estest.Fault{
		"pass": estest.Pass, "lose the answer": estest.LoseAck, "lose it": estest.LoseAppend, "store it late": estest.StoreLate,
		"store late ones first": estest.AfterLate, "unavailable": mark(es.ErrUnavailable), "full": mark(es.ErrFull), "too large": mark(es.ErrTooLarge),
	}
}

// TestFlightsThatFail lets appends of a pipeline fail in any way and order, while others are in the air, a second writer
// appends, and what was lost is stored late. However it comes: what was answered is what stands, and whoever was told
// unknown learns what became of the command by sending it again.
func TestFlightsThatFail(t *testing.T) {
	t.Parallel()
	known := faults()
	rapid.Check(t, func(rt *rapid.T) {
		f := estest.NewFaulty(memory(t))
		durability := rapid.SampledFrom([]dispatch.Durability{{}, {Fsync: true}, {Replicas: 3}}).Draw(rt, "durability")
		var writers []*bench
		for range rapid.IntRange(1, 2).Draw(rt, "writers") {
			writers = append(writers, start(t, f, func(c *dispatch.Config) {
				c.Patience, c.Durability = 400*time.Millisecond, durability
			}))
		}
		names := rapid.SliceOfN(rapid.SampledFrom([]string{
			"pass", "pass", "pass", "lose the answer", "lose it", "store it late", "store late ones first", "unavailable", "full", "too large",
		}), 0, 40).Draw(rt, "script")
		for i, name := range names {
			f.Script(slowly(time.Duration(i*37%200)*time.Microsecond, known[name]))
		}
		for i := range 200 {
			f.Script(slowly(time.Duration(i*37%200)*time.Microsecond, estest.Pass))
		}
		var mu sync.Mutex
		var answers []es.Answer
		var group sync.WaitGroup
		seed := rapid.Uint64().Draw(rt, "seed")
		for client := range 6 {
			group.Go(func() {
				random := rand.New(rand.NewPCG(seed, uint64(client)))
				var pending []<-chan es.Answer
				var sent []es.Command
				for range 8 {
					p := pay{Account: name(random.IntN(3)), Amount: random.IntN(9)}
					if random.IntN(4) == 0 {
						p.To = name(3 + random.IntN(3))
					}
					c := command(p)
					sent = append(sent, c)
					pending = append(pending, writers[random.IntN(len(writers))].submit(c))
				}
				if client == 0 {
					f.DeliverLate(context.Background())
				}
				for i, p := range pending {
					a := <-p
					for a.Status == es.StatusUnknown || a.Status == es.StatusBusy { // busy says nothing of the try before it
						a = writers[random.IntN(len(writers))].send(sent[i])
					}
					mu.Lock()
					answers = append(answers, a)
					mu.Unlock()
				}
			})
		}
		group.Wait()
		f.DeliverLate(context.Background())
		for _, w := range writers {
			if err := w.stop(); err != nil {
				rt.Fatal(err)
			}
		}
		checkAnswers(t, history(t, f.Store), answers)
		if t.Failed() {
			rt.Fatalf("script %q", names)
		}
	})
}

// TestFlightsFailOneByOne puts each kind of failure at each place of a pipeline: the commands before it are answered as if
// nothing had happened, and those behind it are decided again.
func TestFlightsFailOneByOne(t *testing.T) {
	t.Parallel()
	const flights = 12
	for fault, become := range faults() {
		for at := range flights {
			t.Run(fmt.Sprintf("%s at %d", fault, at), func(t *testing.T) {
				t.Parallel()
				f := estest.NewFaulty(memory(t))
				b := start(t, f)
				release := make(chan struct{})
				for i := range flights {
					if i == at {
						f.Script(become)
					} else {
						f.Script(estest.HoldAck(release))
					}
				}
				var sent []es.Command
				var pending []<-chan es.Answer
				for range flights {
					c := command(pay{Account: "shop", Amount: 1})
					sent, pending = append(sent, c), append(pending, b.submit(c))
				}
				close(release)
				var answers []es.Answer
				refused := 0
				for i, p := range pending {
					a := <-p
					answers = append(answers, a)
					if a.Status != es.StatusAccepted {
						refused++
						if a.Error.Code != "store-full" && a.Error.Code != "too-large" {
							t.Errorf("command %d: %+v", i, a.Error)
						}
					}
				}
				if blame := fault == "full" || fault == "too large"; blame != (refused == 1) || refused > 1 {
					t.Errorf("%d commands were refused", refused)
				}
				if err := b.stop(); err != nil {
					t.Fatal(err)
				}
				events := history(t, f.Store)
				checkAnswers(t, events, answers)
				// The order in which they came is the order in which they stand.
				var stand []string
				for _, e := range events {
					if _, ok := e.Data.(moved); ok {
						stand = append(stand, e.Command.ID)
					}
				}
				var want []string
				for i, c := range sent {
					if answers[i].Status == es.StatusAccepted {
						want = append(want, c.ID)
					}
				}
				if diff := cmp.Diff(want, stand); diff != "" {
					t.Errorf("commands (-sent +stand):\n%s", diff)
				}
			})
		}
	}
}

// One command that is too large never fails those that share its append.
func TestTooLargeInASharedAppend(t *testing.T) {
	t.Parallel()
	bad := command(pay{Account: "large", Amount: 1})
	f := &picky{Faulty: estest.NewFaulty(memory(t)), refused: bad.ID}
	b := start(t, f, func(c *dispatch.Config) { c.Durability = dispatch.Durability{Fsync: true} })
	release := make(chan struct{})
	f.Script(estest.HoldAck(release))
	first := b.submit(command(pay{Account: "shop", Amount: 1}))
	var pending []<-chan es.Answer
	for i := range 60 {
		c := command(pay{Account: "shop", Amount: 1})
		if i == 30 {
			c = bad
		}
		pending = append(pending, b.submit(c))
	}
	close(release)
	if a := <-first; a.Status != es.StatusAccepted {
		t.Errorf("the first: %+v", a)
	}
	for i, p := range pending {
		a := <-p
		if (a.Status == es.StatusAccepted) == (i == 30) {
			t.Errorf("command %d: %+v %+v", i, a, a.Error)
		}
	}
	if n := f.appends.Load(); n > 200 {
		t.Errorf("it took %d appends", n)
	}
}

// Who waits for company is not kept waiting when the others are slow to be read, or turn out to be malformed.
func TestCompanyThatNeverComes(t *testing.T) {
	t.Parallel()
	b := start(t, memory(t), func(c *dispatch.Config) {
		c.Durability, c.Patience = dispatch.Durability{Fsync: true}, time.Hour
	})
	malformed := func(gate <-chan struct{}) dispatch.Submission {
		return dispatch.Submission{
			Answer: func(es.Answer) {},
			Read: func() (es.Command, error) {
				<-gate
				return es.Command{}, &es.Refusal{Status: es.StatusInvalid, Code: "bad-body", Message: "by the test"}
			},
		}
	}
	full, answered := make(chan struct{}), make(chan struct{})
	b.writer.Offer(malformed(full))
	answers := make(chan es.Answer, 1)
	b.writer.Offer(dispatch.Submission{Command: command(pay{Account: "shop", Amount: 1}), Answer: func(a es.Answer) { answers <- a }})
	for range 100 {
		b.writer.Offer(malformed(answered))
	}
	close(full)
	defer close(answered)
	select {
	case a := <-answers:
		if a.Status != es.StatusAccepted {
			t.Errorf("%+v", a)
		}
	case <-time.After(20 * time.Second):
		t.Error("no answer")
	}
}

// picky refuses every append with an event of one command.
type picky struct {
	*estest.Faulty
	refused string
	appends atomic.Int64
}

func (p *picky) Append(ctx context.Context, after es.Head, batch []es.Message) es.Pending {
	p.appends.Add(1)
	for _, m := range batch {
		if m.Header[es.HeaderCommand][0] == p.refused {
			return estest.Refuse(errors.Mark(errors.New("by the test"), es.ErrTooLarge))(p.Faulty, ctx, after, batch)
		}
	}
	return p.Faulty.Append(ctx, after, batch)
}

// TestEventsAreAppliedAsTheyAreRead compares what the model was given when a command was decided with what a replay gives it.
func TestEventsAreAppliedAsTheyAreRead(t *testing.T) {
	t.Parallel()
	store := memory(t)
	applied := &witness{Decider: newLedger()}
	b := start(t, store, func(c *dispatch.Config) { c.NewModel = func() es.Decider { return applied } })
	zone := time.FixedZone("elsewhere", 3600)
	b.send(command(pay{Account: "a b", Amount: 7}, func(c *es.Command) {
		c.Actor, c.OnBehalfOf, c.Causation, c.Correlation, c.Trace = "a-1", "a-2", "because of 100%", "all\nof it", "00-x"
		c.Effective = time.Now().In(zone)
	}))
	b.send(command(pay{Account: "a b", To: "c", Amount: 2}))
	if err := b.stop(); err != nil {
		t.Fatal(err)
	}
	// Compared deeply, and not by Equal: a time's zone or clock reading would be stored in a state.
	if diff := cmp.Diff(history(t, store), applied.events, cmp.Transformer("time", func(at time.Time) string { return fmt.Sprintf("%#v", at) })); diff != "" {
		t.Errorf("events (-read +applied):\n%s", diff)
	}
}

type witness struct {
	es.Decider
	events []es.Event
}

func (w *witness) Apply(e es.Event) error {
	w.events = append(w.events, e)
	return w.Decider.Apply(e)
}

// TestWritersOverJetStream lets two writers at once pipeline over a real server that is stopped and started meanwhile.
func TestWritersOverJetStream(t *testing.T) {
	t.Parallel()
	bus := estest.Server(t, false)
	var writers []*bench
	for range 2 {
		nc := bus.Connect(t)
		if err := natsstore.Ensure(t.Context(), nc, topology.Options{EventStoreBytes: 256 << 20}); err != nil {
			t.Fatal(err)
		}
		s, err := natsstore.Open(t.Context(), nc, natsstore.Config{AckTimeout: 300 * time.Millisecond, RequestTimeout: 20 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(s.Close)
		writers = append(writers, start(t, s))
	}
	const clients, each = 8, 150
	var mu sync.Mutex
	var answers []es.Answer
	var group sync.WaitGroup
	for client := range clients {
		group.Go(func() {
			random := rand.New(rand.NewPCG(5, uint64(client)))
			for range each {
				p := pay{Account: name(random.IntN(4)), Amount: 1 + random.IntN(9)}
				if random.IntN(8) == 0 {
					p.To = name(4 + random.IntN(4))
				}
				c := command(p)
				// Most go to the first: two that are equally busy only take turns in reading what the other has done.
				w := writers[random.IntN(8)/7]
				a := w.send(c)
				for a.Status == es.StatusUnknown || a.Status == es.StatusBusy {
					a = w.send(c) // busy says nothing of the try before it
				}
				mu.Lock()
				answers = append(answers, a)
				n := len(answers)
				mu.Unlock()
				if n == clients*each/3 || n == clients*each*2/3 {
					bus.Stop()
					bus.Start(t)
				}
			}
		})
	}
	group.Wait()
	for _, w := range writers {
		if err := w.stop(); err != nil {
			t.Fatal(err)
		}
	}
	checkAnswers(t, history(t, writers[0].store), answers)
}
