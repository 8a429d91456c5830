package store

import (
	"context"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// contextOf gives a context that outlives the test's own for its cleanup, and is bounded.
func contextOf(t testing.TB) (context.Context, context.CancelFunc) {
	t.Helper()
	limit := waitLimit
	if *million {
		limit = 20 * waitLimit
	}
	return context.WithTimeout(context.WithoutCancel(t.Context()), limit)
}
