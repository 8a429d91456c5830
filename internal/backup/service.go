package backup

import (
	"context"
	"iter"
	"strconv"

	"github.com/cockroachdb/errors"
	"github.com/nats-io/nats.go"

	"catenary/es"
	"catenary/internal/parts"
	"catenary/internal/topology"
)

// What is asked: catenary.query.backup.<name>.
const (
	askTail        = "tail"
	askEvents      = "events"
	askCheckpoints = "checkpoints"
	askActors      = "actors"
	askWaiting     = "waiting"
)

// Headers of a chunk of events.
const (
	headerFirst = "Cat-First"
	headerLast  = "Cat-Last"
)

// CodeUnavailable is that of an error that may be gone when one asks again.
const CodeUnavailable = "503"

func subject(name string) string { return topology.QuerySubject("backup." + name) }

type eventsQuestion struct {
	After uint64 `json:"after"`
	Last  uint64 `json:"last"`
}

type tailAnswer struct {
	Tail uint64 `json:"tail"`
}

// Endpoints answer with what the ledger gives.
func (l *Ledger) Endpoints() []parts.Endpoint {
	endpoint := func(name string, handler parts.Handler) parts.Endpoint {
		return parts.Endpoint{Name: "backup-" + name, Subject: subject(name), Handler: handler}
	}
	return []parts.Endpoint{
		endpoint(askTail, func(ctx context.Context, r *parts.Request) error {
			tail, err := l.Tail(ctx)
			if err != nil {
				return err
			}
			return r.Value(tailAnswer{tail}, true)
		}),
		endpoint(askEvents, func(ctx context.Context, r *parts.Request) error {
			var q eventsQuestion
			if err := r.Read(&q); err != nil {
				return err
			}
			err := l.Events(ctx, q.After, q.Last, func(c Chunk) error {
				return r.Send(nats.Header{headerFirst: {strconv.FormatUint(c.First, 10)}, headerLast: {strconv.FormatUint(c.Last, 10)}}, c.Data, false)
			})
			if err != nil {
				return err
			}
			return r.Send(nil, nil, true)
		}),
		endpoint(askCheckpoints, func(ctx context.Context, r *parts.Request) error { return sendEach(ctx, r, l.Checkpoints) }),
		endpoint(askActors, func(ctx context.Context, r *parts.Request) error { return sendEach(ctx, r, l.Actors) }),
		endpoint(askWaiting, func(ctx context.Context, r *parts.Request) error { return sendEach(ctx, r, l.Waiting) }),
	}
}

// sendEach sends every value in a part of its own.
func sendEach[T any](ctx context.Context, r *parts.Request, values func(context.Context) iter.Seq2[T, error]) error {
	err := r.Alive(ctx, func(ctx context.Context) error {
		for v, err := range values(ctx) {
			if err == nil {
				err = r.Value(v, false)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return r.Send(nil, nil, true)
}

// Client is the source of a chain that runs, over a connection of people.
type Client struct{ parts *parts.Client }

var _ Source = (*Client)(nil)

// NewClient returns a client that asks over the connection. Guard may be nil.
func NewClient(nc *nats.Conn, guard parts.Guard) *Client {
	return &Client{parts.NewClient(nc, guard, func(err error) error {
		var refused *parts.Refused
		switch {
		case errors.As(err, &refused) && refused.Code == CodeUnavailable, errors.Is(err, parts.ErrUnreachable):
			return errors.Mark(err, es.ErrUnavailable)
		}
		return err
	})}
}

// Tail implements [Source].
func (c *Client) Tail(ctx context.Context) (uint64, error) {
	var a tailAnswer
	err := c.parts.For(ctx, subject(askTail), struct{}{}, &a)
	return a.Tail, err
}

// Events implements [Source].
func (c *Client) Events(ctx context.Context, after, last uint64, take func(Chunk) error) error {
	m, err := parts.Message(subject(askEvents), eventsQuestion{After: after, Last: last})
	if err != nil {
		return err
	}
	return c.parts.Ask(ctx, m, func(part *nats.Msg) error {
		if len(part.Data) == 0 {
			return nil
		}
		chunk := Chunk{Data: part.Data}
		for name, into := range map[string]*uint64{headerFirst: &chunk.First, headerLast: &chunk.Last} {
			n, err := strconv.ParseUint(part.Header.Get(name), 10, 64)
			if err != nil {
				return errors.Wrapf(err, "a chunk of events: header %s", name)
			}
			*into = n
		}
		return take(chunk)
	})
}

// Checkpoints implements [Source].
func (c *Client) Checkpoints(ctx context.Context) iter.Seq2[string, error] {
	return parts.Values[string](ctx, c.parts, subject(askCheckpoints), struct{}{})
}

// Actors implements [Source].
func (c *Client) Actors(ctx context.Context) iter.Seq2[Actor, error] {
	return parts.Values[Actor](ctx, c.parts, subject(askActors), struct{}{})
}

// Waiting implements [Source].
func (c *Client) Waiting(ctx context.Context) iter.Seq2[Waiting, error] {
	return parts.Values[Waiting](ctx, c.parts, subject(askWaiting), struct{}{})
}
