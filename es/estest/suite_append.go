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
	for _, after := range []uint64{0, 2, 4, 100} {
		s.wantOutcome(st.Append(s.ctx, after, []es.Message{m}), es.ErrConflict)
		s.wantOutcome(st.Append(s.ctx, after, rival.Next(3)), es.ErrConflict)
	}
	s.wantStored(st, want)
	s.mustAppend(st, chain.Next(1)...)
}

// cascade hands over 100 appends in one pipeline, of which number 41 fails: those before stand, none after.
func (s *suite) cascade(st es.Store, spoil func(pipeline []es.Message, after []uint64), want error) {
	s.Helper()
	chain := Chain{Label: "a"}
	pipeline := chain.Next(100)
	after := make([]uint64, len(pipeline))
	for i := range after {
		after[i] = uint64(i)
	}
	good := append([]es.Message(nil), pipeline[:40]...)
	spoil(pipeline, after)
	pending := make([]es.Pending, len(pipeline))
	for i, m := range pipeline {
		pending[i] = st.Append(s.ctx, after[i], []es.Message{m})
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
	s.mustAppend(st, (&Chain{Label: "b", Head: es.Head{Sequence: 40}}).Next(1)...)
}

func (s *suite) cascadeAfterConflict() {
	s.cascade(s.store(), func(_ []es.Message, after []uint64) { after[40] = 7 }, es.ErrConflict)
}

func (s *suite) cascadeAfterRefusal() {
	s.cascade(s.open(s.T, Limits{MessageBytes: 4096}), func(pipeline []es.Message, _ []uint64) {
		pipeline[40].Body = make([]byte, 8192)
	}, es.ErrTooLarge)
}

// interleave lets two writers hand over the same 500 places in turn, without waiting: one gets all of them, and the other
// is told at each.
func (s *suite) interleave() {
	st := s.store()
	a, b := Chain{Label: "a"}, Chain{Label: "b"}
	first, second := a.Next(500), b.Next(500)
	var won, lost []es.Pending
	for i := range first {
		won = append(won, s.append(st, first[i]))
		lost = append(lost, s.append(st, second[i]))
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
		err := es.Wait(s.ctx, s.append(st, next.Next(size)...))
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
	want := chain.Append(s.T, st, 1)
	for _, size := range []int{2, 3, 100, es.MaxAppendMessages} {
		stale := Chain{Label: "stale"}.from(chain.Head.Sequence - 1)
		s.wantOutcome(s.append(st, stale.Next(size)...), es.ErrConflict)
		s.wantTail(st, chain.Head.Sequence)
		batch := chain.Next(size)
		s.mustAppend(st, batch...)
		want = append(want, batch...)
		s.wantTail(st, chain.Head.Sequence)
	}
	s.wantStored(st, want)
	s.wantChain(st, uint64(len(want)))
}

// from gives the chain as if it stood at a sequence.
func (c Chain) from(sequence uint64) *Chain {
	c.Head.Sequence = sequence
	return &c
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
		messages := chain.Next(size)
		want = append(want, messages...)
		pending = append(pending, s.append(st, messages...))
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
	if err := es.Wait(s.ctx, st.Append(s.ctx, 0, nil)); err == nil {
		s.Error("an append of nothing was taken")
	}
	long := chain.On(es.Ref{Aggregate: "node", Key: strings.Repeat("x", 5000)})
	s.wantOutcome(st.Append(s.ctx, 0, []es.Message{long}), es.ErrTooLarge)
	many := (&Chain{Label: "b"}).Next(es.MaxAppendMessages + 1)
	s.wantOutcome(st.Append(s.ctx, 0, many), es.ErrTooLarge)
	want := (&Chain{Label: "c"}).Append(s.T, st, 2)
	s.wantStored(st, want)
}

func (s *suite) tooLarge() {
	const limit = 4096
	st := s.open(s.T, Limits{MessageBytes: limit})
	chain := Chain{Label: "a"}
	want := chain.Append(s.T, st, 1)
	over := chain
	err := s.wantOutcome(s.append(st, over.Sized(limit)), es.ErrTooLarge)
	if !strings.Contains(err.Error(), fmt.Sprint(limit)) {
		s.Errorf("the error does not name the limit of %d: %v", limit, err)
	}
	s.wantStored(st, want)
	under := chain.Sized(limit / 2)
	s.mustAppend(st, under)
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
		s.wantOutcome(s.append(st, batch...), es.ErrTooLarge)
	}
	s.wantStored(st, want)
	s.mustAppend(st, chain.Next(3)...)
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
		if err = es.Wait(s.ctx, s.append(st, next.Sized(1<<10))); err == nil {
			chain = next
		}
	}
	if !errors.Is(err, es.ErrFull) {
		s.Fatalf("outcome %v, want one marked %q", err, es.ErrFull)
	}
	tail := chain.Head.Sequence
	for range 3 {
		over := chain
		s.wantOutcome(s.append(st, over.Sized(1<<10), over.Sized(1<<10)), es.ErrFull)
	}
	s.wantTail(st, tail)
	s.wantChain(st, tail)
	// A pipeline breaks there like at any other refusal.
	over := chain
	first, second := s.append(st, over.Sized(1<<10)), s.append(st, over.Sized(1<<10))
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
	batch = chain.Next(size)
	s.wantOutcome(s.append(f, batch...), es.ErrUnclear)
	return f, chain, batch, es.Settle(s.ctx, f, 3, batch)
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
		batch := chain.Next(size)
		f.Script(StoreLate)
		s.wantOutcome(s.append(f, batch...), es.ErrUnclear)
		rival.Append(s.T, f, 1)
		if err := es.Settle(s.ctx, f, 3, batch); !errors.Is(err, es.ErrConflict) {
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
	s.wantOutcome(s.append(f, batch...), es.ErrUnclear)
	f.BreakReads()
	short, cancel := context.WithTimeout(s.ctx, 50*time.Millisecond)
	defer cancel()
	if err := es.Settle(short, f, 0, batch); !errors.Is(err, es.ErrUnclear) {
		s.Fatalf("settled with %v, want still unclear", err)
	}
	f.MendReads()
	if err := es.Settle(s.ctx, f, 0, batch); err != nil {
		s.Fatalf("settled with %v", err)
	}
	s.wantStored(f.Store, batch)
}

// settleWhileFull goes on trying while the store is full or away.
func (s *suite) settleWhileFull() {
	full, away := errors.Mark(errors.New("full"), es.ErrFull), errors.Mark(errors.New("away"), es.ErrUnavailable)
	s.wantSettled(2, LoseAppend, Refuse(full), Refuse(away), Refuse(full))
}
