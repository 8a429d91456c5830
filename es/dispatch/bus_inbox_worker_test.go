package dispatch_test

import (
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/errors"
	"github.com/nats-io/nats.go"

	"catenary/es"
	"catenary/es/dispatch"
)

// putMany sends commands for several accounts, the amounts of each counting up, and gives them in the order they were sent.
func (o *office) putMany(accounts, each int) []dispatch.Request {
	o.t.Helper()
	p := o.pipe()
	var sent []dispatch.Request
	stored := make(chan error, accounts*each)
	for i := range each {
		for a := range accounts {
			r := payment(name(a), i+1)
			sent = append(sent, r)
			p(r, stored)
		}
	}
	for range sent {
		if err := <-stored; err != nil {
			o.t.Fatal(err)
		}
	}
	return sent
}

// pipe sends to the inbox without waiting for the one before.
func (o *office) pipe() func(dispatch.Request, chan<- error) {
	nc := o.bus.Connect(o.t)
	inbox := nc.NewInbox()
	var mu sync.Mutex
	waiting := map[string]chan<- error{}
	if _, err := nc.Subscribe(inbox+".*", func(m *nats.Msg) {
		mu.Lock()
		done := waiting[m.Subject]
		mu.Unlock()
		if m.Header.Get("Nats-Service-Error") != "" {
			done <- errors.Newf("%s", m.Data)
			return
		}
		done <- nil
	}); err != nil {
		o.t.Fatal(err)
	}
	return func(r dispatch.Request, done chan<- error) {
		m := nats.NewMsg(dispatch.InboxPrefix + ".account.pay")
		m.Data, m.Reply = r.Body, inbox+"."+r.ID
		m.Header[dispatch.HeaderCommand] = []string{r.ID}
		mu.Lock()
		waiting[m.Reply] = done
		mu.Unlock()
		if err := nc.PublishMsg(m); err != nil {
			o.t.Error(err)
		}
	}
}

// inOrder checks that each account has its amounts once and counting up.
func inOrder(t *testing.T, events []es.Event, accounts, each int) {
	t.Helper()
	last := map[es.Ref]int{}
	for _, e := range events {
		m, ok := e.Data.(moved)
		if !ok {
			continue
		}
		if m.Amount != last[e.Ref]+1 {
			t.Errorf("event %d: %s got %d after %d", e.Sequence, e.Ref.Key, m.Amount, last[e.Ref])
		}
		last[e.Ref] = m.Amount
	}
	if len(last) != accounts {
		t.Errorf("%d accounts have events, want %d", len(last), accounts)
	}
	for ref, n := range last {
		if n != each {
			t.Errorf("%s ends with %d, want %d", ref.Key, n, each)
		}
	}
}

// unsteady is a writer that now and then is busy, or does not know.
type unsteady struct {
	submit func(es.Command, func(es.Answer))
	mu     sync.Mutex
	rng    *rand.Rand
}

func (u *unsteady) Submit(c es.Command, answer func(es.Answer)) {
	u.mu.Lock()
	n := u.rng.IntN(12)
	u.mu.Unlock()
	switch n {
	case 0:
		answer(es.Answer{Status: es.StatusBusy, Command: c.ID, Error: &es.AnswerError{Code: "queue-full"}})
	case 1: // done, but the answer is lost
		u.submit(c, func(es.Answer) {
			answer(es.Answer{Status: es.StatusUnknown, Command: c.ID, Error: &es.AnswerError{Code: "not-settled"}})
		})
	case 2:
		answer(es.Answer{Status: es.StatusRejected, Command: c.ID, Error: &es.AnswerError{Code: "store-full"}})
	default:
		u.submit(c, answer)
	}
}

// Two workers at once, over a writer that is now and then busy: all is done once, and in order for each instance.
func TestInboxKeepsOrderWithTwoWorkers(t *testing.T) {
	const accounts, each = 12, 25
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	o := openOffice(t)
	b := start(t, o.ledger)
	for i := range uint64(2) {
		u := &unsteady{submit: b.writer.Submit, rng: rand.New(rand.NewPCG(seed, i))}
		o.work(o.open(o.bus.Connect(t)), u.Submit)
	}
	sent := o.putMany(accounts, each)
	for _, r := range sent {
		if got := o.outcome(r.ID); got.Status != es.StatusAccepted {
			t.Fatalf("%+v", got)
		}
	}
	eventually(t, "the inbox is empty", func() bool { return o.left() == 0 })
	inOrder(t, history(t, o.ledger), accounts, each)
}

// A worker that loses its connection in the middle, as in a kill, leaves what it held to the next; also one whose writer had
// done a command already, or that had kept the receipt.
func TestInboxSurvivesKilledWorkers(t *testing.T) {
	const accounts, each, kills = 6, 30, 3
	o := openOffice(t)
	sent := o.putMany(accounts, each)
	store := o.ledger
	for kill := range kills {
		b := start(t, store)
		nc := o.bus.Connect(t)
		var done atomic.Int32
		limit := int32(accounts * each / (kills + 2))
		killed := make(chan struct{})
		stop := o.work(o.open(nc), func(c es.Command, answer func(es.Answer)) {
			n := done.Add(1)
			if n == limit {
				nc.Close()
				close(killed)
			}
			if n > limit && kill%2 == 0 {
				return // killed with the command on its way to the writer
			}
			b.writer.Submit(c, answer)
		})
		select {
		case <-killed:
		case <-time.After(20 * time.Second):
			t.Fatalf("worker %d did not get as far", kill)
		}
		stop()
		if err := b.stop(); err != nil {
			t.Fatal(err)
		}
	}
	b := start(t, store)
	o.work(o.store, b.writer.Submit)
	for _, r := range sent {
		if got := o.outcome(r.ID); got.Status != es.StatusAccepted {
			t.Fatalf("%+v", got)
		}
	}
	eventually(t, "the inbox is empty", func() bool { return o.left() == 0 })
	inOrder(t, history(t, store), accounts, each)
}

// What a stopped worker held is taken up by the next at once, without waiting for the consumer's patience.
func TestInboxIsGivenBackByAStoppedWorker(t *testing.T) {
	o := openOffice(t)
	o.ackIn = time.Hour
	store := o.open(o.bus.Connect(t))
	held := make(chan struct{}, 10)
	stop := o.work(store, func(es.Command, func(es.Answer)) { held <- struct{}{} })
	for i := range 3 {
		o.put(payment(name(i), 1))
		<-held
	}
	stop()
	b := start(t, o.ledger)
	o.work(o.open(o.bus.Connect(t)), b.writer.Submit)
	eventually(t, "the inbox is empty", func() bool { return o.left() == 0 })
	inOrder(t, history(t, o.ledger), 3, 1)
}

// A delivery whose receipt is kept already was settled by a worker that died before it could say so: it is not decided again,
// although by now it would be decided otherwise.
func TestInboxDoesNotDecideTwice(t *testing.T) {
	o := openOffice(t)
	b := start(t, o.ledger)
	transfer := payment("shop", 5, func(r *dispatch.Request) { r.Body = []byte(`{"account":"shop","to":"pay","amount":5}`) })
	o.put(transfer)
	nc := o.bus.Connect(t)
	// The receipt is told after it is kept and before the delivery is acknowledged: the connection ends in between.
	first := o.open(nc)
	ended := make(chan struct{})
	end := sync.OnceFunc(func() { nc.Close(); close(ended) })
	if _, err := nc.Subscribe(dispatch.OutcomePrefix+".>", func(*nats.Msg) {}); err != nil {
		t.Fatal(err)
	}
	block := o.bus.Connect(t)
	if _, err := block.Subscribe(dispatch.OutcomePrefix+"."+transfer.ID, func(*nats.Msg) { end() }); err != nil {
		t.Fatal(err)
	}
	if err := block.Flush(); err != nil {
		t.Fatal(err)
	}
	var decided atomic.Int32
	count := func(c es.Command, answer func(es.Answer)) { decided.Add(1); b.writer.Submit(c, answer) }
	stop := o.work(first, count)
	<-ended
	stop()
	if a := b.send(command(pay{Account: "shop", Amount: 10})); a.Status != es.StatusAccepted {
		t.Fatalf("%+v", a)
	}
	o.work(o.store, count)
	eventually(t, "the inbox is empty", func() bool { return o.left() == 0 })
	if r := o.outcome(transfer.ID); r.Status != es.StatusRejected || r.Error.Code != "overdrawn" || decided.Load() != 1 {
		t.Errorf("decided %d times, the last time %+v", decided.Load(), r)
	}
}

// parkedOnly gives the one parked command.
func (o *office) parkedOnly() dispatch.Parked {
	o.t.Helper()
	var found dispatch.Parked
	eventually(o.t, "one command is parked", func() bool {
		page, err := o.client.ParkedPage(o.t.Context(), "", 0)
		if err != nil {
			o.t.Fatal(err)
		}
		if len(page.Items) == 1 {
			found = page.Items[0]
		}
		return len(page.Items) == 1
	})
	return found
}

// What can't be decided is parked with its reason, does not block what comes after it, and can be retried and discarded.
func TestInboxParksAndRetries(t *testing.T) {
	o := openOffice(t)
	b := start(t, o.ledger)
	var mended atomic.Bool
	o.work(o.store, func(c es.Command, answer func(es.Answer)) {
		if p := c.Data.(pay); p.Amount == 7 && !mended.Load() {
			c.Data = pay{Account: p.Account, Amount: 666} // the decider panics
		}
		b.writer.Submit(c, answer)
	})
	bad, after := payment("shop", 7), payment("shop", 1)
	o.put(bad)
	o.put(after)
	if r := o.outcome(after.ID); r.Status != es.StatusAccepted || r.Version != 1 {
		t.Errorf("the one behind it: %+v", r)
	}
	r := o.outcome(bad.ID)
	if r.Status != es.StatusParked || r.Error.Code != "internal" || r.Parked == "" || r.Final() {
		t.Fatalf("%+v", r)
	}
	p, err := o.client.Parked(t.Context(), r.Parked)
	if err != nil || p.Command != bad.ID || p.Error.Code != "internal" || p.Key != "shop" || p.Verb != "pay" || string(p.Data) != `{"account":"shop","amount":7,"to":""}` {
		t.Fatalf("%+v %s, %v", p, p.Data, err)
	}
	if a, err := o.client.Retry(t.Context(), p.ID); err != nil || a.Status != es.StatusStored {
		t.Fatalf("%+v, %v", a, err)
	}
	if again := o.parkedOnly(); again.ID == p.ID {
		t.Errorf("retried in vain it has the same id")
	}
	mended.Store(true)
	if _, err := o.client.Retry(t.Context(), o.parkedOnly().ID); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it is done", func() bool { return o.outcome(bad.ID).Status == es.StatusAccepted })
	if _, err := o.client.Retry(t.Context(), p.ID); !errors.Is(err, es.ErrNotFound) {
		t.Errorf("retried when it is gone: %v", err)
	}

	mended.Store(false)
	doomed := payment("shop", 7)
	o.put(doomed)
	d := o.parkedOnly()
	var refused *es.Refusal
	if _, err := o.client.Discard(t.Context(), d.ID, ""); !errors.As(err, &refused) || refused.Code != "no-reason" {
		t.Errorf("discarded without a reason: %v", err)
	}
	if r, err := o.client.Discard(t.Context(), d.ID, "a typing error"); err != nil || r.Status != es.StatusDiscarded {
		t.Errorf("%+v, %v", r, err)
	}
	if r := o.outcome(doomed.ID); r.Status != es.StatusDiscarded || r.Reason != "a typing error" || r.By == "" || r.Parked != d.ID || !r.Final() {
		t.Errorf("%+v", r)
	}
	if page, err := o.client.ParkedPage(t.Context(), "", 0); err != nil || len(page.Items) != 0 {
		t.Errorf("%+v, %v", page, err)
	}
}

// A malformed message that nobody waits for is parked as its sender wrote it; what the inbox holds and can't read, and an id
// that got too old there, are parked too.
func TestInboxParksWhatCannotBeRead(t *testing.T) {
	o := openOffice(t)
	m := nats.NewMsg(dispatch.InboxPrefix + ".account.pay")
	m.Data = []byte(`{"account":`)
	m.Header[dispatch.HeaderCorrelation] = []string{"c"}
	if err := o.conn.PublishMsg(m); err != nil {
		t.Fatal(err)
	}
	p := o.parkedOnly()
	full, err := o.client.Parked(t.Context(), p.ID)
	if err != nil || string(full.Body) != `{"account":` || full.Error.Code != "bad-body" || full.Inbox != 0 || full.Headers[dispatch.HeaderCorrelation] != "c" || full.Actor == "" {
		t.Errorf("%+v, %v", full, err)
	}
	var refused *es.Refusal
	if _, err := o.client.Retry(t.Context(), p.ID); !errors.As(err, &refused) || refused.Code != "bad-body" {
		t.Errorf("retried as it is: %v", err)
	}
	if o.parkedOnly().ID != p.ID {
		t.Error("it did not stay parked")
	}
	if _, err := o.client.Discard(t.Context(), p.ID, "noise"); err != nil {
		t.Error(err)
	}

	// A well-formed one that nobody waits for is stored like any other.
	quiet := payment("shop", 1)
	m = nats.NewMsg(dispatch.InboxPrefix + ".account.pay")
	m.Data = quiet.Body
	m.Header[dispatch.HeaderCommand] = []string{quiet.ID}
	if err := o.conn.PublishMsg(m); err != nil {
		t.Fatal(err)
	}
	b := start(t, o.ledger)
	o.work(o.store, func(c es.Command, answer func(es.Answer)) {
		if c.Data.(pay).Amount == 2 {
			c.ID = "01941f29-7c00-7000-8000-000000000001" // held for a year
		}
		b.writer.Submit(c, answer)
	})
	if r := o.outcome(quiet.ID); r.Status != es.StatusAccepted {
		t.Errorf("%+v", r)
	}
	old := payment("shop", 2)
	o.put(old)
	if p := o.parkedOnly(); p.Command != old.ID || p.Error.Code != "id-expired" {
		t.Errorf("an id too old: %+v", p)
	}
	if _, err := o.client.Discard(t.Context(), o.parkedOnly().ID, "too old"); err != nil {
		t.Error(err)
	}

	if _, err := o.js.Publish(t.Context(), "inbox.account.shop", []byte("not ours")); err != nil {
		t.Fatal(err)
	}
	foreign := o.parkedOnly()
	if foreign.Error.Code != dispatch.CodeUnreadable || foreign.Key != "shop" {
		t.Errorf("a foreign message: %+v", foreign)
	}
	if _, err := o.client.Retry(t.Context(), foreign.ID); !errors.As(err, &refused) || refused.Code != dispatch.CodeUnreadable {
		t.Errorf("retried: %v", err)
	}
	eventually(t, "the inbox is empty", func() bool { return o.left() == 0 })
}

// Whoever repeats a command through the inbox, since an acknowledgement got lost, has it done once.
func TestInboxRepeats(t *testing.T) {
	o := openOffice(t)
	r := payment("shop", 3)
	for range 3 {
		o.put(r)
	}
	b := start(t, o.ledger)
	o.work(o.store, b.writer.Submit)
	eventually(t, "the inbox is empty", func() bool { return o.left() == 0 })
	if got := o.outcome(r.ID); got.Status != es.StatusAccepted || got.Version != 1 {
		t.Errorf("%+v", got)
	}
	if events := history(t, o.ledger); len(events) != 2 {
		t.Errorf("%d events, want the writer's start and one", len(events))
	}
}

// Two instances may have commands with the same id; each has its receipt.
func TestInboxReceiptsOfTwoInstances(t *testing.T) {
	o := openOffice(t)
	b := start(t, o.ledger)
	o.work(o.store, b.writer.Submit)
	id := newID()
	for _, account := range []string{"a", "b"} {
		o.put(payment(account, 1, func(r *dispatch.Request) { r.ID = id }))
	}
	eventually(t, "the inbox is empty", func() bool { return o.left() == 0 })
	for _, account := range []string{"a", "b"} {
		r, err := o.client.Receipt(t.Context(), dispatch.ReceiptQuestion{ID: id, Aggregate: "account", Key: account})
		if err != nil || r.Key != account || r.Status != es.StatusAccepted {
			t.Errorf("%+v, %v", r, err)
		}
	}
	var refused *es.Refusal
	for _, q := range []dispatch.ReceiptQuestion{{ID: "x"}, {ID: ">"}, {ID: id, Aggregate: "account"}, {ID: id, Aggregate: "account", Key: ">"}} {
		if _, err := o.client.Receipt(t.Context(), q); !errors.As(err, &refused) || refused.Status != es.StatusInvalid {
			t.Errorf("%+v: %v", q, err)
		}
	}
}

// A full inbox says so, and takes commands again when some are worked off. A stream that could lose commands is not used.
func TestInboxLimits(t *testing.T) {
	o := openOffice(t)
	s, err := o.js.Stream(t.Context(), "CATENARY_INBOX")
	if err != nil {
		t.Fatal(err)
	}
	config := s.CachedInfo().Config
	config.MaxBytes = 2000
	if _, err := o.js.UpdateStream(t.Context(), config); err != nil {
		t.Fatal(err)
	}
	var full es.Answer
	for i := 0; full.Status != es.StatusBusy; i++ {
		if full, err = o.client.Send(t.Context(), payment(name(i), 1)); err != nil || i > 100 {
			t.Fatalf("%d commands stored: %+v, %v", i, full, err)
		}
	}
	if full.Error.Code != "inbox-full" {
		t.Errorf("%+v", full.Error)
	}
	b := start(t, o.ledger)
	o.work(o.store, b.writer.Submit)
	eventually(t, "the inbox is empty", func() bool { return o.left() == 0 })
	o.put(payment("shop", 1))

	config.Discard = 0 // the old ones
	if _, err := o.js.UpdateStream(t.Context(), config); err != nil {
		t.Fatal(err)
	}
	if _, err := dispatch.OpenInbox(t.Context(), o.conn, inboxStreams(time.Second)); err == nil || !strings.Contains(err.Error(), "Discard") {
		t.Errorf("a stream that drops what is old: %v", err)
	}
}
