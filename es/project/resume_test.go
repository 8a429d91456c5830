package project_test

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"strings"
	"testing"

	"github.com/cockroachdb/errors"
	"github.com/google/go-cmp/cmp"

	"catenary/es"
	"catenary/es/memstore"
	"catenary/es/project"
	"catenary/es/project/projecttest"
)

// TestResumeAfterALostTail cuts a bucket at every value, parts of an event's values included, as a crash may: what is lost
// is derived again, and marks that were left over the lost part do not count.
func TestResumeAfterALostTail(t *testing.T) {
	t.Parallel()
	s := store(t, append(history(20), thing("t1", looked{}), thing("t1", looked{}))...)
	want := wanted(t, s)
	for cut := range len(want) + 1 {
		b, marks := &projecttest.Bucket{}, &projecttest.Marks{}
		cfg := config(s, spec(newSums, b))
		cfg.Marks = marks
		projecttest.Run(t, cfg, 22)
		b.Truncate(uint64(cut))
		projecttest.Run(t, cfg, 22)
		if diff := cmp.Diff(want, entries(t, b), stored); diff != "" {
			t.Fatalf("cut after value %d (-want +have):\n%s", cut, diff)
		}
	}
}

// TestTailLostWhileRunning has the bucket lose its end under a running projector, which notices without any new event.
func TestTailLostWhileRunning(t *testing.T) {
	t.Parallel()
	s := store(t, history(40)...)
	b := &projecttest.Bucket{}
	r := start(t, config(s, spec(newSums, b)))
	r.wait(40)
	want := entries(t, b)
	for _, cut := range []uint64{37, 0, 20} {
		b.Truncate(cut)
		for ctx := bounded(t); ; breathe() {
			if state, err := b.State(ctx); err != nil || state.Last == uint64(len(want)) {
				break
			}
			if ctx.Err() != nil {
				t.Fatalf("the bucket stays cut at %d", cut)
			}
		}
		if diff := cmp.Diff(want, entries(t, b), stored); diff != "" {
			t.Fatalf("cut after value %d (-want +have):\n%s", cut, diff)
		}
	}
}

// TestValueLostWhileRunning loses a value in the middle of a bucket, as a server does that finds its file damaged when it is started again. A projector
// that has nothing to do finds out within a moment.
func TestValueLostWhileRunning(t *testing.T) {
	t.Parallel()
	s := store(t, history(40)...)
	b := &projecttest.Bucket{}
	r := start(t, config(s, spec(newSums, b)))
	r.wait(40)
	b.Delete(7)
	if v := r.stopped("sums"); !strings.Contains(v.Reason, "1 of the 40 values") {
		t.Errorf("it says %+v", v)
	}
}

// TestTailLostWhileBusy is the same for a projector that notices by its next value.
func TestTailLostWhileBusy(t *testing.T) {
	t.Parallel()
	for _, cut := range []uint64{39, 37, 0, 20} {
		s := store(t, history(40)...)
		b := &projecttest.Bucket{}
		cfg := config(s, spec(newSums, b))
		cfg.CheckInterval = limit
		r := start(t, cfg)
		r.wait(40)
		b.Truncate(cut)
		projecttest.Append(t, newRegistry(), s, thing("a", added{By: 1}))
		r.wait(41)
		same(t, s, newSums, b)
	}
}

// from is a store of which nothing before an event can be read in order.
type from struct {
	es.Store
	first uint64
}

func (f *from) Follow(ctx context.Context, after uint64) iter.Seq2[es.Message, error] {
	if after < f.first {
		return func(yield func(es.Message, error) bool) {
			yield(es.Message{}, errors.Mark(errors.Newf("read after event %d", after), es.ErrUnavailable))
		}
	}
	return f.Store.Follow(ctx, after)
}

func TestMarksSaveReading(t *testing.T) {
	t.Parallel()
	facts := []projecttest.Fact{thing("a", added{By: 1})}
	for range 300 {
		facts = append(facts, thing("a", looked{}))
	}
	s := store(t, facts...)
	b, marks := &projecttest.Bucket{}, &projecttest.Marks{}
	cfg := config(s, spec(newSums, b))
	cfg.Marks, cfg.MarkEvents = marks, 100
	projecttest.Run(t, cfg, 301)
	raw, err := marks.Get(bounded(t), "sums")
	if err != nil {
		t.Fatal(err)
	}
	var mark struct{ Event, Revision, Fold uint64 }
	if err := json.Unmarshal(raw, &mark); err != nil || mark.Event != 301 || mark.Revision != 1 || mark.Fold != 1 {
		t.Fatalf("mark %s, %v", raw, err)
	}

	// A runner that went on after value 1 would read event 2, which this store does not have.
	head := projecttestHead(t, s)
	behind := &from{Store: s, first: head.Sequence}
	cfg = config(behind, spec(newSums, b))
	cfg.Marks = marks
	r := start(t, cfg)
	if p := r.wait(301); p["sums"] != (project.Progress{Event: 301, Revision: 1}) {
		t.Errorf("taken up at %+v", p)
	}
	projecttest.Append(t, newRegistry(), s, thing("a", added{By: 1}))
	r.wait(302)
	same(t, s, newSums, b)

	// An unreadable mark, or one of another fold, is as good as none.
	for _, useless := range []string{"nonsense", `{"event":301,"revision":1,"fold":7}`, strings.Replace(string(raw), `"revision":1`, `"revision":9`, 1)} {
		if err := marks.Set(bounded(t), "sums", []byte(useless)); err != nil {
			t.Fatal(err)
		}
		cfg := config(s, spec(newSums, b))
		cfg.Marks = marks
		projecttest.Run(t, cfg, 302)
	}
	same(t, s, newSums, b)
}

// TestRefusesWhatDoesNotBelong has a bucket, or a stream, that can't be gone on with.
func TestRefusesWhatDoesNotBelong(t *testing.T) {
	t.Parallel()
	facts := history(40)
	meta := func(sequence uint64) project.Meta {
		return project.Meta{Position: project.Position{Sequence: sequence, Part: 1, Parts: 1}, Source: project.Source{Sequence: sequence, ID: projecttest.EventID(sequence)}, Fold: 1}
	}
	for name, c := range map[string]struct {
		spoil func(b *projecttest.Bucket, m *projecttest.Marks) (es.Store, func() project.View)
		want  []string
	}{
		"a hole": {func(b *projecttest.Bucket, _ *projecttest.Marks) (es.Store, func() project.View) {
			b.Delete(7)
			return nil, nil
		}, []string{"1 of the 40 values", "missing"}},
		// case C16
		"a foreign message at the end": {func(b *projecttest.Bucket, _ *projecttest.Marks) (es.Store, func() project.View) {
			b.PutForeign("t1", []byte("x"))
			return nil, nil
		}, []string{"somebody else", "value 41"}},
		"a foreign message before it": {func(b *projecttest.Bucket, _ *projecttest.Marks) (es.Store, func() project.View) {
			b.PutForeign("x", []byte("x"))
			b.Forge("t1", []byte(`{"sum":1}`), meta(40))
			return nil, nil
		}, []string{"somebody else", "value 41"}},
		"another fold": {func(*projecttest.Bucket, *projecttest.Marks) (es.Store, func() project.View) {
			return nil, func() project.View { return &sums{name: "sums", version: 2, state: map[string]int{}} }
		}, []string{"version 1", "version 2"}},
		// case A11
		"yesterday's stream": {func(*projecttest.Bucket, *projecttest.Marks) (es.Store, func() project.View) {
			return store(t, facts[:30]...), nil
		}, []string{"event 38", "event 30"}},
		"yesterday's stream, seen by the mark": {func(*projecttest.Bucket, *projecttest.Marks) (es.Store, func() project.View) {
			return store(t, facts[:39]...), nil
		}, []string{"event 40", "event 39"}},
		"another stream": {func(*projecttest.Bucket, *projecttest.Marks) (es.Store, func() project.View) {
			return renamed(t, facts), nil
		}, []string{"another stream", "event 38"}},
		"another stream, seen by the mark": {func(*projecttest.Bucket, *projecttest.Marks) (es.Store, func() project.View) {
			return store(t, append(append([]projecttest.Fact(nil), facts[:39]...), thing("t1", looked{}))...), nil
		}, []string{"another stream", "event 40"}},
		"a position that goes back": {func(b *projecttest.Bucket, _ *projecttest.Marks) (es.Store, func() project.View) {
			b.Forge("t1", []byte(`{"sum":1}`), meta(3))
			return nil, nil
		}, []string{"goes back"}},
		"a value that can't be read": {func(b *projecttest.Bucket, _ *projecttest.Marks) (es.Store, func() project.View) {
			b.Change(40, func(e *project.Entry) { e.Value = []byte("nonsense") })
			return nil, nil
		}, []string{"value 40", "can't be read"}},
		"parts that can't be": {func(b *projecttest.Bucket, _ *projecttest.Marks) (es.Store, func() project.View) {
			b.Truncate(1)
			b.Change(1, func(e *project.Entry) { e.Meta.Position = project.Position{Sequence: 1, Part: 2, Parts: 3} })
			return nil, nil
		}, []string{"1.2/3", "only 1 values"}},
		"other values of the last event": {func(b *projecttest.Bucket, m *projecttest.Marks) (es.Store, func() project.View) {
			b.Truncate(38)
			b.Change(38, func(e *project.Entry) { e.Value = []byte(`{"sum":0}`) })
			return nil, nil
		}, []string{"value 38", "makes another one"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := es.Store(store(t, facts...))
			b, marks := &projecttest.Bucket{}, &projecttest.Marks{}
			cfg := config(s, spec(newSums, b))
			cfg.Marks = marks
			projecttest.Run(t, cfg, 40)
			before := len(entries(t, b))
			spoilt, newView := c.spoil(b, marks)
			if spoilt != nil {
				cfg.Store = spoilt
			}
			if newView != nil {
				cfg.Views[0].New = newView
			}
			state, err := b.State(bounded(t))
			if err != nil {
				t.Fatal(err)
			}
			r := start(t, cfg)
			v := r.stopped("sums")
			for _, text := range c.want {
				if !strings.Contains(v.Reason, text) {
					t.Errorf("reason %q, want one with %q", v.Reason, text)
				}
			}
			if after, err := b.State(bounded(t)); err != nil || after != state {
				t.Errorf("the bucket of %d values went from %+v to %+v, %v", before, state, after, err)
			}
		})
	}
}

// renamed gives the same facts as other events.
func renamed(t testing.TB, facts []projecttest.Fact) es.Store {
	t.Helper()
	s := memstore.New(memstore.Config{})
	var head es.Head
	for m, err := range store(t, facts...).Read(bounded(t), 0) {
		if err != nil {
			t.Fatal(err)
		}
		m.Header[es.HeaderID] = []string{"renamed-" + m.Header[es.HeaderID][0]}
		after := head
		head = head.Seal(&m)
		if err := es.Wait(bounded(t), s.Append(bounded(t), after, []es.Message{m})); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// TestForeignValueWhileRunning is case C16 for a projector at work: it stops at once when it puts, and within a moment
// when it has nothing to do.
func TestForeignValueWhileRunning(t *testing.T) {
	t.Parallel()
	good := project.Meta{Position: project.Position{Sequence: 1, Part: 1, Parts: 1}, Source: project.Source{Sequence: 1, ID: projecttest.EventID(1)}, Fold: 1}
	for name, hand := range map[string]func(b *projecttest.Bucket){
		"foreign": func(b *projecttest.Bucket) { b.PutForeign("a", []byte("x")) },
		"forged":  func(b *projecttest.Bucket) { b.Forge("a", []byte(`{"sum":9}`), good) },
	} {
		for _, busy := range []bool{false, true} {
			s := store(t, thing("a", added{By: 1}))
			b := &projecttest.Bucket{}
			cfg := config(s, spec(newSums, b))
			if busy {
				cfg.CheckInterval = limit
			}
			r := start(t, cfg)
			r.wait(1)
			hand(b)
			if busy {
				projecttest.Append(t, newRegistry(), s, thing("a", added{By: 1}))
			}
			if v := r.stopped("sums"); !strings.Contains(v.Reason, "value 2") || r.Status(bounded(t)).Healthy() {
				t.Errorf("%s, busy %v: %+v", name, busy, v)
			}
			if state, err := b.State(bounded(t)); err != nil || state.Last != 2 {
				t.Errorf("%s, busy %v: %+v, %v", name, busy, state, err)
			}
		}
	}
}

// TestMendedValuesAreTakenIn has a value written again at the bucket's end, as who mends a bucket does.
func TestMendedValuesAreTakenIn(t *testing.T) {
	t.Parallel()
	s := store(t, thing("a", added{By: 1}), thing("b", added{By: 1}))
	b := &projecttest.Bucket{}
	r := start(t, config(s, spec(newSums, b)))
	r.wait(2)
	mended := entries(t, b)[0].Meta
	mended.Position, mended.Mended = entries(t, b)[1].Meta.Position, projecttest.Recorded(9)
	b.Forge("a", []byte(`{"sum":10}`), mended)
	projecttest.Append(t, newRegistry(), s, thing("a", added{By: 1}))
	r.wait(3)
	if all := entries(t, b); len(all) != 4 || string(all[3].Value) != `{"sum":11}` {
		t.Errorf("%d values, the last is %s", len(all), all[len(all)-1].Value)
	}
}

func TestValuesThatCanNotBeStored(t *testing.T) {
	t.Parallel()
	s := store(t, thing("a", added{By: 1}), thing("b", added{By: 1}), thing("large", added{By: 1}), thing("a", added{By: 1}), thing("b", added{By: 1}))
	newBloated := func() project.View { return &bloated{sums{name: "sums", version: 1, state: map[string]int{}}} }
	for _, group := range groups() {
		t.Run(fmt.Sprintf("%d together", group), func(t *testing.T) {
			t.Parallel()
			b := &projecttest.Bucket{}
			takes := &projecttest.Faulty{Bucket: b, Group: group, Script: func(int) projecttest.Fault { return projecttest.FaultNone }}
			r := start(t, config(s, spec(newBloated, takes)))
			if v := r.stopped("sums"); v.At != 3 || v.Position.Event != 2 || !strings.Contains(v.Reason, "the limit is") {
				t.Errorf("status %+v", v)
			}
			if n := len(entries(t, b)); n != 2 {
				t.Errorf("%d values stand", n)
			}
		})
	}
}

// bloated makes a value that no bucket takes.
type bloated struct{ sums }

func (b *bloated) Fold(e es.Event) ([]project.Value, error) {
	values, err := b.sums.Fold(e)
	for i := range values {
		if values[i].Key == "large" {
			values[i].Data = make([]byte, projecttest.MaxValueBytes+1)
		}
	}
	return values, err
}

// TestDamagedBeyondRetaking: a bucket that loses its tail while its view has passed events that left no trace is taken up again, and
// where it then turns out to be damaged the view stops, while the others go on.
func TestDamagedBeyondRetaking(t *testing.T) {
	t.Parallel()
	s := store(t, history(40)...)
	a, b := &projecttest.Bucket{}, &projecttest.Bucket{}
	cfg := config(s, spec(newSums, a), spec(newEverything, b))
	cfg.Marks, cfg.MarkInterval = &projecttest.Marks{}, limit
	r := start(t, cfg)
	r.wait(40)
	a.Delete(5)
	a.Truncate(30)
	if v := r.stopped("sums"); !strings.Contains(v.Reason, "missing") {
		t.Errorf("status %+v", v)
	}
	last := projecttest.Append(t, newRegistry(), s, history(2)...)
	if _, err := r.Wait(bounded(t), last, "everything"); err != nil {
		t.Error(err)
	}
}
