package estest

import (
	"context"
	"iter"
	"maps"
	"reflect"
	"slices"
	"testing"

	"github.com/cockroachdb/errors"
	"github.com/google/go-cmp/cmp"

	"catenary/es"
)

// Limits are those of a store under test. Zero means the store's own default.
type Limits struct {
	MessageBytes int
	TotalBytes   int64
}

// RunStoreSuite runs what every [es.Store] must do. Open gives a new, empty store with the limits; what it needs to be
// closed it registers with the test it is given.
func RunStoreSuite(t *testing.T, open func(t *testing.T, limits Limits) es.Store) {
	t.Helper()
	for _, c := range []struct {
		name string
		run  func(*suite)
	}{
		{"an empty store", (*suite).empty},
		{"what is stored comes back", (*suite).comesBack},
		{"odd texts come back", (*suite).oddTexts},
		{"the caller's messages stay his", (*suite).messagesStay},
		{"one instance's messages", (*suite).aggregates},
		{"read after a sequence", (*suite).readAfter},
		{"read ends at the tail", (*suite).readEndsAtTail},
		{"read can be left early", (*suite).readLeftEarly},
		{"reads tell when they can't", (*suite).readsCanceled},
		{"unknown types are kept raw", (*suite).unknownTypes},

		{"another tail is a conflict", (*suite).conflict},
		{"another event at the tail is a conflict", (*suite).foreignHead},
		{"a pipeline breaks at a conflict", (*suite).cascadeAfterConflict},
		{"a pipeline breaks at a refusal", (*suite).cascadeAfterRefusal},
		{"a rival fills a gap in a pipeline", (*suite).rivalInTheGap},
		{"two writers interleave", (*suite).interleave},
		{"two writers take turns", (*suite).takeTurns},
		{"a batch is all or nothing", (*suite).batches},
		{"singles and batches in one pipeline", (*suite).mixedPipeline},
		{"appends that are none", (*suite).noAppends},

		{"too large", (*suite).tooLarge},
		{"too large in a batch", (*suite).tooLargeInBatch},
		{"full", (*suite).full},

		{"unclear and stored", (*suite).settleStored},
		{"unclear and lost", (*suite).settleLost},
		{"unclear and stored late", (*suite).settleLate},
		{"unclear and stored between look and retry", (*suite).settleRace},
		{"unclear and overtaken", (*suite).settleOvertaken},
		{"unclear and not to be settled", (*suite).settleWithoutReads},
		{"unclear and full", (*suite).settleWhileFull},

		{"damage is found", (*suite).damage},

		{"follow sees what is appended", (*suite).follow},
		{"follow starts in the middle", (*suite).followAfter},
		{"follow ends with its context", (*suite).followEnds},
	} {
		t.Run(c.name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), waitLimit)
			defer cancel()
			c.run(&suite{T: t, ctx: ctx, open: open})
		})
	}
}

// suite is one test of the suite.
type suite struct {
	*testing.T
	ctx  context.Context
	open func(t *testing.T, limits Limits) es.Store
}

func (s *suite) store() es.Store { return s.open(s.T, Limits{}) }

func (s *suite) mustAppend(st es.Store, after es.Head, messages ...es.Message) {
	s.Helper()
	if err := es.Wait(s.ctx, st.Append(s.ctx, after, messages)); err != nil {
		s.Fatalf("append after event %d: %v", after.Sequence, err)
	}
}

// mustHand appends the next n events of a chain as one append.
func (s *suite) mustHand(st es.Store, chain *Chain, n int) []es.Message {
	s.Helper()
	after := chain.Head
	batch := chain.Next(n)
	s.mustAppend(st, after, batch...)
	return batch
}

func (s *suite) wantOutcome(p es.Pending, want error) error {
	s.Helper()
	err := es.Wait(s.ctx, p)
	if !errors.Is(err, want) {
		s.Fatalf("outcome %v, want one marked %q", err, want)
	}
	return err
}

func (s *suite) wantTail(st es.Store, want uint64) {
	s.Helper()
	tail, err := st.Tail(s.ctx)
	if err != nil || tail != want {
		s.Fatalf("the tail is %d (%v), want %d", tail, err, want)
	}
}

func (s *suite) collect(messages iter.Seq2[es.Message, error]) []es.Message {
	s.Helper()
	var got []es.Message
	for m, err := range messages {
		if err != nil {
			s.Fatalf("after %d messages: %v", len(got), err)
		}
		got = append(got, m)
	}
	return got
}

// wantStored checks that the stream holds these messages and nothing else, by all ways of reading it.
func (s *suite) wantStored(st es.Store, want []es.Message) {
	s.Helper()
	s.wantSame(want, s.collect(st.Read(s.ctx, 0)))
	s.wantTail(st, uint64(len(want)))
	for _, i := range []int{0, len(want) / 2, len(want) - 1} {
		if i < 0 || i >= len(want) {
			continue
		}
		got, err := st.Get(s.ctx, uint64(i)+1)
		if err != nil {
			s.Fatalf("get event %d: %v", i+1, err)
		}
		s.wantSame(want[i:i+1], []es.Message{got})
	}
}

func (s *suite) wantSame(want, got []es.Message) {
	s.Helper()
	want, got = normal(want), normal(got)
	if reflect.DeepEqual(want, got) {
		return // a hundred times cheaper than to look for differences
	}
	if diff := cmp.Diff(want, got); diff != "" {
		s.Fatalf("messages (-want +got):\n%s", diff)
	}
}

// normal makes messages comparable: a body of nothing is nothing.
func normal(messages []es.Message) []es.Message {
	out := slices.Clone(messages)
	for i := range out {
		out[i].Header = maps.Clone(out[i].Header)
		if len(out[i].Body) == 0 {
			out[i].Body = nil
		}
	}
	return out
}

// wantChain checks that the stream's hash chain holds, up to a tail.
func (s *suite) wantChain(st es.Store, tail uint64) {
	s.Helper()
	var head es.Head
	for _, err := range es.VerifyChain(&head, st.Read(s.ctx, 0)) {
		if err != nil {
			s.Fatal(err)
		}
	}
	if head.Sequence != tail {
		s.Fatalf("the chain holds up to %d, want %d", head.Sequence, tail)
	}
}
