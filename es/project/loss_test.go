package project_test

import (
	"context"
	"iter"
	"strings"
	"sync"
	"testing"

	"catenary/es"
	"catenary/es/project"
	"catenary/es/project/projecttest"
)

// lossAccepted says that a stream which ends at an event was accepted, against a bucket that has come further.
type lossAccepted struct {
	Found  uint64 `json:"found"`
	Bucket string `json:"bucket"`
	At     uint64 `json:"at"`
}

var keeper = es.Ref{Aggregate: "keeper", Key: "main"}

func losses() *project.Losses {
	return &project.Losses{Instance: keeper, Read: func(e es.Event) (project.Loss, bool) {
		l, ok := e.Data.(lossAccepted)
		return project.Loss{Found: l.Found, Reason: "the disk is gone", Contradicts: func(bucket string, at project.Position, _ project.Source) bool {
			return bucket == l.Bucket && at.Sequence == l.At
		}}, ok
	}}
}

// TestAcceptedLoss: views of a record that was cut stop, until the cut is accepted, and then go on by themselves: those that have seen what
// was lost in a new generation, while the old one is read, and those that have not as they were.
func TestAcceptedLoss(t *testing.T) {
	t.Parallel()
	const found, seen = 30, 38 // see history
	for name, c := range map[string]struct {
		before []projecttest.Fact
		accept lossAccepted
		bucket string // that is read in the end; empty when the view stays stopped
	}{
		"values of lost events": {history(40), lossAccepted{found, "sums", seen}, "sums-g2"},
		"only a mark beyond": {append(history(found), other(looked{}), other(looked{}), other(looked{})),
			lossAccepted{found, "another", 33}, "sums"},
		"accepted for another bucket": {history(40), lossAccepted{found, "another", seen}, ""},
		"accepted for another time":   {history(40), lossAccepted{found, "sums", seen - 1}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := &projecttest.Generations{}
			cfg := kept(store(t, c.before...), g, newSums)
			marks := cfg.Marks
			projecttest.Run(t, cfg, uint64(len(c.before)))
			cut := store(t, history(found)...)
			cfg = kept(cut, g, newSums)
			cfg.Losses, cfg.Marks = losses(), marks
			r := start(t, cfg)
			r.stopped("sums")
			last := projecttest.Append(t, cfg.Registry, cut, projecttest.Fact{Ref: keeper, Data: c.accept}, thing("t1", added{By: 1}))
			if c.bucket == "" {
				// It has looked again when it has stopped later than before.
				if v := r.stopped("sums"); !strings.Contains(v.Reason, "the stream ends at event") {
					t.Errorf("it stopped for %s", v.Reason)
				}
				return
			}
			r.passes(last)
			if read := g.Read("sums").Name(); read != c.bucket {
				t.Errorf("readers are sent to %s, want %s", read, c.bucket)
			}
			same(t, cut, newSums, g.Read("sums"))
			if p, err := g.Pointer(bounded(t), "sums"); c.bucket != "sums" && (err != nil || !strings.Contains(p.Reason, "cut after event 30, which was accepted by event 31")) {
				t.Errorf("pointer %+v, %v", p, err)
			}
		})
	}
}

// acceptingStore appends the acceptance of a loss as soon as somebody has looked for it in vain.
type acceptingStore struct {
	es.Store
	accept func()
	once   sync.Once
}

func (s *acceptingStore) ReadAggregate(ctx context.Context, ref es.Ref) iter.Seq2[es.Message, error] {
	return func(yield func(es.Message, error) bool) {
		s.Store.ReadAggregate(ctx, ref)(yield)
		if ref == keeper {
			s.once.Do(s.accept)
		}
	}
}

// TestLossAcceptedMeanwhile: a view that looked for the acceptance just before it was recorded hears of it from the reader.
func TestLossAcceptedMeanwhile(t *testing.T) {
	t.Parallel()
	g := &projecttest.Generations{}
	projecttest.Run(t, kept(store(t, history(40)...), g, newSums), 40)
	cut := store(t, history(30)...)
	cfg := kept(cut, g, newSums)
	cfg.Losses = losses()
	cfg.Store = &acceptingStore{Store: cut, accept: func() {
		projecttest.Append(t, cfg.Registry, cut, projecttest.Fact{Ref: keeper, Data: lossAccepted{30, "sums", 38}})
	}}
	r := start(t, cfg)
	r.passes(31)
	same(t, cut, newSums, g.Read("sums"))
}

// TestRepairOverACutRecord: what has come further than the stream is no fold of it, and nothing in place makes it one.
func TestRepairOverACutRecord(t *testing.T) {
	t.Parallel()
	g := &projecttest.Generations{}
	projecttest.Run(t, kept(store(t, history(40)...), g, newSums), 40)
	cut := store(t, history(30)...)
	r := start(t, kept(cut, g, newSums))
	r.stopped("sums")
	for _, o := range []project.RebuildOptions{{InPlace: true}, {DryRun: true}} {
		found := r.rebuilt("sums", o)
		if found.OK() || found.Generation != nil || !strings.Contains(found.Anew, "later than all that the fold gives") {
			t.Errorf("%+v gives %+v, want that the bucket is to be built anew", o, found)
		}
	}
	if found := r.rebuilt("sums", project.RebuildOptions{}); found.Generation == nil {
		t.Errorf("it is not built anew: %+v", found)
	}
	same(t, cut, newSums, g.Read("sums"))
}

// TestRepairGivesUpAContradictedMark: a view that is stopped by its mark alone goes on once its bucket was found to be a fold of the record.
func TestRepairGivesUpAContradictedMark(t *testing.T) {
	t.Parallel()
	g := &projecttest.Generations{}
	cfg := kept(store(t, append(history(30), other(looked{}), other(looked{}))...), g, newSums)
	marks := cfg.Marks
	projecttest.Run(t, cfg, 32)
	cut := store(t, history(30)...)
	cfg = kept(cut, g, newSums)
	cfg.Marks = marks
	r := start(t, cfg)
	if v := r.stopped("sums"); !strings.Contains(v.Reason, "has read up to event 32") {
		t.Errorf("it stopped for %s", v.Reason)
	}
	if found := r.rebuilt("sums", project.RebuildOptions{InPlace: true}); !found.OK() || len(found.Mends) > 0 {
		t.Errorf("repair gives %+v", found)
	}
	r.passes(projecttest.Append(t, cfg.Registry, cut, thing("t1", added{By: 1})))
	same(t, cut, newSums, g.Read("sums"))
}
