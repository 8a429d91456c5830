package estest

import (
	"context"
	"testing"
	"time"
)

// Bounded is a context that ends after the limit, and with the test's cleanup: one that is still good for what the cleanup does before that.
func Bounded(t testing.TB, limit time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), limit)
	t.Cleanup(cancel)
	return ctx
}
