package streams_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"catenary/internal/streams"
)

// deaf is a server that loses the first requests.
type deaf struct {
	jetstream.JetStream
	loses, asked int
}

func (d *deaf) CreateStream(ctx context.Context, _ jetstream.StreamConfig) (jetstream.Stream, error) {
	if d.asked++; d.asked <= d.loses {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return nil, nil
}

func TestCreateAsksAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		server := &deaf{loses: 2}
		if _, err := streams.Create(ctx, server, jetstream.StreamConfig{Name: "S"}); err != nil || server.asked != 3 {
			t.Errorf("got error %v after %d requests, want the third to be answered", err, server.asked)
		}
		server = &deaf{loses: 1000}
		if _, err := streams.Create(ctx, server, jetstream.StreamConfig{Name: "S"}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got error %v, want the end of the context", err)
		}
	})
}
