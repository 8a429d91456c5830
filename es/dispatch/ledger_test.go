package dispatch_test

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"catenary/es"
	"catenary/es/dispatch"
	"catenary/es/memstore"
)

// The ledger is the smallest domain that can go wrong: accounts with a balance that must not fall below zero, transfers
// over two of them, and a lease.

type opened struct {
	By string `json:"by"`
}

type moved struct {
	Amount int `json:"amount"`
}

// pay is a command: to put an amount on an account, or with To to transfer it.
type pay struct {
	Account string `json:"account"`
	To      string `json:"to"`
	Amount  int    `json:"amount"`
}

func account(name string) es.Ref { return es.Ref{Aggregate: "account", Key: es.Key(name)} }

func (p pay) Ref() es.Ref     { return account(p.Account) }
func (pay) Verb() string      { return "pay" }
func (p pay) Validate() error { return es.CheckName("account", p.Account) }

type begin struct{}

func (begin) Ref() es.Ref     { return es.Ref{Aggregate: "writer", Key: "main"} }
func (begin) Verb() string    { return "start" }
func (begin) Validate() error { return nil }

func ledgerRegistry() *es.Registry {
	r := es.NewRegistry(es.Msgpack{})
	es.Register[opened](r, "writer.opened.v1")
	es.Register[moved](r, "account.moved.v1")
	return r
}

type ledger struct {
	versions map[es.Ref]uint64
	balances map[es.Ref]int
	undo     []func()
}

func newLedger() es.Decider {
	return &ledger{versions: map[es.Ref]uint64{}, balances: map[es.Ref]int{}}
}

func (l *ledger) Decide(c es.Command) ([]es.KeyedEvent, error) {
	switch p := c.Data.(type) {
	case begin:
		return []es.KeyedEvent{{Ref: c.Ref, Data: opened{By: c.ID}}}, nil
	case pay:
		switch {
		case p.Amount == 0:
			return nil, nil
		case p.Amount == 666:
			panic("the devil's number")
		case p.Amount == 999:
			return []es.KeyedEvent{{Ref: c.Ref, Data: "not an event"}}, nil
		case p.To != "":
			if l.balances[c.Ref] < p.Amount {
				return nil, es.Refuse("overdrawn", overdrawn(p.Account, l.balances[c.Ref]), "pay in first")
			}
			return []es.KeyedEvent{{Ref: c.Ref, Data: moved{-p.Amount}}, {Ref: account(p.To), Data: moved{p.Amount}}}, nil
		}
		return []es.KeyedEvent{{Ref: c.Ref, Data: moved{p.Amount}}}, nil
	}
	return nil, fmt.Errorf("unknown payload %T", c.Data)
}

func overdrawn(account string, balance int) string { return fmt.Sprintf("%s has %d", account, balance) }

func (l *ledger) Apply(e es.Event) error {
	version, balance := l.versions[e.Ref], l.balances[e.Ref]
	l.undo = append(l.undo, func() { l.versions[e.Ref], l.balances[e.Ref] = version, balance })
	l.versions[e.Ref]++
	if m, ok := e.Data.(moved); ok {
		l.balances[e.Ref] += m.Amount
	}
	return nil
}

func (l *ledger) Note(es.Command)           {}
func (l *ledger) Version(ref es.Ref) uint64 { return l.versions[ref] }
func (l *ledger) Fenced(fence uint64) bool  { return fence == 13 }
func (l *ledger) Mark() es.Mark             { return es.Mark(len(l.undo)) }
func (l *ledger) Release(es.Mark)           {}
func (l *ledger) Rollback(m es.Mark) {
	for len(l.undo) > int(m) {
		l.undo[len(l.undo)-1]()
		l.undo = l.undo[:len(l.undo)-1]
	}
}

// clock is a settable clock.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) Add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// bench is a writer at work over a store.
type bench struct {
	t      testing.TB
	store  es.Store
	writer *dispatch.Writer
	stop   func() error
}

type option func(*dispatch.Config)

func start(t testing.TB, store es.Store, options ...option) *bench {
	t.Helper()
	cfg := dispatch.Config{
		Store: store, Registry: ledgerRegistry(), NewModel: newLedger, Start: begin{}, Now: time.Now,
		NewID: newID, Actor: "a-writer",
	}
	for _, o := range options {
		o(&cfg)
	}
	w, err := dispatch.NewWriter(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	stop := sync.OnceValue(func() error {
		cancel()
		err := <-done
		w.Keep(context.Background())
		return err
	})
	t.Cleanup(func() {
		if err := stop(); err != nil {
			t.Errorf("writer: %v", err)
		}
	})
	select {
	case <-w.Ready():
	case err := <-done:
		done <- err
		t.Fatalf("writer did not start: %v", err)
	}
	return &bench{t: t, store: store, writer: w, stop: stop}
}

func newID() string { return uuid.Must(uuid.NewV7()).String() }

// command makes a command of a payload, as the intake does.
func command(p pay, change ...func(*es.Command)) es.Command {
	c := es.Command{ID: newID(), Ref: p.Ref(), Verb: p.Verb(), Data: p, Digest: es.Digest([]byte(fmt.Sprint(p))), Actor: "a-someone"}
	for _, f := range change {
		f(&c)
	}
	return c
}

func (b *bench) submit(c es.Command) <-chan es.Answer {
	answers := make(chan es.Answer, 1)
	b.writer.Submit(c, func(a es.Answer) { answers <- a })
	return answers
}

func (b *bench) send(c es.Command) es.Answer {
	b.t.Helper()
	select {
	case a := <-b.submit(c):
		return a
	case <-time.After(20 * time.Second):
		b.t.Fatalf("no answer to %s %+v", c.ID, c.Data)
		panic("unreachable")
	}
}

// history reads the whole store, checks its chain and gives the events.
func history(t testing.TB, store es.Store) []es.Event {
	t.Helper()
	var head es.Head
	var events []es.Event
	registry := ledgerRegistry()
	for m, err := range es.VerifyChain(&head, store.Read(context.Background(), 0)) {
		if err != nil {
			t.Fatal(err)
		}
		e, err := registry.Decode(m)
		if err != nil {
			t.Fatal(err)
		}
		events = append(events, e)
	}
	return events
}

// checkAnswers holds the answers against the stream: each accepted command's events stand exactly once and as
// answered, no other command but an unknown one left any, and balances never fell below zero.
func checkAnswers(t testing.TB, events []es.Event, answers []es.Answer) {
	t.Helper()
	byCommand := map[string][]es.Event{}
	balances, versions := map[es.Ref]int{}, map[es.Ref]uint64{}
	for _, e := range events {
		versions[e.Ref]++
		if e.Version != versions[e.Ref] {
			t.Errorf("event %d of %s has version %d, want %d", e.Sequence, e.Ref, e.Version, versions[e.Ref])
		}
		if m, ok := e.Data.(moved); ok {
			byCommand[e.Command.ID] = append(byCommand[e.Command.ID], e)
			if balances[e.Ref] += m.Amount; balances[e.Ref] < 0 {
				t.Errorf("event %d: %s fell to %d", e.Sequence, e.Ref, balances[e.Ref])
			}
		}
	}
	mayStand, said := map[string]bool{}, map[string]es.Status{}
	for _, a := range answers {
		said[a.Command] = a.Status
		stand := byCommand[a.Command]
		switch a.Status {
		case es.StatusAccepted:
			mayStand[a.Command] = true
			if len(stand) != len(a.Events) {
				t.Errorf("command %s was accepted with %d events, %d stand", a.Command, len(a.Events), len(stand))
				continue
			}
			for i, e := range stand {
				if e.Sequence != a.Events[i].Sequence {
					t.Errorf("command %s: event %d stands at %d", a.Command, a.Events[i].Sequence, e.Sequence)
				}
			}
		case es.StatusUnknown:
			mayStand[a.Command] = true
		}
	}
	for id, stand := range byCommand {
		if !mayStand[id] {
			t.Errorf("command %s was not accepted (%s), but event %d stands", id, said[id], stand[0].Sequence)
		}
	}
}

func memory(t testing.TB) *memstore.Store {
	t.Helper()
	return memstore.New(memstore.Config{})
}

func at(n uint64) *uint64 { return &n }

func name(i int) string { return "a" + strconv.Itoa(i) }
