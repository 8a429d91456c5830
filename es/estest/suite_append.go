package estest

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/cockroachdb/errors"

	"catenary/es"
)

func (s *suite) conflict() {
	st := s.store()
	chain := Chain{Label: "a"}
	want := chain.Append(s.T, st, 3)
	rival := Chain{Label: "b", Head: chain.Head}
	m := rival.Next(1)[0]
	for _, after := range []es.Head{{}, HeadOf(s.T, want[1]), HeadOf(s.T, m), {Sequence: 100, Hash: chain.Head.Hash}} {
		s.wantOutcome(st.Append(s.ctx, after, []es.Message{m}), es.ErrConflict)
		s.wantOutcome(st.Append(s.ctx, after, rival.Next(3)), es.ErrConflict)
	}
	s.wantStored(st, want)
	s.mustHand(st, &chain, 1)
}

// foreignHead appends on a head that has the right sequence, and the hash of an event that is not there.
func (s *suite) foreignHead() {
	for _, stand := range []int{0, 3} {
		st := s.store()
		chain := Chain{Label: "a"}
		chain.Append(s.T, st, stand)
		foreign := es.Head{Sequence: chain.Head.Sequence, Hash: es.Hash{7}}
		for _, size := range []int{1, 2} {
			s.wantOutcome((&Chain{Label: "b", Head: foreign}).Hand(s.ctx, st, size), es.ErrConflict)
		}
		s.wantChain(st, uint64(stand))
		s.mustHand(st, &chain, 1)
		s.mustHand(st, &chain, 2)
		s.wantChain(st, uint64(stand)+3)
	}
}

// cascade hands over 100 appends in one pipeline, of which number 41 fails: those before stand, none after.
func (s *suite) cascade(st es.Store, spoil func(at *es.Head, m *es.Message), want error) {
	s.Helper()
	chain := Chain{Label: "a"}
	var good []es.Message
	var pending []es.Pending
	for i := range 100 {
		after := chain.Head
		m := chain.Next(1)[0]
		switch {
		case i < 40:
			good = append(good, m)
		case i == 40:
			spoil(&after, &m)
		}
		pending = append(pending, st.Append(s.ctx, after, []es.Message{m}))
	}
	for i, p := range pending {
		err := es.Wait(s.ctx, p)
		switch {
		case i < 40 && err != nil:
			s.Errorf("append %d: %v", i, err)
		case i == 40 && !errors.Is(err, want):
			s.Errorf("append %d: %v, want one marked %q", i, err, want)
		case i > 40 && !errors.Is(err, es.ErrConflict):
			s.Errorf("append %d: %v, want a conflict", i, err)
		}
	}
	s.wantStored(st, good)
	s.wantChain(st, 40)
	// The next append goes on from there.
	s.mustHand(st, &Chain{Label: "b", Head: HeadOf(s.T, good[39])}, 1)
}

func (s *suite) cascadeAfterConflict() {
	s.cascade(s.store(), func(after *es.Head, _ *es.Message) { after.Sequence = 7 }, es.ErrConflict)
}

func (s *suite) cascadeAfterRefusal() {
	s.cascade(s.open(s.T, Limits{MessageBytes: 4096}), func(_ *es.Head, m *es.Message) { m.Body = make([]byte, 8192) }, es.ErrTooLarge)
}

// rivalInTheGap loses an append in the middle of a pipeline, and puts a rival's of the same length in its place. By the
// count alone the next one would fit again, on top of what it was not made for: all that follows is refused.
func (s *suite) rivalInTheGap() {
	for _, sizes := range [][]int{{1, 1, 1}, {3, 3, 3}, {1, 3, 1}, {3, 1, 3}, {1, 1, 3}} {
		f := NewFaulty(s.store())
		chain := Chain{Label: "a"}
		f.Script(Pass, LoseAppend)
		first := chain.Hand(s.ctx, f, sizes[0])
		rival := Chain{Label: "b", Head: chain.Head}
		lost := chain.Hand(s.ctx, f, sizes[1])
		taken := rival.Hand(s.ctx, f, sizes[1])
		var rest []es.Pending
		for range 20 {
			rest = append(rest, chain.Hand(s.ctx, f, sizes[2]))
		}
		if err := errors.Join(es.Wait(s.ctx, first), es.Wait(s.ctx, taken)); err != nil {
			s.Fatalf("sizes %v: %v", sizes, err)
		}
		s.wantOutcome(lost, es.ErrUnclear)
		for _, p := range rest {
			s.wantOutcome(p, es.ErrConflict)
		}
		s.wantChain(f, rival.Head.Sequence)
		s.mustHand(f, &rival, 2)
	}
}

// interleave lets two writers hand over the same 500 places in turn, without waiting: one gets all of them, and the other
// is told at each.
func (s *suite) interleave() {
	st := s.store()
	a, b := Chain{Label: "a"}, Chain{Label: "b"}
	var first []es.Message
	var won, lost []es.Pending
	for range 500 {
		m, p := a.HandOne(s.ctx, st)
		first, won = append(first, m), append(won, p)
		lost = append(lost, b.Hand(s.ctx, st, 1))
	}
	for i := range first {
		if err := es.Wait(s.ctx, won[i]); err != nil {
			s.Fatalf("append %d of the first writer: %v", i, err)
		}
		s.wantOutcome(lost[i], es.ErrConflict)
	}
	s.wantStored(st, first)
	s.wantChain(st, 500)
}

// takeTurns lets four writers append as writers do: one append in flight each, and after a conflict each takes in what
// the others stored. All get through, and one chain holds over all of them.
func (s *suite) takeTurns() {
	const writers, each = 4, 15
	st := s.store()
	var wg sync.WaitGroup
	failed := make(chan error, writers)
	for w := range writers {
		wg.Go(func() { failed <- s.writeInTurn(st, Chain{Label: fmt.Sprint("writer ", w)}, each, 1+w%2) })
	}
	wg.Wait()
	for range writers {
		if err := <-failed; err != nil {
			s.Fatal(err)
		}
	}
	s.wantChain(st, writers/2*each*(1+2))
	ids := map[string]bool{}
	for _, m := range s.collect(st.Read(s.ctx, 0)) {
		id := m.Header[es.HeaderID][0]
		if ids[id] {
			s.Errorf("event %s stands twice", id)
		}
		ids[id] = true
	}
}

func (s *suite) writeInTurn(st es.Store, chain Chain, appends, size int) error {
	for appends > 0 {
		for _, err := range es.VerifyChain(&chain.Head, st.Read(s.ctx, chain.Head.Sequence)) {
			if err != nil {
				return err
			}
		}
		next := chain
		err := es.Wait(s.ctx, next.Hand(s.ctx, st, size))
		switch {
		case err == nil:
			chain = next
			appends--
		case !errors.Is(err, es.ErrConflict):
			return err
		}
	}
	return nil
}

func (s *suite) batches() {
	st := s.store()
	chain := Chain{Label: "a"}
	before := chain.Head
	want := chain.Append(s.T, st, 1)
	for _, size := range []int{2, 3, 100, es.MaxAppendMessages} {
		stale := Chain{Label: "stale", Head: before}
		s.wantOutcome(stale.Hand(s.ctx, st, size), es.ErrConflict)
		s.wantTail(st, chain.Head.Sequence)
		before = chain.Head
		want = append(want, s.mustHand(st, &chain, size)...)
		s.wantTail(st, chain.Head.Sequence)
	}
	s.wantStored(st, want)
	s.wantChain(st, uint64(len(want)))
}

func (s *suite) mixedPipeline() {
	st := s.store()
	chain := Chain{Label: "a"}
	var want []es.Message
	var pending []es.Pending
	for i := range 200 {
		size := 1
		switch {
		case i%50 == 49:
			size = 60
		case i%10 == 9:
			size = 2
		}
		after := chain.Head
		messages := chain.Next(size)
		want = append(want, messages...)
		pending = append(pending, st.Append(s.ctx, after, messages))
	}
	for i, p := range pending {
		if err := es.Wait(s.ctx, p); err != nil {
			s.Fatalf("append %d: %v", i, err)
		}
	}
	s.wantStored(st, want)
	s.wantChain(st, uint64(len(want)))
}

// noAppends covers the case D11 at the level of the store: what would make the server close the connection is refused
// before it is sent.
func (s *suite) noAppends() {
	st := s.store()
	chain := Chain{Label: "a"}
	if err := es.Wait(s.ctx, st.Append(s.ctx, es.Head{}, nil)); err == nil {
		s.Error("an append of nothing was taken")
	}
	unsealed := (&es.Event{Ref: es.Ref{Aggregate: "node", Key: "n"}}).Message(es.ContentTypeMsgpack)
	if err := es.Wait(s.ctx, st.Append(s.ctx, es.Head{}, []es.Message{unsealed})); err == nil {
		s.Error("a message that was not sealed was taken")
	}
	long := chain.On(es.Ref{Aggregate: "node", Key: strings.Repeat("x", 5000)})
	s.wantOutcome(st.Append(s.ctx, es.Head{}, []es.Message{long}), es.ErrTooLarge)
	s.wantOutcome((&Chain{Label: "b"}).Hand(s.ctx, st, es.MaxAppendMessages+1), es.ErrTooLarge)
	want := (&Chain{Label: "c"}).Append(s.T, st, 2)
	s.wantStored(st, want)
}

func (s *suite) tooLarge() {
	const limit = 4096
	st := s.open(s.T, Limits{MessageBytes: limit})
	chain := Chain{Label: "a"}
	want := chain.Append(s.T, st, 1)
	over := chain
	err := s.wantOutcome(st.Append(s.ctx, chain.Head, []es.Message{over.Sized(limit)}), es.ErrTooLarge)
	if !strings.Contains(err.Error(), fmt.Sprint(limit)) {
		s.Errorf("the error does not name the limit of %d: %v", limit, err)
	}
	s.wantStored(st, want)
	after := chain.Head
	under := chain.Sized(limit / 2)
	s.mustAppend(st, after, under)
	s.wantStored(st, append(want, under))
}

func (s *suite) tooLargeInBatch() {
	st := s.open(s.T, Limits{MessageBytes: 4096})
	chain := Chain{Label: "a"}
	want := chain.Append(s.T, st, 1)
	for at := range 3 {
		over := chain
		var batch []es.Message
		for i := range 3 {
			if i == at {
				batch = append(batch, over.Sized(8192))
			} else {
				batch = append(batch, over.Next(1)...)
			}
		}
		s.wantOutcome(st.Append(s.ctx, chain.Head, batch), es.ErrTooLarge)
	}
	s.wantStored(st, want)
	s.mustHand(st, &chain, 3)
}

// full fills a store up to its limit: everything after that is refused, whole, and what stands stays.
func (s *suite) full() {
	st := s.open(s.T, Limits{TotalBytes: 64 << 10})
	chain := Chain{Label: "a"}
	var err error
	for err == nil {
		if chain.Head.Sequence > 1000 {
			s.Fatal("the store took a thousand events of 1 KiB in 64 KiB")
		}
		next := chain
		if err = es.Wait(s.ctx, st.Append(s.ctx, chain.Head, []es.Message{next.Sized(1 << 10)})); err == nil {
			chain = next
		}
	}
	if !errors.Is(err, es.ErrFull) {
		s.Fatalf("outcome %v, want one marked %q", err, es.ErrFull)
	}
	tail := chain.Head.Sequence
	for range 3 {
		over := chain
		s.wantOutcome(st.Append(s.ctx, chain.Head, []es.Message{over.Sized(1 << 10), over.Sized(1 << 10)}), es.ErrFull)
	}
	s.wantTail(st, tail)
	s.wantChain(st, tail)
	// A pipeline breaks there like at any other refusal.
	over := chain
	first := st.Append(s.ctx, chain.Head, []es.Message{over.Sized(1 << 10)})
	second := over.Hand(s.ctx, st, 1)
	s.wantOutcome(first, es.ErrFull)
	s.wantOutcome(second, es.ErrConflict)
	s.wantTail(st, tail)
}

// settled runs a script against an append that is unclear and gives what became of it.
func (s *suite) settled(size int, script ...Fault) (f *Faulty, chain *Chain, batch []es.Message, err error) {
	s.Helper()
	f = NewFaulty(s.store())
	chain = &Chain{Label: "a"}
	chain.Append(s.T, f, 3)
	f.Script(script...)
	after := chain.Head
	batch = chain.Next(size)
	s.wantOutcome(f.Append(s.ctx, after, batch), es.ErrUnclear)
	return f, chain, batch, es.Settle(s.ctx, f, after, batch)
}

func (s *suite) wantSettled(size int, script ...Fault) {
	s.Helper()
	f, chain, batch, err := s.settled(size, script...)
	if err != nil {
		s.Fatalf("settled with %v", err)
	}
	f.DeliverLate(s.ctx)
	got := s.collect(f.Read(s.ctx, 3))
	s.wantSame(batch, got)
	s.wantChain(f, chain.Head.Sequence)
	chain.Append(s.T, f, 1)
}

func (s *suite) settleStored() {
	s.wantSettled(1, LoseAck)
	s.wantSettled(5, LoseAck)
}

func (s *suite) settleLost() {
	s.wantSettled(1, LoseAppend)
	s.wantSettled(5, LoseAppend)
	s.wantSettled(2, LoseAppend, LoseAppend, LoseAck)
}

func (s *suite) settleLate() {
	s.wantSettled(1, StoreLate)
	s.wantSettled(5, StoreLate)
	s.wantSettled(5, StoreLate, StoreLate, LoseAck)
}

// settleRace stores the late append after Settle has looked and before its own try: the try meets a conflict, which is
// with itself.
func (s *suite) settleRace() {
	s.wantSettled(1, StoreLate, AfterLate)
	s.wantSettled(5, StoreLate, AfterLate)
}

func (s *suite) settleOvertaken() {
	for _, size := range []int{1, 5} {
		f := NewFaulty(s.store())
		chain := Chain{Label: "a"}
		chain.Append(s.T, f, 3)
		rival := Chain{Label: "b", Head: chain.Head}
		after := chain.Head
		batch := chain.Next(size)
		f.Script(StoreLate)
		s.wantOutcome(f.Append(s.ctx, after, batch), es.ErrUnclear)
		rival.Append(s.T, f, 1)
		if err := es.Settle(s.ctx, f, after, batch); !errors.Is(err, es.ErrConflict) {
			s.Fatalf("settled with %v, want a conflict", err)
		}
		for _, err := range f.DeliverLate(s.ctx) {
			if !errors.Is(err, es.ErrConflict) {
				s.Errorf("the late append came to %v", err)
			}
		}
		s.wantChain(f, 4)
	}
}

func (s *suite) settleWithoutReads() {
	f := NewFaulty(s.store())
	chain := Chain{Label: "a"}
	f.Script(LoseAck)
	batch := chain.Next(2)
	s.wantOutcome(f.Append(s.ctx, es.Head{}, batch), es.ErrUnclear)
	f.BreakReads()
	short, cancel := context.WithTimeout(s.ctx, 50*time.Millisecond)
	defer cancel()
	if err := es.Settle(short, f, es.Head{}, batch); !errors.Is(err, es.ErrUnclear) {
		s.Fatalf("settled with %v, want still unclear", err)
	}
	f.MendReads()
	if err := es.Settle(s.ctx, f, es.Head{}, batch); err != nil {
		s.Fatalf("settled with %v", err)
	}
	s.wantStored(f.Store, batch)
}

// settleWhileFull goes on trying while the store is full or away.
func (s *suite) settleWhileFull() {
	full, away := errors.Mark(errors.New("full"), es.ErrFull), errors.Mark(errors.New("away"), es.ErrUnavailable)
	s.wantSettled(2, LoseAppend, Refuse(full), Refuse(away), Refuse(full))
}
