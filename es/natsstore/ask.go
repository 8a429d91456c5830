package natsstore

import (
	"context"
	"time"
)

// askAgain is how long a question stays alone. A stream whose leader was lost answers nobody, and who asked then hears nothing when there is
// another one: half a second is a fraction of the four that an election takes at least.
const askAgain = 500 * time.Millisecond

// answer is what a question gave.
type answer[T any] struct {
	value T
	err   error
}

// ask puts a question to the server, for as long as [Config.RequestTimeout], and gives the first answer. While none comes it is asked again, beside
// what was asked before. The answer to one that was out when the connection was lost never comes, and the client would wait for it to the end: so it is
// asked anew on the next one. It MUST change nothing.
func ask[T any](ctx context.Context, s *Store, question func(context.Context) (T, error)) (T, error) {
	ctx, cancel := context.WithTimeout(ctx, s.config.RequestTimeout)
	defer cancel()
	for {
		s.mu.Lock()
		connection := s.connection
		s.mu.Unlock()
		asking, giveUp := context.WithCancel(ctx)
		stop := context.AfterFunc(connection, giveUp)
		a := askRepeatedly(asking, question)
		stop()
		lost := asking.Err() != nil
		giveUp()
		if a.err == nil || !lost || ctx.Err() != nil || s.nc.IsClosed() {
			return a.value, a.err
		}
	}
}

// askRepeatedly asks until the first answer comes, or the context ends.
func askRepeatedly[T any](ctx context.Context, question func(context.Context) (T, error)) answer[T] {
	answers := make(chan answer[T])
	over := make(chan struct{})
	defer close(over)
	put := func() {
		value, err := question(ctx)
		select {
		case answers <- answer[T]{value: value, err: err}:
		case <-over:
		}
	}
	go put()
	tick := time.NewTicker(askAgain)
	defer tick.Stop()
	for {
		select {
		case a := <-answers:
			return a
		case <-tick.C:
			go put()
		}
	}
}
