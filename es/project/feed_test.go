package project_test

import (
	"context"
	"iter"
	"sync"
	"testing"
	"time"

	"catenary/es"
	"catenary/es/project"
	"catenary/es/project/projecttest"
)

// hanging is a bucket that does not answer from one put on, until it is released.
type hanging struct {
	project.Bucket
	from int

	mu    sync.Mutex
	puts  int
	hangs chan struct{}
	free  chan struct{}
}

func newHanging(b project.Bucket, from int) *hanging {
	return &hanging{Bucket: b, from: from, hangs: make(chan struct{}), free: make(chan struct{})}
}

func (h *hanging) Put(ctx context.Context, after uint64, key string, value []byte, meta project.Meta) es.Pending {
	h.mu.Lock()
	h.puts++
	if h.puts == h.from {
		close(h.hangs)
	}
	late := h.puts >= h.from
	h.mu.Unlock()
	p := h.Bucket.Put(ctx, after, key, value, meta)
	if !late {
		return p
	}
	answer := es.NewPromise()
	go func() {
		select {
		case <-h.free:
		case <-ctx.Done():
		}
		answer.Resolve(p.Err())
	}()
	return answer
}

func (h *hanging) release() { close(h.free) }

// wait waits until the bucket hangs.
func (h *hanging) wait(ctx context.Context) {
	select {
	case <-h.hangs:
	case <-ctx.Done():
	}
}

// TestHangingBucketHoldsUpNobody is case C19 for one view, whose bucket neither answers nor fails: the others go on, and the
// view never says that it is running while it is behind.
func TestHangingBucketHoldsUpNobody(t *testing.T) {
	t.Parallel()
	s := store(t, history(3000)...)
	a, b := newHanging(&projecttest.Bucket{}, 5), &projecttest.Bucket{}
	cfg := config(s, spec(newSums, a), spec(newEverything, b))
	cfg.MaxHold = 20 * time.Millisecond
	cfg.MaxInFlight = 16
	r := start(t, cfg)
	if _, err := r.Wait(bounded(t), 3000, "everything"); err != nil {
		t.Fatal(err)
	}
	for _, v := range r.Status(bounded(t)).Views {
		if v.View == "sums" && (v.State == project.StateRunning || v.Behind < 2900 || v.LagSeconds < 1) {
			t.Errorf("status %+v", v)
		}
	}
	a.release()
	r.wait(3000)
	same(t, s, newSums, a.Bucket)
	same(t, s, newEverything, b)
	if v := r.until("sums", inState(project.StateRunning)); v.Behind != 0 || v.LagSeconds != 0 {
		t.Errorf("status %+v", v)
	}
}

// TestViewsThatReadLittle has a view whose aggregate is seldom heard of: it passes all events, and its values come in order.
func TestViewsThatReadLittle(t *testing.T) {
	t.Parallel()
	var facts []projecttest.Fact
	for i := range 5000 {
		if i%100 == 7 {
			facts = append(facts, thing("a", added{By: 1}))
		}
		facts = append(facts, other(added{By: 1}))
	}
	s := store(t, facts...)
	a, b := &projecttest.Bucket{}, &projecttest.Bucket{}
	r := start(t, config(s, spec(newSums, a), spec(newEverything, b)))
	r.wait(5050)
	tail := projecttest.Append(t, newRegistry(), s, other(added{By: 1}), thing("a", added{By: 1}), other(added{By: 1}))
	if p := r.wait(tail); p["sums"] != (project.Progress{Event: tail, Revision: 51}) {
		t.Errorf("progress %+v", p["sums"])
	}
	same(t, s, newSums, a)
	same(t, s, newEverything, b)
}

// jumbled is a store whose reads in order give events again, or too early.
type jumbled struct {
	es.Store
	order func([]es.Message) []es.Message
}

func (j *jumbled) Read(ctx context.Context, after uint64) iter.Seq2[es.Message, error] {
	return j.jumble(ctx, j.Store.Read(ctx, after))
}

func (j *jumbled) Follow(ctx context.Context, after uint64) iter.Seq2[es.Message, error] {
	return j.jumble(ctx, j.Store.Read(ctx, after))
}

func (j *jumbled) jumble(ctx context.Context, messages iter.Seq2[es.Message, error]) iter.Seq2[es.Message, error] {
	return func(yield func(es.Message, error) bool) {
		var all []es.Message
		for m, err := range messages {
			if err != nil {
				yield(m, err)
				return
			}
			all = append(all, m)
		}
		for _, m := range j.order(all) {
			if !yield(m, nil) {
				return
			}
		}
		<-ctx.Done()
	}
}

// TestRedeliveredAndReordered gives a projector events again, or in another order: each is refused by the hash chain before
// anything is folded of it, and what stands by then is what should.
func TestRedeliveredAndReordered(t *testing.T) {
	t.Parallel()
	s := store(t, history(40)...)
	for name, order := range map[string]func([]es.Message) []es.Message{
		"one again": func(all []es.Message) []es.Message { return append(append(all[:21:21], all[20]), all[21:]...) },
		"all again": func(all []es.Message) []es.Message { return append(all[:30:30], all...) },
		"two swapped": func(all []es.Message) []es.Message {
			all[20], all[21] = all[21], all[20]
			return all
		},
		"one left out": func(all []es.Message) []es.Message { return append(all[:20:20], all[21:]...) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := &projecttest.Bucket{}
			r := start(t, config(&jumbled{Store: s, order: order}, spec(newSums, b)))
			if err := <-r.ended; err == nil {
				t.Error("the projector has noticed nothing")
			} else {
				r.ended <- nil
			}
			projecttest.Run(t, config(s, spec(newSums, b)), 40)
			same(t, s, newSums, b)
		})
	}
}
