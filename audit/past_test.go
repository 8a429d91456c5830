package audit

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/errors"
	"github.com/google/go-cmp/cmp"

	"catenary/es"
	"catenary/events"
)

// toldPast is a store that answers what a test tells it to.
type toldPast struct {
	*Client // what is not told is not asked
	asOf    func(AsOfQuestion) (AsOfAnswer, error)
	log     func(LogQuestion) (LogPage, error)
	state   StoreState
	waited  atomic.Uint64
}

func (p *toldPast) AsOf(_ context.Context, q AsOfQuestion) (AsOfAnswer, error) { return p.asOf(q) }

func (p *toldPast) Log(_ context.Context, q LogQuestion) (LogPage, error) { return p.log(q) }

func (p *toldPast) Status() StoreState { return p.state }

func (p *toldPast) Wait(_ context.Context, event uint64) error {
	p.waited.Store(event)
	if p.state.Event < event {
		return errors.Mark(errors.New("never"), ErrStoreBehind)
	}
	return nil
}

func (p *toldPast) Await(context.Context, LogPlace) {}

// TestWithoutStore: what only an audit store can answer is refused with what to do, everything else is answered.
func TestWithoutStore(t *testing.T) {
	t.Parallel()
	a := serve(t, nil)
	a.add(t, es.Event{Ref: es.Ref{Aggregate: "node", Key: "n1"}}, events.NodeRetired{})
	_, err := a.client.AsOf(t.Context(), AsOfQuestion{})
	if !errors.Is(err, ErrNoStore) || !strings.Contains(errors.FlattenHints(err), "--no-audit") {
		t.Errorf("as-of gave %v with the hint %q", err, errors.FlattenHints(err))
	}
	if _, err := a.client.Log(t.Context(), LogQuestion{Text: "n1"}); !errors.Is(err, ErrNoStore) {
		t.Errorf("a log of words gave %v", err)
	}
	if page, err := a.client.Log(t.Context(), LogQuestion{}); err != nil || len(page.Items) != 1 {
		t.Errorf("log gave %+v (%v)", page, err)
	}
	p, err := a.client.Position(t.Context(), PositionQuestion{Sequence: 1, Audit: true})
	if err != nil || p.Audit != nil || !p.Reached {
		t.Errorf("position gave %+v (%v)", p, err)
	}
}

// TestAnswersTravel: an answer of any size arrives as it was given, and so do errors with their kind and hints.
func TestAnswersTravel(t *testing.T) {
	t.Parallel()
	var standing []Standing
	for i := range uint64(5000) {
		standing = append(standing, Standing{Node: strings.Repeat("n", 200), Module: "web <b>", Sequence: i})
	}
	past := &toldPast{state: StoreState{Event: 1, Answers: true}}
	past.asOf = func(q AsOfQuestion) (AsOfAnswer, error) {
		switch q.Node {
		case "unknown":
			return AsOfAnswer{}, errors.Mark(errors.WithHint(errors.New("no such\nnode"), "look\r\nelsewhere"), ErrNotFound)
		case "behind":
			return AsOfAnswer{}, errors.Mark(errors.New("not yet"), ErrStoreBehind)
		}
		return AsOfAnswer{Shows: ShowsTold, Assignments: standing, Next: "more", Basis: Basis{Through: 7}}, nil
	}
	a := serve(t, func(c *Config) { c.Past = past })
	a.add(t, es.Event{Ref: es.Ref{Aggregate: "node", Key: "n1"}}, events.NodeRetired{})
	found, err := a.client.AsOf(t.Context(), AsOfQuestion{})
	if err != nil {
		t.Fatal(err)
	}
	want := AsOfAnswer{Shows: ShowsTold, Assignments: standing, Next: "more", Basis: Basis{Through: 7, Tail: 1}}
	if diff := cmp.Diff(want, found); diff != "" {
		t.Errorf("as-of (-given +found):\n%s", diff)
	}
	if past.waited.Load() != 1 {
		t.Errorf("the answer waited for event %d, want 1: what was recorded before the question", past.waited.Load())
	}
	_, err = a.client.AsOf(t.Context(), AsOfQuestion{Node: "unknown"})
	if !errors.Is(err, ErrNotFound) || !strings.Contains(err.Error(), "no such node") || errors.FlattenHints(err) != "look elsewhere" {
		t.Errorf("it gave %v with the hint %q", err, errors.FlattenHints(err))
	}
	if _, err = a.client.AsOf(t.Context(), AsOfQuestion{Node: "behind"}); !errors.Is(err, ErrStoreBehind) {
		t.Errorf("it gave %v", err)
	}
}

// TestLogFrom: the log comes from the audit store where that has everything, and from the stream where not.
func TestLogFrom(t *testing.T) {
	t.Parallel()
	past := &toldPast{log: func(LogQuestion) (LogPage, error) { return LogPage{Items: []Item{{ID: "from the store"}}}, nil }}
	a := serve(t, func(c *Config) { c.Past = past })
	a.add(t, es.Event{ID: "from the stream", Ref: es.Ref{Aggregate: "node", Key: "n1"}}, events.NodeRetired{})
	for name, c := range map[string]struct {
		state StoreState
		q     LogQuestion
		want  string
	}{
		"it has everything":               {StoreState{Event: 1}, LogQuestion{}, "from the store"},
		"it is behind":                    {StoreState{}, LogQuestion{}, "from the stream"},
		"it is being built":               {StoreState{Event: 1, Building: true, Answers: true}, LogQuestion{}, "from the stream"},
		"it has stopped":                  {StoreState{Stopped: "broken"}, LogQuestion{}, "from the stream"},
		"it alone can answer":             {StoreState{Stopped: "broken"}, LogQuestion{Text: "x"}, "from the store"},
		"a follower waits for more":       {StoreState{Event: 1}, LogQuestion{Oldest: true, Wait: 1}, "from the stream"},
		"a follower that filters as well": {StoreState{Event: 1}, LogQuestion{Oldest: true, Wait: 1, Node: "n1"}, "from the store"},
	} {
		past.state = c.state
		page, err := a.client.Log(t.Context(), c.q)
		if err != nil || len(page.Items) != 1 || page.Items[0].ID != c.want {
			t.Errorf("%s: log gave %+v (%v), want it %s", name, page, err, c.want)
		}
	}
	past.state = StoreState{Event: 1}
	p, err := a.client.Position(t.Context(), PositionQuestion{Sequence: 2, Audit: true, Wait: 1})
	if err != nil || p.Reached || p.Audit == nil || p.Audit.Event != 1 || past.waited.Load() != 2 {
		t.Errorf("position gave %+v (%v)", p, err)
	}
}

// TestAnswersSayHowFar: an answer says what it rests on and where the stream ended, and one that can't be given says how far the store is,
// and what to do.
func TestAnswersSayHowFar(t *testing.T) {
	t.Parallel()
	past := &toldPast{
		asOf: func(AsOfQuestion) (AsOfAnswer, error) { return AsOfAnswer{}, StoreState{Event: 7}.Unready(0) },
		log:  func(LogQuestion) (LogPage, error) { return LogPage{Through: 1}, nil },
	}
	a := serve(t, func(c *Config) { c.Past = past })
	for range 3 {
		a.add(t, es.Event{Ref: es.Ref{Aggregate: "node", Key: "n1"}}, events.NodeRetired{})
	}
	for name, c := range map[string]struct {
		state      StoreState
		kind       error
		says, hint string
	}{
		"is built":    {StoreState{Event: 2, Building: true}, ErrStoreBehind, "is being built, and has come to event 2 of 3", "ask again"},
		"has stopped": {StoreState{Event: 2, Stopped: "event 3 is of a newer program"}, ErrStoreStopped, "has stopped at event 2 of 3: event 3 is of a newer program", "deal with the reason"},
		"has trouble": {StoreState{Event: 2, Trouble: "disk full"}, ErrStoreBehind, "can't go on at event 2 of 3: disk full", "tries again by itself"},
	} {
		past.state = c.state
		_, err := a.client.AsOf(t.Context(), AsOfQuestion{})
		if !errors.Is(err, c.kind) || !strings.Contains(err.Error(), c.says) || !strings.Contains(errors.FlattenHints(err), c.hint) {
			t.Errorf("a store that %s gave %v with the hint %q", name, err, errors.FlattenHints(err))
		}
	}
	past.state = StoreState{Event: 1, Answers: true}
	page, err := a.client.Log(t.Context(), LogQuestion{Text: "x"})
	if err != nil || page.Through != 1 || page.Tail != 3 {
		t.Errorf("the log is %+v (%v), want that it says through which event it is, and where the stream ends", page, err)
	}
	recorded := time.Date(2026, 8, 1, 0, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		basis  Basis
		known  time.Time
		misses bool
	}{
		"all is in":                        {Basis{Through: 3, Tail: 3}, time.Time{}, false},
		"the end is not known":             {Basis{Through: 3}, time.Time{}, false},
		"it is behind":                     {Basis{Through: 2, Tail: 3, Recorded: recorded}, time.Time{}, true},
		"it is behind what was known then": {Basis{Through: 2, Tail: 3, Recorded: recorded}, recorded.Add(time.Hour), true},
		"all that was known then is in":    {Basis{Through: 2, Tail: 3, Recorded: recorded}, recorded.Add(-time.Hour), false},
	} {
		if c.basis.Misses(c.known) != c.misses {
			t.Errorf("%s: the answer misses something: %v", name, !c.misses)
		}
	}
}

// TestFollowerOfRefusedIsNotLeftWaiting: a store that is built, or has stopped, says so to whoever follows what it alone has.
func TestFollowerOfRefusedIsNotLeftWaiting(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), waitLimit)
	defer cancel()
	past := &toldPast{state: StoreState{Building: true, Answers: true}}
	a := serve(t, func(c *Config) { c.Past = past })
	if _, err := a.client.Log(ctx, LogQuestion{Oldest: true, Refused: RefusedWith, Wait: Duration(time.Minute)}); !errors.Is(err, ErrStoreBehind) {
		t.Errorf("while it is built it gave %v", err)
	}
	past.state = StoreState{Stopped: "broken", Answers: true}
	for _, err := range a.client.Follow(ctx, LogQuestion{Refused: RefusedOnly}, nil) {
		if !errors.Is(err, ErrStoreStopped) || !strings.Contains(err.Error(), "broken") {
			t.Errorf("of a store that has stopped the follower hears %v", err)
		}
	}
}
