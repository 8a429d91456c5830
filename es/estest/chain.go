package estest

import (
	"context"
	"fmt"
	"testing"
	"time"

	"catenary/es"
)

// waitLimit bounds every wait of a test. It is reached only when something is broken.
const waitLimit = time.Minute

// Chain makes events that follow one another, sealed and ready to be appended. A copy of a chain is a fork: its next
// events stand at the same places as the original's.
type Chain struct {
	// Label tells the events of one chain from those of another.
	Label string
	// Head is the end of what was made so far.
	Head es.Head
}

// Next gives the next n events, on three aggregate instances in turn.
func (c *Chain) Next(n int) []es.Message {
	out := make([]es.Message, n)
	for i := range out {
		out[i] = c.On(es.Ref{Aggregate: "node", Key: fmt.Sprint("n", c.Head.Sequence%3)})
	}
	return out
}

// On gives the next event, on an instance.
func (c *Chain) On(ref es.Ref) es.Message {
	return c.Seal(&es.Event{Ref: ref, Type: "node.registered.v1", Body: fmt.Appendf(nil, "%s %d", c.Label, c.Head.Sequence+1)})
}

// Sized gives the next event, with a body of a size.
func (c *Chain) Sized(bytes int) es.Message {
	return c.Seal(&es.Event{Ref: es.Ref{Aggregate: "node", Key: "large"}, Type: "node.registered.v1", Body: make([]byte, bytes)})
}

// Seal gives an event its place in the chain. What the event leaves open is filled in.
func (c *Chain) Seal(e *es.Event) es.Message {
	sequence := c.Head.Sequence + 1
	if e.ID == "" {
		e.ID = fmt.Sprintf("%s-%d", c.Label, sequence)
	}
	if e.Recorded.IsZero() {
		e.Recorded = Epoch().Add(time.Duration(sequence) * time.Second)
	}
	if e.Command.ID == "" {
		e.Command.ID = "command-" + e.ID
	}
	m := e.Message(es.ContentTypeMsgpack)
	c.Head = c.Head.Seal(&m)
	return m
}

// Hand hands the next n events over as one append, and does not wait.
func (c *Chain) Hand(ctx context.Context, s es.Store, n int) es.Pending {
	after := c.Head
	return s.Append(ctx, after, c.Next(n))
}

// HandOne hands the next event over as an append of its own, and does not wait.
func (c *Chain) HandOne(ctx context.Context, s es.Store) (es.Message, es.Pending) {
	after := c.Head
	batch := c.Next(1)
	return batch[0], s.Append(ctx, after, batch)
}

// HeadOf gives the head that a sealed message leaves.
func HeadOf(t testing.TB, m es.Message) es.Head {
	t.Helper()
	hash, err := m.Hash()
	if err != nil {
		t.Fatal(err)
	}
	return es.Head{Sequence: m.Sequence, Hash: hash}
}

// Append appends the next events, one append each, and waits for all of them.
func (c *Chain) Append(t testing.TB, s es.Store, n int) []es.Message {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), waitLimit)
	defer cancel()
	messages, pending := make([]es.Message, n), make([]es.Pending, n)
	for i := range messages {
		messages[i], pending[i] = c.HandOne(ctx, s)
	}
	for i, p := range pending {
		if err := es.Wait(ctx, p); err != nil {
			t.Fatalf("append of event %d: %v", messages[i].Sequence, err)
		}
	}
	return messages
}
