package estest

import (
	"context"
	"fmt"
	"iter"
	"strings"

	"github.com/cockroachdb/errors"
	"github.com/google/go-cmp/cmp"

	"catenary/es"
)

func (s *suite) empty() {
	st := s.store()
	s.wantTail(st, 0)
	if got := s.collect(st.Read(s.ctx, 0)); len(got) != 0 {
		s.Errorf("read %v", got)
	}
	if got := s.collect(st.ReadAggregate(s.ctx, es.Ref{Aggregate: "node", Key: "n1"})); len(got) != 0 {
		s.Errorf("read of one instance: %v", got)
	}
	for _, sequence := range []uint64{0, 1, 99} {
		if m, err := st.Get(s.ctx, sequence); !errors.Is(err, es.ErrNotFound) {
			s.Errorf("get event %d: %v, %v", sequence, m, err)
		}
	}
}

func (s *suite) comesBack() {
	st := s.store()
	chain := Chain{Label: "a"}
	want := chain.Append(s.T, st, 5)
	want = append(want, s.mustHand(st, &chain, 7)...)
	want = append(want, chain.Append(s.T, st, 1)...)
	s.wantStored(st, want)
	s.wantChain(st, 13)
	if m, err := st.Get(s.ctx, 14); !errors.Is(err, es.ErrNotFound) {
		s.Errorf("get event 14: %v, %v", m, err)
	}
}

// oddTexts stores what no header line could carry as it is, in every text of an event.
func (s *suite) oddTexts() {
	st := s.store()
	var chain Chain
	chain.Label = "odd"
	texts := []string{" ", " lead", "trail ", "a: b\r\nNats-Expected-Last-Sequence: 0", "ä節🚀", "%41", "\"", "\x00\x7F", strings.Repeat("é ", 500), "1.20", "0362525"}
	var events []es.Event
	var want []es.Message
	for _, text := range texts {
		e := es.Event{
			ID: text, Type: "node.registered.v1", Ref: es.Ref{Aggregate: "node", Key: es.Key("節 " + text[:1])}, Version: 1, Recorded: Epoch(), Effective: Epoch(),
			Command: es.Cause{ID: text, Digest: text, Actor: text, OnBehalfOf: text, Causation: text, Correlation: text, Trace: text},
			Body:    []byte(text),
		}
		e.Command.Ref = e.Ref
		after := chain.Head
		m := chain.Seal(&e)
		e.Sequence, e.Hash = chain.Head.Sequence, chain.Head.Hash
		events, want = append(events, e), append(want, m)
		s.mustAppend(st, after, m)
	}
	s.wantStored(st, want)
	s.wantChain(st, uint64(len(want)))
	for i, m := range s.collect(st.Read(s.ctx, 0)) {
		e, err := es.ReadEvent(m)
		if err != nil {
			s.Fatal(err)
		}
		if diff := cmp.Diff(events[i], e); diff != "" {
			s.Errorf("event (-written +read):\n%s", diff)
		}
	}
}

// messagesStay checks that neither side of the store can change what the other holds.
func (s *suite) messagesStay() {
	st := s.store()
	chain, same := Chain{Label: "a"}, Chain{Label: "a"}
	given := chain.Next(4)
	want := same.Next(4)
	s.mustAppend(st, es.Head{}, given[0])
	s.mustAppend(st, HeadOf(s.T, given[0]), given[1:]...)
	s.wantSame(want, given)
	for _, m := range s.collect(st.Read(s.ctx, 0)) {
		m.Header[es.HeaderType][0] = "changed"
		m.Header["More"] = []string{"x"}
		m.Body[0] = 'X'
	}
	s.wantStored(st, want)
}

func (s *suite) aggregates() {
	st := s.store()
	chain := Chain{Label: "a"}
	refs := []es.Ref{
		{Aggregate: "assignment", Key: "n1.web"}, {Aggregate: "assignment", Key: "n1"}, {Aggregate: "assignment", Key: "n1.web.x"},
		{Aggregate: "node", Key: "n1.web"}, {Aggregate: "assignment", Key: es.Key("*", ">")},
	}
	want := map[es.Ref][]es.Message{}
	for i := range 60 {
		ref := refs[i%len(refs)]
		after := chain.Head
		m := chain.On(ref)
		want[ref] = append(want[ref], m)
		st.Append(s.ctx, after, []es.Message{m})
	}
	s.mustHand(st, &chain, 1)
	for _, ref := range refs {
		s.wantSame(want[ref], s.collect(st.ReadAggregate(s.ctx, ref)))
	}
	if got := s.collect(st.ReadAggregate(s.ctx, es.Ref{Aggregate: "assignment", Key: "n2.web"})); len(got) != 0 {
		s.Errorf("an instance without events gave %d", len(got))
	}
	read := 0
	for _, err := range st.ReadAggregate(s.ctx, refs[0]) {
		if err != nil {
			s.Fatal(err)
		}
		if read++; read == 2 {
			break
		}
	}
}

func (s *suite) readAfter() {
	st := s.store()
	chain := Chain{Label: "a"}
	want := chain.Append(s.T, st, 20)
	for _, after := range []uint64{0, 1, 7, 19} {
		s.wantSame(want[after:], s.collect(st.Read(s.ctx, after)))
	}
	for _, after := range []uint64{20, 21, 1 << 40} {
		if got := s.collect(st.Read(s.ctx, after)); len(got) != 0 {
			s.Errorf("read after %d gave %d messages", after, len(got))
		}
	}
}

func (s *suite) readEndsAtTail() {
	st := s.store()
	chain := Chain{Label: "a"}
	chain.Append(s.T, st, 10)
	read := 0
	for m, err := range st.Read(s.ctx, 0) {
		if err != nil {
			s.Fatal(err)
		}
		read++
		if m.Sequence > 10 {
			s.Fatalf("event %d was appended after the reading began", m.Sequence)
		}
		chain.Append(s.T, st, 2)
	}
	if read != 10 {
		s.Errorf("read %d messages, want 10", read)
	}
	s.wantTail(st, 30)
}

// readLeftEarly leaves many reads in their middle and then reads on: nothing that was left behind may stand in the way.
func (s *suite) readLeftEarly() {
	st := s.store()
	chain := Chain{Label: "a"}
	want := chain.Append(s.T, st, 300)
	for i := range 20 {
		read := 0
		for m, err := range st.Read(s.ctx, uint64(i)) {
			if err != nil {
				s.Fatal(err)
			}
			if read++; m.Sequence == uint64(i+5) {
				break
			}
		}
		if read != 5 {
			s.Fatalf("read %d messages, want 5", read)
		}
	}
	next, stop := iter.Pull2(st.Read(s.ctx, 0))
	if m, err, ok := next(); !ok || err != nil || m.Sequence != 1 {
		s.Fatalf("the first message is %v (%v)", m, err)
	}
	stop()
	s.wantStored(st, want)
}

func (s *suite) readsCanceled() {
	st := s.store()
	chain := Chain{Label: "a"}
	chain.Append(s.T, st, 3)
	gone, cancel := context.WithCancel(s.ctx)
	cancel()
	check := func(what string, err error) {
		s.Helper()
		if !errors.Is(err, es.ErrUnavailable) || !errors.Is(err, context.Canceled) {
			s.Errorf("%s under an ended context: %v", what, err)
		}
	}
	_, err := st.Tail(gone)
	check("tail", err)
	_, err = st.Get(gone, 1)
	check("get", err)
	for what, messages := range map[string]iter.Seq2[es.Message, error]{
		"read": st.Read(gone, 0), "read of one instance": st.ReadAggregate(gone, es.Ref{Aggregate: "node", Key: "n0"}),
	} {
		read := 0
		for _, err := range messages {
			check(what, err)
			read++
		}
		if read != 1 {
			s.Errorf("%s under an ended context gave %d results, want one error", what, read)
		}
	}
}

func (s *suite) unknownTypes() {
	st := s.store()
	chain := Chain{Label: "a"}
	registry := es.NewRegistry(es.Msgpack{})
	m := chain.Seal(&es.Event{Ref: es.Ref{Aggregate: "future", Key: "x"}, Type: "future.happened.v9", Body: []byte("\xC1 not msgpack")})
	s.mustAppend(st, es.Head{}, m)
	got, err := st.Get(s.ctx, 1)
	if err != nil {
		s.Fatal(err)
	}
	e, err := registry.Decode(got)
	if !errors.Is(err, es.ErrUnknownType) || e.Type != "future.happened.v9" || string(e.Body) != string(m.Body) || e.Data != nil {
		s.Errorf("decoded as %+v (%v)", e, err)
	}
	s.wantStored(st, []es.Message{m})
	s.wantChain(st, 1)
}

// damage checks that what the store gives is enough to find every kind of damage.
func (s *suite) damage() {
	st := s.store()
	chain := Chain{Label: "a"}
	chain.Append(s.T, st, 20)
	at := func(sequence uint64, change func(*es.Message)) func(es.Message) (es.Message, bool) {
		return func(m es.Message) (es.Message, bool) {
			if m.Sequence == sequence {
				change(&m)
			}
			return m, true
		}
	}
	for _, c := range []struct {
		name   string
		change func(es.Message) (es.Message, bool)
		head   uint64
	}{
		{"a changed body", at(8, func(m *es.Message) { m.Body[0] ^= 1 }), 7},
		{"a changed header", at(8, func(m *es.Message) { m.Header[es.HeaderType] = []string{"x"} }), 7},
		{"a missing header", at(8, func(m *es.Message) { delete(m.Header, es.HeaderID) }), 7},
		{"another subject", at(8, func(m *es.Message) { m.Subject += "x" }), 7},
		{"a hole", func(m es.Message) (es.Message, bool) { return m, m.Sequence != 8 }, 7},
		{"a missing start", func(m es.Message) (es.Message, bool) { return m, m.Sequence > 3 }, 0},
		{"a swap", func(m es.Message) (es.Message, bool) {
			if m.Sequence == 8 || m.Sequence == 11 { // both on one instance
				m.Sequence = 19 - m.Sequence
			}
			return m, true
		}, 7},
		{"no damage", func(m es.Message) (es.Message, bool) { return m, true }, 20},
	} {
		var head es.Head
		var found error
		for _, err := range es.VerifyChain(&head, Tamper(st, c.change).Read(s.ctx, 0)) {
			found = err
		}
		if (c.head < 20) != errors.Is(found, es.ErrBrokenChain) || head.Sequence != c.head {
			s.Errorf("%s: the chain holds up to %d, error %v", c.name, head.Sequence, found)
		}
	}
	// What was stored out of its place is found as well: here events 21 and 22 were sealed in the other order.
	later := chain
	wrong := later.Next(2)
	wrong[0].Sequence, wrong[1].Sequence = 22, 21
	s.mustAppend(st, chain.Head, wrong[1])
	s.mustAppend(st, HeadOf(s.T, wrong[1]), wrong[0])
	var head es.Head
	var found error
	for _, err := range es.VerifyChain(&head, st.Read(s.ctx, 0)) {
		found = err
	}
	if !errors.Is(found, es.ErrBrokenChain) || head.Sequence != 20 {
		s.Errorf("events stored in the wrong order: the chain holds up to %d, error %v", head.Sequence, found)
	}
}

// followed is what a follower in the background has seen.
type followed struct {
	messages chan es.Message
	ended    chan error
}

func (s *suite) followInBackground(ctx context.Context, st es.Store, after uint64) followed {
	f := followed{messages: make(chan es.Message, 10_000), ended: make(chan error, 1)}
	go func() {
		for m, err := range st.Follow(ctx, after) {
			if err != nil {
				f.ended <- err
				return
			}
			f.messages <- m
		}
		f.ended <- nil
	}()
	return f
}

func (s *suite) take(f followed, n int) []es.Message {
	s.Helper()
	var got []es.Message
	for len(got) < n {
		select {
		case m := <-f.messages:
			got = append(got, m)
		case err := <-f.ended:
			s.Fatalf("the follower ended after %d of %d messages: %v", len(got), n, err)
		case <-s.ctx.Done():
			s.Fatalf("the follower has given %d of %d messages", len(got), n)
		}
	}
	return got
}

func (s *suite) follow() {
	st := s.store()
	ctx, cancel := context.WithCancel(s.ctx)
	chain := Chain{Label: "a"}
	f := s.followInBackground(ctx, st, 0)
	for range 5 {
		want := chain.Append(s.T, st, 100)
		s.wantSame(append(want, s.mustHand(st, &chain, 10)...), s.take(f, 110))
	}
	cancel()
	if err := <-f.ended; err != nil {
		s.Errorf("the follower ended with %v", err)
	}
}

func (s *suite) followAfter() {
	st := s.store()
	ctx, cancel := context.WithCancel(s.ctx)
	defer cancel()
	chain := Chain{Label: "a"}
	want := chain.Append(s.T, st, 10)
	f := s.followInBackground(ctx, st, 6)
	s.wantSame(want[6:], s.take(f, 4))
	want = chain.Append(s.T, st, 3)
	s.wantSame(want, s.take(f, 3))
}

func (s *suite) followEnds() {
	st := s.store()
	chain := Chain{Label: "a"}
	chain.Append(s.T, st, 10)
	// While it waits, while it reads, and before it starts.
	for _, cancelAt := range []uint64{10, 5, 0} {
		ctx, cancel := context.WithCancel(s.ctx)
		if cancelAt == 0 {
			cancel()
		}
		seen := uint64(0)
		done := make(chan error, 1)
		go func() {
			for m, err := range st.Follow(ctx, 0) {
				if err != nil {
					done <- err
					return
				}
				if seen = m.Sequence; seen == cancelAt {
					cancel()
				}
			}
			done <- nil
		}()
		select {
		case err := <-done:
			if err != nil || seen != cancelAt {
				s.Errorf("ended at %d instead of %d (%v)", seen, cancelAt, err)
			}
		case <-s.ctx.Done():
			s.Fatal(fmt.Sprint("the follower did not end, canceled at ", cancelAt))
		}
		cancel()
	}
	// A caller that leaves.
	for _, err := range st.Follow(s.ctx, 3) {
		if err != nil {
			s.Fatal(err)
		}
		break
	}
}
