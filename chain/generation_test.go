package chain_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/errors"
	"github.com/google/go-cmp/cmp"

	"catenary/chain"
	"catenary/es"
	"catenary/es/project"
	"catenary/internal/topology"
)

// point sends readers of a view to a bucket.
func (b *buckets) point(view, bucket string, n int) {
	value, err := json.Marshal(project.Pointer{Generation: project.Generation{Number: n, Bucket: bucket}})
	if err != nil {
		panic(err) // the test's own pointer
	}
	b.put(topology.BucketViews, view, value, project.Meta{})
}

// TestReaderFollowsThePointer reads everything from the generation that is read, at the latest when what the reader knew of it is
// too old.
func TestReaderFollowsThePointer(t *testing.T) {
	t.Parallel()
	b := newBuckets()
	now := noon
	r := chain.NewReader(chain.Config{Open: b.open, Clock: func() time.Time { return now }})
	put(b, chain.Nodes, 1, 0, chain.Node{Node: "n1"})
	seen := func() (values []string) {
		t.Helper()
		ctx := t.Context()
		e, err := chain.Get(ctx, r, chain.Nodes, "n1")
		if err != nil {
			t.Fatal(err)
		}
		h, err := chain.History(ctx, r, chain.Nodes, "n1")
		if err != nil {
			t.Fatal(err)
		}
		l, err := chain.List(ctx, r, chain.Nodes, chain.Query{})
		if err != nil {
			t.Fatal(err)
		}
		return []string{e.Value.ManagedBy, h[0].Value.ManagedBy, l.Entries[0].Value.ManagedBy}
	}
	if diff := cmp.Diff([]string{"", "", ""}, seen()); diff != "" {
		t.Errorf("without a pointer:\n%s", diff)
	}
	b.put("chain-nodes-g2", "n1", encoded(chain.Node{Node: "n1", ManagedBy: "g2"}), meta(1, 0))
	b.point("chain-nodes", "chain-nodes-g2", 2)
	now = now.Add(time.Second)
	if diff := cmp.Diff([]string{"g2", "g2", "g2"}, seen()); diff != "" {
		t.Errorf("after the pointer was changed:\n%s", diff)
	}
	b.put(topology.BucketViews, "chain-nodes", []byte(`{"generation":3}`), project.Meta{})
	now = now.Add(time.Second)
	if _, err := chain.Get(t.Context(), r, chain.Nodes, "n1"); err == nil {
		t.Error("a pointer that names no bucket was followed")
	}
}

// TestHistoryOfAMendedKey leaves out what was not as it should be, a message that no projector wrote included.
func TestHistoryOfAMendedKey(t *testing.T) {
	t.Parallel()
	b := newBuckets()
	put(b, chain.Nodes, 1, 0, chain.Node{Node: "n1"})
	put(b, chain.Nodes, 5, 2, chain.Node{Node: "n1", ManagedBy: "forged"}) // as if event 5 had said so
	mending := meta(1, 0)
	mending.Mended, mending.Replaces = hour(3), 2
	b.put(chain.Nodes.Bucket(), "n1", encoded(chain.Node{Node: "n1"}), mending)
	changes, err := chain.History(t.Context(), b.reader(), chain.Nodes, "n1")
	if err != nil || len(changes) != 1 || changes[0].Value.ManagedBy != "" || changes[0].Sequence != 1 {
		t.Errorf("history %+v with error %v, want the one true value", changes, err)
	}
}

func TestWaitFor(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		positions []chain.Position
		views     []string
		want      error
	}{
		"all there":                     {positions: []chain.Position{{View: "chain-nodes", Bucket: "chain-nodes", Event: 9, Revision: 2}}},
		"an event without a value":      {positions: []chain.Position{{View: "chain-builds", Bucket: "chain-builds", Event: 9, Revision: 0}}},
		"a view that is behind":         {positions: []chain.Position{{View: "chain-nodes", Bucket: "chain-nodes", Event: 8, Revision: 2}}, want: chain.ErrBehind},
		"a copy that is behind":         {positions: []chain.Position{{View: "chain-nodes", Bucket: "chain-nodes", Event: 9, Revision: 3}}, want: chain.ErrBehind},
		"another generation":            {positions: []chain.Position{{View: "chain-nodes", Bucket: "chain-nodes-g2", Event: 9, Revision: 2}}, want: chain.ErrBehind},
		"a view that has stopped":       {positions: []chain.Position{{View: "chain-nodes", Event: 8, Stopped: "spoilt"}, {View: "chain-builds", Bucket: "chain-builds", Event: 9}}, want: chain.ErrStopped},
		"a view that has stopped later": {positions: []chain.Position{{View: "chain-nodes", Bucket: "chain-nodes", Event: 9, Revision: 2, Stopped: "spoilt"}}},
		"one that there is not": {
			positions: []chain.Position{{View: "chain-nodes", Bucket: "chain-nodes", Event: 9, Revision: 2}}, views: []string{"chain-nodes", "nodes"}, want: chain.ErrNoView,
		},
		"one that is not asked for": {
			positions: []chain.Position{{View: "chain-nodes", Event: 8}, {View: "chain-builds", Bucket: "chain-builds", Event: 9}}, views: []string{"chain-builds"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBuckets()
			put(b, chain.Nodes, 1, 0, chain.Node{Node: "n1"})
			put(b, chain.Nodes, 2, 0, chain.Node{Node: "n2"})
			r := chain.NewReader(chain.Config{Open: b.open, Positions: func(_ context.Context, event uint64) ([]chain.Position, error) {
				if event != 9 {
					t.Errorf("asked about event %d", event)
				}
				return slices.Clone(c.positions), nil
			}})
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if errors.Is(c.want, chain.ErrBehind) {
				var end context.CancelFunc
				ctx, end = context.WithTimeout(ctx, 30*time.Millisecond)
				defer end()
			}
			err := r.WaitFor(ctx, 9, c.views...)
			if !errors.Is(err, c.want) || c.want != nil && !strings.Contains(err.Error(), "chain-nodes") {
				t.Errorf("error is %v, want %v", err, c.want)
			}
			if errors.Is(c.want, chain.ErrBehind) && !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("error %v does not have the context's in it", err)
			}
		})
	}
}

// TestWaitForASwitch: the position is of the new generation already, and the pointer that is read here follows.
func TestWaitForASwitch(t *testing.T) {
	t.Parallel()
	b := newBuckets()
	b.put("chain-nodes-g2", "n1", encoded(chain.Node{Node: "n1"}), meta(1, 0))
	asked := 0
	r := chain.NewReader(chain.Config{Open: b.open, Positions: func(context.Context, uint64) ([]chain.Position, error) {
		if asked++; asked == 3 {
			b.point("chain-nodes", "chain-nodes-g2", 2)
		}
		return []chain.Position{{View: "chain-nodes", Bucket: "chain-nodes-g2", Event: 1, Revision: 1}}, nil
	}})
	if err := r.WaitFor(t.Context(), 1); err != nil || asked != 3 {
		t.Errorf("error %v after %d questions", err, asked)
	}
	if _, err := chain.Get(t.Context(), r, chain.Nodes, "n1"); err != nil {
		t.Errorf("read after the wait: %v", err)
	}
}

// TestReaderOfAServerThatStarts: a server that knows the buckets, but not yet the one of the pointers, does not send readers to the
// generation that was read first.
func TestReaderOfAServerThatStarts(t *testing.T) {
	t.Parallel()
	b := newBuckets()
	put(b, chain.Nodes, 1, 0, chain.Node{Node: "n1", ManagedBy: "long ago"})
	b.put("chain-nodes-g2", "n1", encoded(chain.Node{Node: "n1", ManagedBy: "now"}), meta(2, 0))
	b.point("chain-nodes", "chain-nodes-g2", 2)
	starting := true
	r := chain.NewReader(chain.Config{Open: func(ctx context.Context, bucket string) (chain.Bucket, error) {
		if starting && bucket == topology.BucketViews {
			return nil, errors.Mark(errors.Mark(errors.New("stream not found"), project.ErrNoBucket), es.ErrNotFound)
		}
		return b.open(ctx, bucket)
	}})
	if e, err := chain.Get(t.Context(), r, chain.Nodes, "n1"); !errors.Is(err, es.ErrUnavailable) || errors.Is(err, es.ErrNotFound) {
		t.Errorf("it gives %+v with error %v", e.Value, err)
	}
	starting = false
	if e, err := chain.Get(t.Context(), r, chain.Nodes, "n1"); err != nil || e.Value.ManagedBy != "now" {
		t.Errorf("it gives %+v with error %v", e.Value, err)
	}
}

func TestParked(t *testing.T) {
	t.Parallel()
	b := newBuckets()
	put(b, chain.Builds, 1, 0, chain.Build{ID: "whole"})
	for key, record := range map[string]string{"parked": `{"event":3,"type":"build.failed.v1","why":"unfolded","behind":2}`, "skipped": `{"event":4,"skipped":true}`} {
		b.put(chain.Builds.Bucket(), project.ParkedKey(es.Ref{Aggregate: chain.Builds.Name(), Key: key}), []byte(record), meta(3, 0))
	}
	r := b.reader()
	if p, err := chain.Parked(t.Context(), r, chain.Builds, "parked"); err != nil || p.Event != 3 || p.Behind != 2 {
		t.Errorf("it gives %+v with error %v", p, err)
	}
	for _, build := range []string{"whole", "skipped", "nobody"} {
		if p, err := chain.Parked(t.Context(), r, chain.Builds, build); !errors.Is(err, es.ErrNotFound) {
			t.Errorf("of %s it gives %+v with error %v", build, p, err)
		}
	}
}

// late answers the first read only after it was let.
type late struct {
	chain.Bucket
	first, asked, let chan struct{}
}

func (l late) Get(ctx context.Context, key string) (project.Entry, error) {
	e, err := l.Bucket.Get(ctx, key)
	select {
	case <-l.first:
		close(l.asked)
		<-l.let
	default:
	}
	return e, err
}

// TestReaderNeverGoesBack: an older pointer that is heard of late does not send a reader back to where another one has left for the next
// generation.
func TestReaderNeverGoesBack(t *testing.T) {
	t.Parallel()
	b := newBuckets()
	b.point("chain-nodes", "chain-nodes-g2", 2)
	slow := late{first: make(chan struct{}, 1), asked: make(chan struct{}), let: make(chan struct{})}
	slow.first <- struct{}{}
	r := chain.NewReader(chain.Config{Clock: func() time.Time { return noon }, Open: func(ctx context.Context, name string) (chain.Bucket, error) {
		opened, err := b.open(ctx, name)
		return late{opened, slow.first, slow.asked, slow.let}, err
	}})
	older := make(chan string, 1)
	go func() {
		name, err := r.Bucket(context.WithoutCancel(t.Context()), "chain-nodes")
		older <- fmt.Sprint(name, err)
	}()
	<-slow.asked
	b.point("chain-nodes", "chain-nodes-g3", 3)
	seen := func() {
		t.Helper()
		if name, err := r.Bucket(t.Context(), "chain-nodes"); err != nil || name != "chain-nodes-g3" {
			t.Errorf("readers are sent to %s with error %v", name, err)
		}
	}
	seen()
	close(slow.let)
	if name := <-older; name != "chain-nodes-g3<nil>" {
		t.Errorf("who asked before is sent to %s", name)
	}
	seen()
}
