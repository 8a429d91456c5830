package dispatch_test

import (
	"context"
	"testing"
	"time"

	"github.com/cockroachdb/errors"
	"github.com/google/go-cmp/cmp"

	"catenary/es"
	"catenary/es/dispatch"
	"catenary/es/estest"
)

// A writer starts over a store that is full: what leaves no events is answered, what does is refused with the reason, and when
// there is room its start is recorded before anything else.
func TestWriterStartsOverAFullStore(t *testing.T) {
	t.Parallel()
	truth := memory(t)
	b := start(t, truth)
	done := command(pay{Account: "shop", Amount: 5})
	first := b.send(done)
	if err := b.stop(); err != nil {
		t.Fatal(err)
	}
	store := estest.NewFaulty(truth)
	room := make(chan struct{})
	store.Script(untilRoom(store, room))
	b = start(t, store, func(c *dispatch.Config) { c.Patience = time.Second })
	if a := b.send(done); !a.Repeated || a.Sequence != first.Sequence {
		t.Errorf("a repeat: %+v; want %+v", a, first)
	}
	if a := b.send(command(pay{Account: "shop"})); a.Status != es.StatusUnchanged {
		t.Errorf("a command without events: %+v", a)
	}
	if a := b.send(command(pay{Account: "shop", Amount: 1})); a.Status != es.StatusRejected || a.Error.Code != "store-full" {
		t.Errorf("a command with events: %+v", a)
	}
	close(room)
	for begun := time.Now(); ; {
		a := b.send(command(pay{Account: "shop", Amount: 1}))
		if a.Status == es.StatusAccepted {
			break
		}
		if a.Status != es.StatusRejected || time.Since(begun) > 20*time.Second {
			t.Fatalf("got %+v", a)
		}
	}
	var types []string
	for _, e := range history(t, truth) {
		types = append(types, e.Type)
	}
	want := []string{"writer.opened.v1", "account.moved.v1", "writer.opened.v1", "account.moved.v1"}
	if diff := cmp.Diff(want, types); diff != "" {
		t.Error(diff)
	}
}

// untilRoom refuses all appends as a full store does, until there is room.
func untilRoom(f *estest.Faulty, room <-chan struct{}) estest.Fault {
	full := estest.Refuse(errors.Mark(errors.New("maximum bytes exceeded"), es.ErrFull))
	return func(s *estest.Faulty, ctx context.Context, after es.Head, batch []es.Message) es.Pending {
		select {
		case <-room:
			return estest.Pass(s, ctx, after, batch)
		default:
			f.Script(untilRoom(f, room))
			return full(s, ctx, after, batch)
		}
	}
}
