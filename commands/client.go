package commands

import (
	"context"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/cockroachdb/errors"
	"github.com/google/uuid"

	"catenary/es"
	"catenary/es/dispatch"
)

// Request makes a request of a payload. It travels as msgpack, which keeps JSON in a field byte for byte. It gives an
// *es.Refusal for a payload that is malformed.
func Request(p es.Payload, o dispatch.Options) (dispatch.Request, error) {
	if err := p.Validate(); err != nil {
		return dispatch.Request{}, err
	}
	body, err := es.Msgpack{}.Marshal(p)
	if err != nil {
		return dispatch.Request{}, errors.Wrapf(err, "encode %s %s", p.Ref().Aggregate, p.Verb())
	}
	return dispatch.Request{
		Aggregate: p.Ref().Aggregate, Verb: p.Verb(), Body: body, ContentType: dispatch.ContentTypeMsgpack, Options: o,
	}, nil
}

// Client sends commands for Go programs. Over which bus decides what an answer means: a dispatch.Client or dispatch.Pipeline
// gives the writer's; over a dispatch.InboxClient or a dispatch.Outbox it says that the command is stored, and its outcome
// comes later, as a receipt. It is safe for many goroutines.
type Client struct {
	bus    dispatch.Bus
	within time.Duration
}

// NewClient returns a client that sends over the bus, each command once.
func NewClient(bus dispatch.Bus) *Client { return &Client{bus: bus} }

// Waits between two tries. The first is about what a writer needs to come back to its queue.
const (
	firstRetry = 20 * time.Millisecond
	lastRetry  = 2 * time.Second
)

// Within returns a client that sends a command again, with the same id, while the answer is busy or unknown or does not come at
// all, for as long as d says. So a command is done once at most, however often it is sent.
func (c *Client) Within(d time.Duration) *Client { return &Client{bus: c.bus, within: d} }

// Send validates a payload, sends it and returns the answer. An answer that refuses is no error: see its status, or
// [AsRefusal]. It gives an *es.Refusal for a payload that is malformed, and the errors of [dispatch.Bus] when no answer came.
func (c *Client) Send(ctx context.Context, p es.Payload, o dispatch.Options) (es.Answer, error) {
	r, err := identified(p, o)
	if err != nil {
		return es.Answer{}, err
	}
	return c.send(ctx, r)
}

// identified makes a request of a payload, with an id that it keeps over all tries.
func identified(p es.Payload, o dispatch.Options) (dispatch.Request, error) {
	if o.ID == "" {
		id, err := uuid.NewV7()
		if err != nil {
			return dispatch.Request{}, errors.Wrap(err, "make a command id")
		}
		o.ID = id.String()
	}
	return Request(p, o)
}

// send sends a request until it is answered or the time is over.
func (c *Client) send(ctx context.Context, r dispatch.Request) (es.Answer, error) {
	if c.within <= 0 {
		return c.bus.Send(ctx, r)
	}
	deadline := time.Now().Add(c.within)
	pace := backoff.NewExponentialBackOff()
	pace.InitialInterval, pace.MaxInterval = firstRetry, lastRetry
	for {
		answer, err := c.try(ctx, r, deadline)
		wait := pace.NextBackOff()
		if !transient(answer, err) || ctx.Err() != nil || time.Until(deadline) < wait {
			return answer, err
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return answer, err
		}
	}
}

// try sends a request once, and leaves time for another try.
func (c *Client) try(ctx context.Context, r dispatch.Request, deadline time.Time) (es.Answer, error) {
	ctx, cancel := context.WithTimeout(ctx, min(dispatch.DefaultTimeout, time.Until(deadline)))
	defer cancel()
	return c.bus.Send(ctx, r)
}

// transient says that the same command, sent again, may get another answer soon.
func transient(a es.Answer, err error) bool {
	if err != nil {
		return errors.IsAny(err, dispatch.ErrNoWriter, dispatch.ErrTimeout, es.ErrUnavailable)
	}
	return a.Status == es.StatusBusy || a.Status == es.StatusUnknown
}
