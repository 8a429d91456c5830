package audit

import (
	"context"
	"iter"
	"sync/atomic"

	"catenary/es"
)

// counted counts the messages that are read through it, so that a long check can say how far it is.
type counted struct {
	es.Store
	passed *atomic.Uint64
}

// Read counts what it gives.
func (c counted) Read(ctx context.Context, after uint64) iter.Seq2[es.Message, error] {
	return c.count(c.Store.Read(ctx, after))
}

// Follow counts what it gives.
func (c counted) Follow(ctx context.Context, after uint64) iter.Seq2[es.Message, error] {
	return c.count(c.Store.Follow(ctx, after))
}

func (c counted) count(messages iter.Seq2[es.Message, error]) iter.Seq2[es.Message, error] {
	return func(yield func(es.Message, error) bool) {
		for m, err := range messages {
			if err == nil {
				c.passed.Add(1)
			}
			if !yield(m, err) {
				return
			}
		}
	}
}
