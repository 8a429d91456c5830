package estest

import (
	"bytes"
	"context"
	"iter"
	"maps"

	"catenary/es"
)

// Tamper wraps a store whose messages were changed behind its back: every message read passes through change, which gives
// false to hide it. Change may do as it likes with the message it gets.
func Tamper(s es.Store, change func(es.Message) (es.Message, bool)) es.Store {
	return &tampered{Store: s, change: change}
}

type tampered struct {
	es.Store
	change func(es.Message) (es.Message, bool)
}

func (t *tampered) all(messages iter.Seq2[es.Message, error]) iter.Seq2[es.Message, error] {
	return func(yield func(es.Message, error) bool) {
		for m, err := range messages {
			if err == nil {
				var kept bool
				m.Header, m.Body = maps.Clone(m.Header), bytes.Clone(m.Body)
				if m, kept = t.change(m); !kept {
					continue
				}
			}
			if !yield(m, err) {
				return
			}
		}
	}
}

// Get gives the message as changed; a hidden one is not found.
func (t *tampered) Get(ctx context.Context, sequence uint64) (es.Message, error) {
	m, err := t.Store.Get(ctx, sequence)
	if err != nil {
		return m, err
	}
	m.Header, m.Body = maps.Clone(m.Header), bytes.Clone(m.Body)
	if m, kept := t.change(m); kept {
		return m, nil
	}
	return es.Message{}, es.ErrNotFound
}

// Read gives the messages as changed.
func (t *tampered) Read(ctx context.Context, after uint64) iter.Seq2[es.Message, error] {
	return t.all(t.Store.Read(ctx, after))
}

// ReadAggregate gives the messages as changed.
func (t *tampered) ReadAggregate(ctx context.Context, ref es.Ref) iter.Seq2[es.Message, error] {
	return t.all(t.Store.ReadAggregate(ctx, ref))
}

// Follow gives the messages as changed.
func (t *tampered) Follow(ctx context.Context, after uint64) iter.Seq2[es.Message, error] {
	return t.all(t.Store.Follow(ctx, after))
}
