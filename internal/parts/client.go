package parts

import (
	"context"
	"encoding/json"
	"iter"
	"sync"
	"time"

	"github.com/cockroachdb/errors"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"
)

// patience is how long a client waits for the next part. The service says every second that it is still at it.
const patience = 20 * time.Second

// ErrUnreachable means that no answer comes: nobody listens, the connection was lost, or it took too long. What was asked for may have
// been done.
var ErrUnreachable = errors.New("no answer comes")

// Refused is an error that travelled.
type Refused struct{ Code, Text string }

// Error is what the service says.
func (r *Refused) Error() string { return r.Text }

// Guard gives a context that ends with a cause of its own as soon as the bus refuses what goes to one of the subjects. Without one a
// refused request only times out.
type Guard func(ctx context.Context, subjects ...string) (context.Context, context.CancelFunc)

// Client asks. It may be used by many goroutines at once.
type Client struct {
	conn  *nats.Conn
	guard Guard
	// translate gives the caller's errors for what travelled, and for what is marked [ErrUnreachable].
	translate func(error) error
}

// NewClient returns a client that asks over the connection. Guard may be nil.
func NewClient(conn *nats.Conn, guard Guard, translate func(error) error) *Client {
	if guard == nil {
		guard = func(ctx context.Context, _ ...string) (context.Context, context.CancelFunc) {
			return context.WithCancel(ctx)
		}
	}
	return &Client{conn: conn, guard: guard, translate: translate}
}

// Ask sends a request and gives the parts of its answer to take, until the last one. It gives the errors of translate, of take, and what
// the guard gives.
func (c *Client) Ask(ctx context.Context, m *nats.Msg, take func(*nats.Msg) error) error {
	ctx, unguard := c.guard(ctx, m.Subject)
	defer unguard()
	ctx, unwatch := c.whileConnected(ctx)
	defer unwatch()
	m.Reply = c.conn.NewInbox()
	sub, err := c.conn.SubscribeSync(m.Reply)
	if err == nil {
		defer func() { _ = sub.Unsubscribe() }() // it fails only with the connection, of which the next request tells
		err = c.conn.PublishMsg(m)
	}
	if err != nil {
		return c.translate(errors.Mark(errors.Wrapf(err, "ask on %s", m.Subject), ErrUnreachable))
	}
	for {
		part, err := next(ctx, sub, m.Subject)
		if err != nil {
			return c.translate(err)
		}
		if code := part.Header.Get(micro.ErrorCodeHeader); code != "" {
			return c.translate(errors.WithStack(&Refused{Code: code, Text: part.Header.Get(micro.ErrorHeader)}))
		}
		more := part.Header.Get(headerMore) != ""
		if more && len(part.Data) == 0 {
			continue // a sign of life
		}
		if err := take(part); err != nil {
			return err
		}
		if !more {
			return nil
		}
	}
}

// whileConnected gives a context that ends when the connection is lost: an answer that was on its way does not come any more.
func (c *Client) whileConnected(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	lost := c.conn.StatusChanged(nats.RECONNECTING, nats.CLOSED)
	var watching sync.WaitGroup
	watching.Go(func() {
		select {
		case <-lost:
			cancel(errors.Mark(errors.New("the connection to the bus was lost"), ErrUnreachable))
		case <-ctx.Done():
		}
	})
	return ctx, func() {
		cancel(nil)
		watching.Wait()
		c.conn.RemoveStatusListener(lost)
	}
}

func next(ctx context.Context, sub *nats.Subscription, subject string) (*nats.Msg, error) {
	waiting, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	part, err := sub.NextMsgWithContext(waiting)
	switch cause := context.Cause(ctx); {
	case err == nil:
		return part, nil
	case errors.Is(err, nats.ErrNoResponders):
		return nil, errors.Mark(errors.Newf("nobody answers on %s: do a writer and a projector run?", subject), ErrUnreachable)
	case cause != nil:
		return nil, errors.Wrapf(cause, "ask on %s", subject)
	}
	return nil, errors.Mark(errors.Wrapf(err, "ask on %s", subject), ErrUnreachable)
}

// Message makes a request of a question.
func Message(subject string, question any) (*nats.Msg, error) {
	body, err := json.Marshal(question)
	if err != nil {
		return nil, errors.Wrapf(err, "encode what is asked on %s", subject)
	}
	m := nats.NewMsg(subject)
	m.Data = body
	return m, nil
}

// For asks for one value.
func (c *Client) For(ctx context.Context, subject string, question, into any) error {
	m, err := Message(subject, question)
	if err != nil {
		return err
	}
	return c.Ask(ctx, m, func(part *nats.Msg) error {
		return errors.Wrapf(json.Unmarshal(part.Data, into), "the answer on %s", subject)
	})
}

// errEnough ends the reading of an answer of which no more is wanted.
var errEnough = errors.New("enough")

// Values asks for a list of values, each in a part of its own. The first error ends it.
func Values[T any](ctx context.Context, c *Client, subject string, question any) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		m, err := Message(subject, question)
		if err == nil {
			err = c.Ask(ctx, m, func(part *nats.Msg) error {
				if len(part.Data) == 0 {
					return nil
				}
				var v T
				if err := json.Unmarshal(part.Data, &v); err != nil {
					return errors.Wrapf(err, "the answer on %s", subject)
				}
				if !yield(v, nil) {
					return errEnough
				}
				return nil
			})
		}
		if err != nil && !errors.Is(err, errEnough) {
			var zero T
			yield(zero, err)
		}
	}
}
