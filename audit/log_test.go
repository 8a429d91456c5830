package audit

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/errors"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"catenary/es"
	"catenary/es/estest"
	"catenary/es/memstore"
	"catenary/events"
)

// recorded is a store with events, and the events as they were made.
type recorded struct {
	store  *memstore.Store
	chain  estest.Chain
	events []es.Event
}

func newRecorded() *recorded {
	return &recorded{store: memstore.New(memstore.Config{}), chain: estest.Chain{Label: "e"}}
}

// add appends one event. What it leaves open is filled in.
func (r *recorded) add(t interface{ Fatalf(string, ...any) }, e es.Event, data any) es.Event {
	if data != nil {
		var err error
		if e.Type, e.Body, err = events.Registry().Encode(data); err != nil {
			t.Fatalf("encode: %v", err)
		}
	}
	after := r.chain.Head
	m := r.chain.Seal(&e)
	if err := es.Wait(context.Background(), r.store.Append(context.Background(), after, []es.Message{m})); err != nil {
		t.Fatalf("append: %v", err)
	}
	e.Sequence = m.Sequence
	r.events = append(r.events, e)
	return e
}

func (r *recorded) log() log { return log{store: r.store, registry: events.Registry()} }

// TestLogPages checks that all pages together, in both directions and whatever their size, are the events a plain loop over
// the stream picks.
func TestLogPages(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		r := newRecorded()
		at := estest.Epoch()
		for range rapid.IntRange(0, 1200).Draw(t, "events") {
			// A clock may be set back, by less than the slack.
			at = at.Add(time.Duration(rapid.IntRange(-20, 60).Draw(t, "step")) * time.Minute)
			r.add(t, es.Event{
				Ref:      es.Ref{Aggregate: rapid.SampledFrom([]string{"node", "module"}).Draw(t, "aggregate"), Key: rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "key")},
				Type:     "node.retired.v1",
				Body:     []byte{0x80},
				Recorded: at,
				Command:  es.Cause{Actor: rapid.SampledFrom([]string{"ann", "bob"}).Draw(t, "actor"), OnBehalfOf: rapid.SampledFrom([]string{"", "eve"}).Draw(t, "for")},
			}, nil)
		}
		q := LogQuestion{
			Aggregate: rapid.SampledFrom([]string{"", "node", "module", "freeze"}).Draw(t, "only aggregate"),
			Keys:      rapid.SampledFrom([][]string{nil, {"a"}, {"a", "b"}}).Draw(t, "only keys"),
			Actors:    rapid.SampledFrom([][]string{nil, {"bob"}, {"eve", "nobody"}}).Draw(t, "only actors"),
			Limit:     rapid.SampledFrom([]int{0, 1, 7, 300}).Draw(t, "limit"),
			Oldest:    rapid.Bool().Draw(t, "oldest first"),
		}
		if rapid.Bool().Draw(t, "with since") {
			q.Since = estest.Epoch().Add(time.Duration(rapid.IntRange(0, 400).Draw(t, "since")) * time.Hour)
		}
		if rapid.Bool().Draw(t, "with until") {
			q.Until = q.Since.Add(time.Duration(rapid.IntRange(0, 400).Draw(t, "until")) * time.Hour)
			if q.Since.IsZero() {
				q.Until = estest.Epoch().Add(q.Until.Sub(q.Since))
			}
		}
		var want []uint64
		for _, e := range r.events {
			if q.matches(e) {
				want = append(want, e.Sequence)
			}
		}
		if !q.Oldest {
			slices.Reverse(want)
		}
		var found []uint64
		for pages := 0; ; pages++ {
			if pages > len(r.events)+2 {
				t.Fatalf("%d pages, and no end", pages)
			}
			page, err := r.log().page(context.Background(), q)
			if err != nil {
				t.Fatalf("page %d: %v", pages, err)
			}
			if q.Limit > 0 && len(page.Items) > q.Limit {
				t.Fatalf("%d events in a page of at most %d", len(page.Items), q.Limit)
			}
			for _, item := range page.Items {
				found = append(found, item.Sequence)
			}
			if !page.More {
				break
			}
			if q.Oldest {
				q.After = page.Next
			} else {
				q.Before = page.Next
			}
		}
		if diff := cmp.Diff(want, found); diff != "" {
			t.Fatalf("events (-want +found):\n%s", diff)
		}
	})
}

func TestLogRefuses(t *testing.T) {
	t.Parallel()
	now := estest.Epoch()
	for name, q := range map[string]LogQuestion{
		"a negative limit":      {Limit: -1},
		"too many keys":         {Aggregate: "node", Keys: make([]string, MaxKeys+1)},
		"both directions":       {Before: 3, After: 1},
		"waiting for the past":  {Wait: Duration(time.Second)},
		"until before since":    {Since: now, Until: now.Add(-time.Second)},
		"before, oldest first":  {Before: 3, Oldest: true},
		"waiting before a past": {Before: 3, Wait: Duration(time.Second)},
		"a pattern":             {Aggregate: "*", Keys: []string{"n1"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := newRecorded().log().page(t.Context(), q); !errors.Is(err, ErrInvalid) {
				t.Errorf("error %v, want one marked ErrInvalid", err)
			}
		})
	}
}

// TestLogKeysAreNoPatterns: a key that no event can have finds nothing, also when it would match all as a subject.
func TestLogKeysAreNoPatterns(t *testing.T) {
	t.Parallel()
	r := newRecorded()
	r.add(t, es.Event{Ref: es.Ref{Aggregate: "node", Key: "n1"}}, events.NodeRetired{})
	for _, key := range []string{">", "*", "", "n1.>", "."} {
		page, err := log{store: patterns{r.store}, registry: events.Registry()}.page(t.Context(), LogQuestion{Aggregate: "node", Keys: []string{key}})
		if err != nil || len(page.Items) != 0 {
			t.Errorf("key %q gave %+v (%v), want nothing", key, page.Items, err)
		}
	}
}

// patterns is a store that takes a key for a subject, as a server does.
type patterns struct{ *memstore.Store }

func (p patterns) ReadAggregate(ctx context.Context, ref es.Ref) iter.Seq2[es.Message, error] {
	if strings.ContainsAny(ref.Key, "*>") {
		return p.Read(ctx, 0)
	}
	return p.Store.ReadAggregate(ctx, ref)
}

func TestLogItems(t *testing.T) {
	t.Parallel()
	r := newRecorded()
	effective := estest.Epoch().Add(-time.Hour)
	r.add(t, es.Event{
		ID: "e1", Ref: es.Ref{Aggregate: "node", Key: "n1"}, Version: 1, Effective: effective, Backfill: true,
		Command: es.Cause{ID: "c1", Actor: "a1", OnBehalfOf: "a2", Causation: "x", Correlation: "y"},
	}, events.NodeRegistered{Node: "n1", Labels: map[string]string{"zone": "<a>"}, ManagedBy: "agent"})
	r.add(t, es.Event{ID: "e2", Ref: es.Ref{Aggregate: "node", Key: "n1"}, Version: 2, Type: "node.painted.v7", Body: []byte{1, 2}, Command: es.Cause{ID: "c2"}}, nil)
	r.add(t, es.Event{ID: "e3", Ref: es.Ref{Aggregate: "node", Key: "n1"}, Version: 3, Type: events.TypeNodeRetired, Body: []byte{0xc1}, Command: es.Cause{ID: "c3"}}, nil)
	page, err := r.log().page(t.Context(), LogQuestion{Oldest: true})
	if err != nil {
		t.Fatal(err)
	}
	for i := range page.Items {
		if i > 0 && page.Items[i].Problem == "" {
			t.Errorf("event %d has no data and does not say why", i+1)
		}
		page.Items[i].Problem = ""
	}
	second := func(n int) time.Time { return estest.Epoch().Add(time.Duration(n) * time.Second) }
	want := LogPage{Next: 3, Items: []Item{
		{
			Sequence: 1, ID: "e1", Type: events.TypeNodeRegistered, Aggregate: "node", Key: "n1", Version: 1, Recorded: second(1),
			Effective: effective, Backfill: true, Command: "c1", Actor: "a1", OnBehalfOf: "a2", Causation: "x", Correlation: "y",
			Data: []byte(`{"node":"n1","labels":{"zone":"<a>"},"managed-by":"agent"}`),
		},
		{
			Sequence: 2, ID: "e2", Type: "node.painted.v7", Aggregate: "node", Key: "n1", Version: 2, Recorded: second(2),
			Effective: second(2), Command: "c2", Body: []byte{1, 2},
		},
		{
			Sequence: 3, ID: "e3", Type: events.TypeNodeRetired, Aggregate: "node", Key: "n1", Version: 3, Recorded: second(3),
			Effective: second(3), Command: "c3", Body: []byte{0xc1},
		},
	}}
	if diff := cmp.Diff(want, page); diff != "" {
		t.Errorf("page (-want +found):\n%s", diff)
	}
}

// TestLogShowsWhatIsNoEvent: a message that nobody of ours wrote is the one to be seen first.
func TestLogShowsWhatIsNoEvent(t *testing.T) {
	t.Parallel()
	r := newRecorded()
	m := es.Message{Subject: "evt.node.n1", Header: map[string][]string{}, Body: []byte("hello")}
	es.Head{}.Seal(&m)
	if err := es.Wait(t.Context(), r.store.Append(t.Context(), es.Head{}, []es.Message{m})); err != nil {
		t.Fatal(err)
	}
	page, err := r.log().page(t.Context(), LogQuestion{})
	if err != nil {
		t.Fatal(err)
	}
	if len(page.Items) != 1 || page.Items[0].Problem == "" {
		t.Fatalf("found %+v, want the message with what is wrong with it", page.Items)
	}
	page.Items[0].Problem = ""
	want := []Item{{Sequence: 1, Aggregate: "node", Key: "n1", Body: []byte("hello")}}
	if diff := cmp.Diff(want, page.Items); diff != "" {
		t.Errorf("items (-want +found):\n%s", diff)
	}
}

func TestLogWaits(t *testing.T) {
	t.Parallel()
	r := newRecorded()
	r.add(t, es.Event{Ref: es.Ref{Aggregate: "node", Key: "n1"}}, events.NodeRetired{})
	// Nothing comes: the question ends by itself, empty.
	page, err := r.log().page(t.Context(), LogQuestion{After: 1, Wait: Duration(time.Millisecond)})
	if err != nil || len(page.Items) != 0 || page.Next != 1 {
		t.Fatalf("page %+v, error %v; want an empty page that ends at 1", page, err)
	}
	// Something comes for another instance: the cursor passes it, so that the next question does not find it again.
	r.add(t, es.Event{Ref: es.Ref{Aggregate: "node", Key: "n2"}}, events.NodeRetired{})
	page, err = r.log().page(t.Context(), LogQuestion{After: 1, Aggregate: "node", Keys: []string{"n1"}, Wait: Duration(MaxWait)})
	if err != nil || len(page.Items) != 0 || page.Next != 2 {
		t.Fatalf("page %+v, error %v; want an empty page that ends at 2", page, err)
	}
	found := make(chan string, 1)
	go func() {
		page, err := r.log().page(t.Context(), LogQuestion{After: 2, Wait: Duration(MaxWait)})
		if err != nil || len(page.Items) != 1 {
			found <- fmt.Sprintf("page %+v, error %v", page, err)
			return
		}
		found <- page.Items[0].Key
	}()
	r.add(t, es.Event{Ref: es.Ref{Aggregate: "node", Key: "n3"}}, events.NodeRetired{})
	if got := <-found; got != "n3" {
		t.Errorf("waited for event 3 of n3, found %s", got)
	}
}

// TestPageful checks that as much is held as fills a page, and no more, be it by number or by size.
func TestPageful(t *testing.T) {
	t.Parallel()
	for name, size := range map[string]int{"small ones": 10, "large ones": maxPageBytes / 4} {
		p, body := pageful{limit: 100}, make([]byte, size)
		for i := range uint64(1000) {
			p.push(es.Message{Sequence: i + 1, Body: body})
			if !p.full() && p.dropped {
				t.Fatalf("%s: %d of %d messages fill no page", name, len(p.kept), i+1)
			}
			if last := p.kept[len(p.kept)-1].Sequence; last != i+1 {
				t.Fatalf("%s: the last message is %d, want %d", name, last, i+1)
			}
		}
		want := min(100, maxPageBytes/size)
		if len(p.kept) != want || !p.dropped {
			t.Errorf("%s: %d messages are held, want %d", name, len(p.kept), want)
		}
	}
}
