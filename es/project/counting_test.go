package project_test

import (
	"context"
	"iter"
	"slices"
	"sync"

	"catenary/es"
)

// countingStore notes which events are read in a row.
type countingStore struct {
	es.Store
	mu        sync.Mutex
	sequences []uint64
}

func (c *countingStore) Read(ctx context.Context, after uint64) iter.Seq2[es.Message, error] {
	return c.note(c.Store.Read(ctx, after))
}

func (c *countingStore) Follow(ctx context.Context, after uint64) iter.Seq2[es.Message, error] {
	return c.note(c.Store.Follow(ctx, after))
}

func (c *countingStore) note(messages iter.Seq2[es.Message, error]) iter.Seq2[es.Message, error] {
	return func(yield func(es.Message, error) bool) {
		for m, err := range messages {
			if err == nil {
				c.mu.Lock()
				c.sequences = append(c.sequences, m.Sequence)
				c.mu.Unlock()
			}
			if !yield(m, err) {
				return
			}
		}
	}
}

func (c *countingStore) read() []uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.sequences)
}
