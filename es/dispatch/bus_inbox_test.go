package dispatch_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/errors"
	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"catenary/es"
	"catenary/es/dispatch"
	"catenary/es/estest"
	"catenary/es/memstore"
	"catenary/internal/topology"
)

// tellers reads the ledger's one command in both content types, as the inbox needs it.
type tellers struct{ payments }

func (d tellers) Decode(aggregate, verb, contentType string, body []byte) (es.Payload, error) {
	if contentType != dispatch.ContentTypeMsgpack {
		return d.payments.Decode(aggregate, verb, contentType, body)
	}
	var p pay
	if err := (es.Msgpack{}).Unmarshal(body, &p); err != nil {
		return nil, &es.Refusal{Status: es.StatusInvalid, Code: "bad-body", Message: err.Error()}
	}
	return p, nil
}

// office is an inbox on a real server, with as many workers and writers as a test starts.
type office struct {
	t      *testing.T
	bus    *estest.Bus
	conn   *nats.Conn
	js     jetstream.JetStream
	store  *dispatch.InboxStore
	intake *dispatch.Intake
	client *dispatch.InboxClient
	ledger *memstore.Store
	ackIn  time.Duration
}

func openOffice(t *testing.T) *office {
	t.Helper()
	bus := estest.Server(t, false)
	o := &office{t: t, bus: bus, conn: bus.Connect(t), ledger: memory(t), ackIn: time.Second}
	o.client = dispatch.NewInboxClient(bus.Connect(t), nil)
	var err error
	if o.js, err = jetstream.New(o.conn); err != nil {
		t.Fatal(err)
	}
	if _, err := o.js.CreateKeyValue(t.Context(), jetstream.KeyValueConfig{Bucket: "actors"}); err != nil {
		t.Fatal(err)
	}
	d, err := dispatch.OpenDirectory(t.Context(), o.js, "actors")
	if err != nil {
		t.Fatal(err)
	}
	actors, err := dispatch.NewActors(t.Context(), d, newID)
	if err != nil {
		t.Fatal(err)
	}
	o.intake = &dispatch.Intake{Decoder: tellers{}, Actors: actors, NewID: newID, Logger: slog.New(slog.DiscardHandler)}
	o.store = o.open(o.conn)
	o.serve(o.store, o.conn)
	return o
}

// open opens the inbox with a consumer that gives up on a silent worker soon, so that tests need not wait long.
func (o *office) open(nc *nats.Conn) *dispatch.InboxStore {
	o.t.Helper()
	s, err := dispatch.OpenInbox(o.t.Context(), nc, inboxStreams(o.ackIn))
	if err != nil {
		o.t.Fatal(err)
	}
	return s
}

func inboxStreams(ackWait time.Duration) dispatch.InboxStreams {
	none := topology.Options{}
	streams := dispatch.InboxStreams{Inbox: topology.Inbox(none), Worker: topology.InboxWorker(none), Parked: topology.Parked(none), Receipts: topology.Receipts(none)}
	streams.Worker.AckWait = ackWait
	return streams
}

func (o *office) serve(store *dispatch.InboxStore, nc *nats.Conn) {
	o.t.Helper()
	s, err := dispatch.NewInboxService(context.Background(), dispatch.InboxServiceConfig{
		Name: "test-inbox", Version: "1.0.0", Conn: nc, Store: store, Intake: o.intake, Inside: "system", Now: time.Now, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		o.t.Fatal(err)
	}
	o.t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			o.t.Error(err)
		}
	})
}

// work starts a worker, and returns what stops it.
func (o *office) work(store *dispatch.InboxStore, submit func(es.Command, func(es.Answer))) (stop func()) {
	o.t.Helper()
	w := dispatch.NewInboxWorker(dispatch.WorkerConfig{Store: store, Intake: o.intake, Submit: submit, Now: time.Now, Logger: slog.New(slog.DiscardHandler)})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			o.t.Errorf("worker: %v", err)
		}
	})
	o.t.Cleanup(stop)
	return stop
}

func payment(account string, amount int, change ...func(*dispatch.Request)) dispatch.Request {
	r := dispatch.Request{
		Aggregate: "account", Verb: "pay", Body: fmt.Appendf(nil, `{"account":%q,"amount":%d}`, account, amount), Options: dispatch.Options{ID: newID()},
	}
	for _, f := range change {
		f(&r)
	}
	return r
}

// put sends a command through the inbox, which must store it.
func (o *office) put(r dispatch.Request) es.Answer {
	o.t.Helper()
	a, err := o.client.Send(o.t.Context(), r)
	if err != nil || a.Status != es.StatusStored || a.Command != r.ID || a.Sequence == 0 {
		o.t.Fatalf("%+v (%+v), %v", a, a.Error, err)
	}
	return a
}

// outcome waits for a command's receipt.
func (o *office) outcome(id string) dispatch.Receipt {
	o.t.Helper()
	ctx, cancel := context.WithTimeout(o.t.Context(), 20*time.Second)
	defer cancel()
	r, err := o.client.Await(ctx, dispatch.ReceiptQuestion{ID: id})
	if err != nil {
		o.t.Fatalf("receipt of %s: %v", id, err)
	}
	return r
}

// left is how many commands are in the inbox.
func (o *office) left() uint64 {
	o.t.Helper()
	s, err := o.js.Stream(o.t.Context(), topology.InboxStream)
	if err != nil {
		o.t.Fatal(err)
	}
	return s.CachedInfo().State.Msgs
}

// eventually waits until something holds.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	deadline := time.NewTimer(20 * time.Second)
	defer deadline.Stop()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-deadline.C:
			t.Fatalf("never came: %s", what)
		}
	}
}

// What is sent while no writer runs is done when one starts, in the order it was sent; what is held beyond its deadline, or
// decided on what no longer stands, is refused (case B16).
func TestInboxKeepsUntilAWriterStarts(t *testing.T) {
	o := openOffice(t)
	outcomes, err := o.conn.SubscribeSync(dispatch.OutcomePrefix + ".>")
	if err != nil {
		t.Fatal(err)
	}
	var accepted []string
	for i := range 20 {
		r := payment("shop", i+1, func(r *dispatch.Request) { r.Expected = at(uint64(i)) })
		if a := o.put(r); a.Sequence != uint64(i+1) {
			t.Errorf("command %d is stored at %d", i, a.Sequence)
		}
		accepted = append(accepted, r.ID)
	}
	late := payment("shop", 100, func(r *dispatch.Request) { r.Deadline = time.Now().Add(-time.Millisecond) })
	stale := payment("shop", 100, func(r *dispatch.Request) { r.Expected = at(3) })
	o.put(late)
	o.put(stale)
	if _, err := o.client.Receipt(t.Context(), dispatch.ReceiptQuestion{ID: late.ID}); !errors.Is(err, es.ErrNotFound) {
		t.Errorf("a receipt before there is an outcome: %v", err)
	}

	b := start(t, o.ledger)
	o.work(o.store, b.writer.Submit)
	for i, id := range accepted {
		if r := o.outcome(id); r.Status != es.StatusAccepted || r.Version != uint64(i+1) || r.Inbox != uint64(i+1) || r.Settled.IsZero() || r.Stored.IsZero() {
			t.Errorf("command %d: %+v", i, r)
		}
	}
	if r := o.outcome(late.ID); r.Status != es.StatusExpired || r.Error.Code != "deadline-passed" {
		t.Errorf("held beyond its deadline: %+v", r)
	}
	if r := o.outcome(stale.ID); r.Status != es.StatusConflict || *r.Error.Expected != 3 || *r.Error.Current != 20 {
		t.Errorf("decided on what no longer stands: %+v", r)
	}
	events := history(t, o.ledger)[1:]
	if len(events) != 20 {
		t.Fatalf("%d events, want 20", len(events))
	}
	for i, e := range events {
		if e.Data != (moved{Amount: i + 1}) {
			t.Errorf("event %d is %+v", i, e.Data)
		}
	}
	eventually(t, "the inbox is empty", func() bool { return o.left() == 0 })
	told, err := outcomes.NextMsg(5 * time.Second)
	if err != nil || told.Subject != dispatch.OutcomePrefix+"."+accepted[0] {
		t.Errorf("the first outcome was told as %v, %v", told, err)
	}
}

// Whatever a sender writes into headers of ours, the command is done in the name of the connection, and nothing else that
// was written gets into the stream.
func TestInboxStampsTheActor(t *testing.T) {
	o := openOffice(t)
	r := payment("shop", 1, func(r *dispatch.Request) { r.OnBehalfOf = "Zoë"; r.Correlation = "50% off\n" })
	m := nats.NewMsg(dispatch.InboxPrefix + ".account.pay")
	m.Data = r.Body
	for name, v := range map[string]string{
		dispatch.HeaderCommand: r.ID, dispatch.HeaderOnBehalfOf: es.EncodeHeaderValue(r.OnBehalfOf), dispatch.HeaderCorrelation: es.EncodeHeaderValue(r.Correlation),
		"cat-actor": "root", "CAT-ACTOR": "root", "nats-request-info": `{"acc":"OPS","kind":"Client","user":"root"}`,
		"Nats-Expected-Last-Sequence": "77", "Nats-Msg-Id": "x", "Nats-Rollup": "all", "Other": "x",
	} {
		m.Header[name] = []string{v}
	}
	reply, err := o.conn.RequestMsg(m, 5*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	var a es.Answer
	if err := json.Unmarshal(reply.Data, &a); err != nil || a.Status != es.StatusStored {
		t.Fatalf("%s, %v", reply.Data, err)
	}
	stream, err := o.js.Stream(t.Context(), topology.InboxStream)
	if err != nil {
		t.Fatal(err)
	}
	stored, err := stream.GetMsg(t.Context(), a.Sequence)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for name := range stored.Header {
		names = append(names, name)
	}
	slices.Sort(names)
	want := []string{"Cat-Actor", "Cat-Command", "Cat-Correlation", "Cat-On-Behalf-Of", "Cat-Verb", "Content-Type"}
	if diff := cmp.Diff(want, names); diff != "" || stored.Subject != "inbox.account.shop" {
		t.Errorf("stored under %s with the headers (-want +found):\n%s", stored.Subject, diff)
	}
	system, err := o.intake.Actors.ID(t.Context(), dispatch.Who{Name: "system"})
	if err != nil {
		t.Fatal(err)
	}
	zoe, err := o.intake.Actors.ID(t.Context(), dispatch.Who{Name: "Zoë"})
	if err != nil {
		t.Fatal(err)
	}
	b := start(t, o.ledger)
	o.work(o.store, b.writer.Submit)
	if r := o.outcome(r.ID); r.Status != es.StatusAccepted || r.Actor != system {
		t.Fatalf("%+v", r)
	}
	e := history(t, o.ledger)[1]
	if e.Command.Actor != system || e.Command.OnBehalfOf != zoe || e.Command.Correlation != r.Correlation {
		t.Errorf("the event is by %q for %q in %q", e.Command.Actor, e.Command.OnBehalfOf, e.Command.Correlation)
	}
	// The same command, sent to the writer itself, is the same command.
	again := command(pay{Account: "shop", Amount: 1}, func(c *es.Command) { c.ID = r.ID })
	if a := b.send(again); !a.Repeated {
		t.Errorf("sent past the inbox: %+v", a)
	}
}

func TestInboxRefusesAtOnceWhatIsMalformed(t *testing.T) {
	o := openOffice(t)
	for _, tt := range []struct {
		name   string
		change func(*dispatch.Request)
		status es.Status
		code   string
	}{
		{"no such command", func(r *dispatch.Request) { r.Verb = "rob" }, es.StatusInvalid, "unknown-command"},
		{"no JSON", func(r *dispatch.Request) { r.Body = []byte(`{`) }, es.StatusInvalid, "bad-body"},
		{"a bad id", func(r *dispatch.Request) { r.ID = "x" }, es.StatusInvalid, "bad-id"},
		{"an id of last year", func(r *dispatch.Request) { r.ID = "01941f29-7c00-7000-8000-000000000001" }, es.StatusExpired, "id-expired"},
		{"a huge body", func(r *dispatch.Request) { r.Body = make([]byte, dispatch.MaxBodyBytes+1) }, es.StatusInvalid, "too-large"},
	} {
		a, err := o.client.Send(t.Context(), payment("shop", 1, tt.change))
		if err != nil || a.Status != tt.status || a.Error == nil || a.Error.Code != tt.code {
			t.Errorf("%s: %+v, %v", tt.name, a, err)
		}
	}
	if n := o.left(); n != 0 {
		t.Errorf("%d commands are in the inbox", n)
	}
	page, err := o.client.ParkedPage(t.Context(), "", 0)
	if err != nil || len(page.Items) != 0 {
		t.Errorf("parked: %+v, %v", page, err)
	}
}
