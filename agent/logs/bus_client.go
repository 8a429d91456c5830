package logs

import (
	"context"
	"encoding/json"
	"iter"
	"time"

	"github.com/cockroachdb/errors"
	"github.com/nats-io/nats.go"

	"catenary/es"
	"catenary/internal/parts"
	"catenary/internal/topology"
)

// followInterval is how often it is asked whether there is more.
const followInterval = 500 * time.Millisecond

// Client hands in logs and reads them. It is safe for use by many goroutines.
//
// Its methods give errors marked [es.ErrUnavailable] when nobody answers, and [es.ErrName] for what can't be asked.
type Client struct{ parts *parts.Client }

// NewClient returns a client over a connection. Guard may be nil.
func NewClient(nc *nats.Conn, guard parts.Guard) *Client {
	return &Client{parts.NewClient(nc, guard, translate)}
}

func translate(err error) error {
	var refused *parts.Refused
	switch {
	case errors.As(err, &refused) && refused.Code == codeRequest:
		return errors.Mark(err, es.ErrName)
	case errors.As(err, &refused) && refused.Code != codeFailed, errors.Is(err, parts.ErrUnreachable):
		return errors.Mark(errors.Wrap(err, "logs"), es.ErrUnavailable)
	}
	return err
}

// Put hands in a part. It may be handed in again.
func (c *Client) Put(ctx context.Context, p Part) error {
	m := nats.NewMsg(topology.LogsSubject(es.EscapeToken(p.Node), es.EscapeToken(p.Module)))
	m.Data, p.Text = []byte(p.Text), ""
	said, err := json.Marshal(p)
	if err != nil {
		return errors.Wrap(err, "a part of a log")
	}
	m.Header.Set(headerPart, string(said))
	return c.parts.Ask(ctx, m, func(*nats.Msg) error { return nil })
}

// Read gives what there is, oldest first. It ends after the first error.
func (c *Client) Read(ctx context.Context, q Question) iter.Seq2[Part, error] {
	return func(yield func(Part, error) bool) {
		r := reading{client: c, question: q, seen: map[string]int{}}
		if err := r.toEnd(ctx, yield); err != nil && !errors.Is(err, errEnough) {
			yield(Part{}, err)
		}
	}
}

// Follow gives what there is and what comes, until the context ends, whose error it gives at last. While nobody answers it waits, and goes
// on where it was: nothing is left out, and nothing comes twice.
func (c *Client) Follow(ctx context.Context, q Question) iter.Seq2[Part, error] {
	return func(yield func(Part, error) bool) {
		r := reading{client: c, question: q, seen: map[string]int{}}
		tick := time.NewTicker(followInterval)
		defer tick.Stop()
		for {
			err := r.toEnd(ctx, yield)
			switch {
			case errors.Is(err, errEnough):
				return
			case err != nil && (!errors.Is(err, es.ErrUnavailable) || ctx.Err() != nil):
				yield(Part{}, err)
				return
			}
			select {
			case <-tick.C:
			case <-ctx.Done():
				yield(Part{}, context.Cause(ctx))
				return
			}
		}
	}
}

// errEnough ends the reading of which no more is wanted.
var errEnough = errors.New("enough")

// reading is how far a reader is.
type reading struct {
	client   *Client
	question Question
	// seen is the last part of each span that has not ended.
	seen map[string]int
}

// toEnd reads what there is.
func (r *reading) toEnd(ctx context.Context, yield func(Part, error) bool) error {
	for more := true; more; {
		more = false
		for a, err := range parts.Values[answered](ctx, r.client.parts, topology.QuerySubject(QuestionLogs), r.question) {
			if err != nil {
				return err
			}
			if a.Part == nil {
				r.question.After, more = max(r.question.After, a.Next), a.More
				continue
			}
			// What was read is not asked for again, also when the rest of the answer does not come.
			r.question.After = a.Part.Sequence
			if a.Part.Number <= r.seen[a.Part.ID] {
				continue // handed in twice
			}
			r.seen[a.Part.ID] = a.Part.Number
			if !yield(*a.Part, nil) {
				return errEnough
			}
		}
	}
	return nil
}
