package streams

import (
	"context"
	"time"

	"github.com/cockroachdb/errors"
)

// firstPatience is how long the first request may take. Most are answered in milliseconds; one that takes longer on a busy machine gets twice
// the time when it is made again.
const firstPatience = 2 * time.Second

// Insist makes a request again that stays without an answer, each time with twice the patience, until the context ends. A cluster never answers a
// request that came while a stream had no leader, and who waits for that answer waits as long as it may. The request MUST do no harm when it is
// made twice. It gives the request's errors.
func Insist(ctx context.Context, request func(context.Context) error) error {
	for patience := firstPatience; ; patience *= 2 {
		attempt, cancel := context.WithTimeout(ctx, patience)
		err := request(attempt)
		unanswered := errors.Is(attempt.Err(), context.DeadlineExceeded)
		cancel()
		if err == nil || !unanswered || ctx.Err() != nil {
			return err
		}
	}
}
