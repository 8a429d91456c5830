package store

import (
	"context"
	"testing"

	"catenary/es/estest"
)

func TestMain(m *testing.M) { estest.VerifyTestMain(m) }

// contextOf gives a context that outlives the test's own for its cleanup, and is bounded.
func contextOf(t testing.TB) (context.Context, context.CancelFunc) {
	t.Helper()
	limit := waitLimit
	if *million {
		limit = 20 * waitLimit
	}
	return context.WithTimeout(context.WithoutCancel(t.Context()), limit)
}
