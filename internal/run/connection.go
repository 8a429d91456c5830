package run

import (
	"context"

	"github.com/cockroachdb/errors"
	"github.com/nats-io/nats.go"
)

// ErrConnectionClosed means that the connection is over for good, and the part with it. Start it again with a new one.
var ErrConnectionClosed = errors.New("the connection to the bus is closed for good")

// awaitClosed waits until the connection is closed for good or the context ends. It gives ErrConnectionClosed.
func awaitClosed(ctx context.Context, nc *nats.Conn) error {
	status := nc.StatusChanged(nats.CLOSED)
	defer nc.RemoveStatusListener(status)
	if !nc.IsClosed() {
		select {
		case <-ctx.Done():
			return nil
		case <-status:
		}
	}
	if cause := nc.LastError(); cause != nil {
		return errors.Mark(errors.Wrap(cause, ErrConnectionClosed.Error()), ErrConnectionClosed)
	}
	return ErrConnectionClosed
}

// Together runs tasks until the context ends or one of them fails, and returns when all have ended, with the first failure. A
// task that ends by itself before that is a failure too: half a process must not look alive. A failure begins with its task's name,
// unless that is empty: the one whose name the caller's own errors begin with.
func Together(ctx context.Context, tasks map[string]func(context.Context) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, len(tasks))
	for name, task := range tasks {
		go func() {
			err := task(ctx)
			switch {
			case ctx.Err() != nil && errors.Is(err, context.Canceled):
				err = nil
			case err == nil && ctx.Err() == nil:
				err = errors.New("has ended by itself")
			}
			if name != "" {
				err = errors.Wrap(err, name)
			}
			ended <- err
		}()
	}
	var failure error
	for range tasks {
		if err := <-ended; err != nil && failure == nil {
			failure = err
		}
		// Whichever ends first ends the others.
		cancel()
	}
	return failure
}
