package dispatch_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/errors"
	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nats.go/micro"

	"catenary/es"
	"catenary/es/dispatch"
	"catenary/es/estest"
)

// payments reads the one command of the ledger.
type payments struct{}

func (payments) Decode(aggregate, verb, contentType string, body []byte) (es.Payload, error) {
	var p pay
	if aggregate != "account" || verb != "pay" {
		return nil, &es.Refusal{Status: es.StatusInvalid, Code: "unknown-command", Message: "there is no " + aggregate + " " + verb}
	}
	if err := json.Unmarshal(body, &p); err != nil {
		return nil, &es.Refusal{Status: es.StatusInvalid, Code: "bad-body", Message: err.Error()}
	}
	return p, p.Validate()
}

func (payments) Digest(p es.Payload) (string, error) { return es.Digest([]byte(fmt.Sprint(p))), nil }

// counter serves the ledger's command on a real server.
type counter struct {
	bus       *estest.Bus
	conn      *nats.Conn
	client    *dispatch.Client
	bench     *bench
	directory *dispatch.BucketDirectory
}

func serve(t *testing.T) *counter {
	t.Helper()
	bus := estest.Server(t, false)
	nc := bus.Connect(t)
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	if _, err := js.CreateKeyValue(ctx, jetstream.KeyValueConfig{Bucket: "actors"}); err != nil {
		t.Fatal(err)
	}
	d, err := dispatch.OpenDirectory(ctx, js, "actors")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	actors, err := dispatch.NewActors(ctx, d, func() string { n++; return fmt.Sprintf("a-%d", n) })
	if err != nil {
		t.Fatal(err)
	}
	b := start(t, memory(t))
	logger := slog.New(slog.DiscardHandler)
	s, err := dispatch.NewService(ctx, dispatch.ServiceConfig{
		Name: "test-writer", Version: "1.0.0", Conn: nc, Offer: b.writer.Offer, Inside: "system", Logger: logger,
		Intake: &dispatch.Intake{Decoder: payments{}, Actors: actors, NewID: newID, Logger: logger}, Commands: []string{"account.pay"},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	})
	return &counter{bus: bus, conn: nc, client: dispatch.NewClient(nc), bench: b, directory: d}
}

func TestServiceCarriesEverything(t *testing.T) {
	c := serve(t)
	effective := time.Date(2026, 5, 1, 7, 34, 45, 123456789, time.UTC)
	o := dispatch.Options{
		ID: newID(), Expected: at(0), Effective: effective, OnBehalfOf: "Zoë 100%", Causation: "ticket 7", Correlation: "wave\n2",
		Trace: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", Deadline: time.Now().Add(time.Minute),
	}
	request := dispatch.Request{Aggregate: "account", Verb: "pay", Body: []byte(`{"account":"shop","amount":4}`), Options: o}
	first, err := c.client.Send(t.Context(), request)
	if err != nil || first.Status != es.StatusAccepted {
		t.Fatalf("%+v, %v", first, err)
	}
	again, err := c.client.Send(t.Context(), request)
	if err != nil || !again.Repeated {
		t.Fatalf("repeat: %+v, %v", again, err)
	}
	events := history(t, c.bench.store)
	e := events[len(events)-1]
	who, err := c.directory.Load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got := who[e.Command.Actor]; got.Name != "system" {
		t.Errorf("actor %q is %+v", e.Command.Actor, got)
	}
	if got := who[e.Command.OnBehalfOf]; got.Name != o.OnBehalfOf {
		t.Errorf("on behalf of %q is %+v", e.Command.OnBehalfOf, got)
	}
	e.Command.Actor, e.Command.OnBehalfOf, e.Command.Digest = "", "", ""
	want := es.Cause{ID: o.ID, Ref: account("shop"), Causation: o.Causation, Correlation: o.Correlation, Trace: o.Trace}
	if diff := cmp.Diff(want, e.Command); diff != "" || !e.Effective.Equal(effective) {
		t.Errorf("effective %s, cause (-want +got):\n%s", e.Effective, diff)
	}
}

func TestServiceRefusesWhatIsMalformed(t *testing.T) {
	c := serve(t)
	tests := []struct {
		name, subject, body string
		header              map[string]string
		status              es.Status
		code                string
	}{
		{"no such command", "account.rob", `{}`, nil, es.StatusInvalid, "unknown-command"},
		{"no JSON", "account.pay", `{`, nil, es.StatusInvalid, "bad-body"},
		{"no name", "account.pay", `{"amount":1}`, nil, es.StatusInvalid, ""},
		{"a huge body", "account.pay", `{"account":"` + strings.Repeat("x", dispatch.MaxBodyBytes) + `"}`, nil, es.StatusInvalid, "too-large"},
		{"a bad version", "account.pay", `{"account":"a"}`, map[string]string{dispatch.HeaderExpected: "-1"}, es.StatusInvalid, "bad-header"},
		{"a bad time", "account.pay", `{"account":"a"}`, map[string]string{dispatch.HeaderEffective: "yesterday"}, es.StatusInvalid, "bad-header"},
		{"a time before all", "account.pay", `{"account":"a"}`, map[string]string{dispatch.HeaderDeadline: "0001-01-01T00:00:00Z"}, es.StatusInvalid, "bad-header"},
		{"a bad backfill", "account.pay", `{"account":"a"}`, map[string]string{dispatch.HeaderBackfill: "yes"}, es.StatusInvalid, "bad-header"},
		{"a bad fence", "account.pay", `{"account":"a"}`, map[string]string{dispatch.HeaderFence: "0"}, es.StatusInvalid, "bad-header"},
		{"a header that is not encoded", "account.pay", `{"account":"a"}`, map[string]string{dispatch.HeaderOnBehalfOf: "100%"}, es.StatusInvalid, "bad-header"},
		{"a misspelt header", "account.pay", `{"account":"a","amount":1}`, map[string]string{"Cat-Expected": "7"}, es.StatusInvalid, "bad-header"},
		{"a header in another case", "account.pay", `{"account":"a","amount":1}`, map[string]string{strings.ToLower(dispatch.HeaderExpected): "7"}, es.StatusInvalid, "bad-header"},
		{"a header of ours that no sender writes", "account.pay", `{"account":"a","amount":1}`, map[string]string{"Cat-Verb": "rob"}, es.StatusInvalid, "bad-header"},
		{"an empty header", "account.pay", `{"account":"a","amount":1}`, map[string]string{dispatch.HeaderExpected: ""}, es.StatusInvalid, "bad-header"},
		{"a huge header", "account.pay", `{"account":"a"}`, map[string]string{dispatch.HeaderCorrelation: strings.Repeat("x", 2000)}, es.StatusInvalid, "too-large"},
		{"a bad id", "account.pay", `{"account":"a","amount":1}`, map[string]string{dispatch.HeaderCommand: "x"}, es.StatusInvalid, "bad-id"},
	}
	for _, tt := range tests {
		m := nats.NewMsg(dispatch.CommandPrefix + "." + tt.subject)
		m.Data = []byte(tt.body)
		for k, v := range tt.header {
			m.Header[k] = []string{v}
		}
		reply, err := c.conn.RequestMsg(m, 5*time.Second)
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		var a es.Answer
		if err := json.Unmarshal(reply.Data, &a); err != nil {
			t.Errorf("%s: %s: %v", tt.name, reply.Data, err)
			continue
		}
		if a.Status != tt.status || a.Error == nil || tt.code != "" && a.Error.Code != tt.code {
			t.Errorf("%s: got %s %+v", tt.name, a.Status, a.Error)
		}
		if got := reply.Header.Get(micro.ErrorCodeHeader); got != string(tt.status) {
			t.Errorf("%s: error header %q", tt.name, got)
		}
	}
	if events := history(t, c.bench.store); len(events) != 1 {
		t.Errorf("%d events stand, only the writer's start should", len(events))
	}
}

func TestClientSaysWhyNoAnswerCame(t *testing.T) {
	bus := estest.Server(t, false)
	client := dispatch.NewClient(bus.Connect(t))
	r := dispatch.Request{Aggregate: "account", Verb: "pay", Body: []byte(`{}`)}
	if _, err := client.Send(t.Context(), r); !errors.Is(err, dispatch.ErrNoWriter) {
		t.Errorf("without a writer: %v", err)
	}
	silent := bus.Connect(t)
	if _, err := silent.Subscribe(dispatch.CommandPrefix+".>", func(*nats.Msg) {}); err != nil {
		t.Fatal(err)
	}
	if err := silent.Flush(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := client.Send(ctx, r); !errors.Is(err, dispatch.ErrTimeout) {
		t.Errorf("without an answer: %v", err)
	}
	r.Body = make([]byte, 5<<20)
	if _, err := client.Send(t.Context(), r); !errors.Is(err, dispatch.ErrTooLarge) {
		t.Errorf("with 5 MiB: %v", err)
	}
	bus.Stop()
	ctx, cancel = context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := client.Send(ctx, dispatch.Request{Aggregate: "account", Verb: "pay"}); err == nil {
		t.Error("without a bus: no error")
	}
}
