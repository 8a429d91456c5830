package natsstore

import (
	"context"

	"golang.org/x/sync/semaphore"
)

// window bounds what is sent and not yet answered, in messages and in bytes. Those who wait enter in the order they came.
type window struct {
	messages, bytes       *semaphore.Weighted
	maxMessages, maxBytes int64
}

func newWindow(messages int, bytes int64) *window {
	return &window{
		messages: semaphore.NewWeighted(int64(messages)), maxMessages: int64(messages),
		bytes: semaphore.NewWeighted(bytes), maxBytes: bytes,
	}
}

// enter waits for room. What is larger than the whole window enters alone.
func (w *window) enter(ctx context.Context, messages int, bytes int64) error {
	if err := w.messages.Acquire(ctx, min(int64(messages), w.maxMessages)); err != nil {
		return err
	}
	if err := w.bytes.Acquire(ctx, min(bytes, w.maxBytes)); err != nil {
		w.messages.Release(min(int64(messages), w.maxMessages))
		return err
	}
	return nil
}

func (w *window) leave(messages int, bytes int64) {
	w.messages.Release(min(int64(messages), w.maxMessages))
	w.bytes.Release(min(bytes, w.maxBytes))
}
