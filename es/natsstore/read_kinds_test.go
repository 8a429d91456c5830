package natsstore_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/cockroachdb/errors"
	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"catenary/es"
	"catenary/es/estest"
	"catenary/es/natsstore"
)

// TestReadKinds gives of a stretch of the stream just what is of the kinds, in order, and leaves nothing behind however it ends.
func TestReadKinds(t *testing.T) {
	nc := estest.Server(t, false).Connect(t)
	s := open(t, nc, estest.Limits{}, natsstore.Config{})
	chain := estest.Chain{Label: "a"}
	var all []es.Message
	for i := range 2000 {
		kind := []string{"node", "build", "rollout", "build", "module"}[i*i%5]
		if i > 1900 {
			kind = "build"
		}
		all = append(all, chain.On(es.Ref{Aggregate: kind, Key: es.Key([]string{"a", "b", "c"}[i%3])}))
	}
	for head, rest := (es.Head{}), all; len(rest) > 0; rest = rest[es.MaxAppendMessages:] {
		batch := rest[:es.MaxAppendMessages]
		if err := es.Wait(t.Context(), s.Append(t.Context(), head, batch)); err != nil {
			t.Fatal(err)
		}
		head = estest.HeadOf(t, batch[len(batch)-1])
	}
	for range s.ReadKinds(t.Context(), 0, 10, "node") { // whatever starts once and stays has started
	}
	before := goleak.IgnoreCurrent()
	for _, c := range []struct {
		after, last uint64
		kinds       []string
	}{
		{0, 2000, []string{"node", "module", "rollout"}}, {0, 2000, []string{"build"}}, {500, 1500, []string{"rollout", "build"}}, {3, 3, []string{"node"}},
		{0, 2000, []string{"never", "module"}}, {1950, 2000, []string{"node"}}, {0, 2000, nil},
	} {
		var want, got []uint64
		for _, m := range all {
			ref, err := es.ParseSubject(m.Subject)
			if err != nil {
				t.Fatal(err)
			}
			if m.Sequence > c.after && m.Sequence <= c.last && slices.Contains(c.kinds, ref.Aggregate) {
				want = append(want, m.Sequence)
			}
		}
		for m, err := range s.ReadKinds(t.Context(), c.after, c.last, c.kinds...) {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, m.Sequence)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%v from %d to %d (-want +got):\n%s", c.kinds, c.after, c.last, diff)
		}
	}
	for range s.ReadKinds(t.Context(), 0, 2000, "node", "build") {
		break
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	failed := 0
	for _, err := range s.ReadKinds(ctx, 0, 2000, "node", "build") {
		cancel()
		if err != nil {
			failed++
			if !errors.Is(err, es.ErrUnavailable) {
				t.Errorf("got error %v", err)
			}
		}
	}
	if failed != 1 {
		t.Errorf("interrupted, it says so %d times", failed)
	}
	wantConsumers(t, nc, 0)
	goleak.VerifyNone(t, before)
}
