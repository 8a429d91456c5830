package natsstore

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/errors"
)

// TestAskAgain: a question that is not answered, as a stream without a leader answers none, is asked again beside it, and the first answer counts; when
// none comes, the end of the context does.
func TestAskAgain(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		// answered is which question is answered, after how long.
		answered int32
		after    time.Duration
		took     time.Duration
		fails    error
	}{
		"at once":            {answered: 1},
		"late":               {answered: 1, after: 3 * time.Second, took: 3 * time.Second},
		"by another":         {answered: 4, took: 3 * askAgain},
		"with an error":      {answered: 2, took: askAgain, fails: errors.New("no such event")},
		"not while it waits": {answered: 1000, took: 5 * time.Second, fails: context.DeadlineExceeded},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				var asked atomic.Int32
				s := &Store{config: Config{RequestTimeout: 5 * time.Second}, connection: context.Background()}
				got, err := ask(context.Background(), s, func(ctx context.Context) (int32, error) {
					n := asked.Add(1)
					if n < c.answered {
						<-ctx.Done()
						return 0, ctx.Err()
					}
					select {
					case <-time.After(c.after):
						return n, c.fails
					case <-ctx.Done():
						return 0, ctx.Err()
					}
				})
				if took := time.Since(began); took != c.took || !errors.Is(err, c.fails) || err == nil && got != c.answered {
					t.Errorf("it gives %d, %v after %s, want %d, %v after %s", got, err, took, c.answered, c.fails, c.took)
				}
			})
		})
	}
}
