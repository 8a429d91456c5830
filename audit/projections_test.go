package audit

import (
	"context"
	"log/slog"
	"strings"
	"testing"

	"github.com/cockroachdb/errors"
	"github.com/google/go-cmp/cmp"

	"catenary/es"
	"catenary/es/project"
	"catenary/events"
	"catenary/internal/topology"
)

// TestProjections asks for more than fits into one message.
func TestProjections(t *testing.T) {
	t.Parallel()
	want := project.Status{Tail: 42, Reason: "the stream is damaged", Unknown: []project.UnknownType{{Type: "a.b.v1", Events: 1, First: 2, Last: 2}}}
	for _, name := range topology.ChainBuckets() {
		v := project.ViewStatus{View: name, State: project.StateRunning, Policy: project.PolicyPark, Position: project.Progress{Event: 41, Revision: 7}}
		for i := range project.MaxListed {
			v.Skipped = append(v.Skipped, project.Skip{Event: uint64(i), Decision: project.Decision{Reason: strings.Repeat("x", 4<<10)}})
		}
		want.Views = append(want.Views, v)
	}
	fails := false
	a := serve(t, func(c *Config) {
		c.Projections = func(context.Context) (project.Status, error) {
			if fails {
				return project.Status{}, errors.New("out of order")
			}
			return want, nil
		}
	})
	found, err := a.client.Projections(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, found); diff != "" {
		t.Errorf("projections (-told +found):\n%.2000s", diff)
	}
	if m, err := a.nc.Request(topology.QuerySubject(QuestionProjections), []byte(`{"view":"x"}`), waitLimit); err != nil || m.Header.Get("Nats-Service-Error-Code") != codeInvalid {
		t.Errorf("a question it does not know: %v, %v", m, err)
	}
	fails = true
	if _, err := a.client.Projections(t.Context()); !errors.Is(err, ErrFailed) {
		t.Errorf("error %v", err)
	}
}

// TestProjectionsTellOfErasing: who had a person forgotten sees while the name still stands beside the store's file.
func TestProjectionsTellOfErasing(t *testing.T) {
	t.Parallel()
	a := serve(t, func(c *Config) {
		c.Past = &toldPast{state: StoreState{Answers: true, Erasing: true}}
		c.Projections = func(context.Context) (project.Status, error) { return project.Status{}, nil }
	})
	found, err := a.client.Projections(t.Context())
	if err != nil || len(found.Views) != 1 {
		t.Fatalf("views %+v (%v)", found.Views, err)
	}
	if v := found.Views[0]; v.State != project.StateRunning || !strings.Contains(v.Reason, "still stands in the journal") {
		t.Errorf("it says %+v", v)
	}
}

// TestTail asks a service that tells nothing but the end of the stream.
func TestTail(t *testing.T) {
	t.Parallel()
	a := serve(t, nil)
	if _, err := a.client.Tail(t.Context()); !errors.Is(err, ErrNoService) {
		t.Errorf("without a writer: %v", err)
	}
	s, err := ServeTail(a.bus.Connect(t), Config{Store: a.store, Version: "1.2.3", Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	}()
	a.add(t, es.Event{Ref: es.Ref{Aggregate: "node", Key: "n1"}}, events.NodeRetired{Reason: "old"})
	if found, err := a.client.Tail(t.Context()); err != nil || found.Sequence != 1 {
		t.Errorf("tail %+v, %v", found, err)
	}
}
