package parts

import (
	"bytes"
	"context"
	"encoding/json"
	"strconv"
	"sync"
	"time"

	"github.com/cockroachdb/errors"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"catenary/internal/serving"
)

// aliveInterval is how often a request that takes long is said to be worked at.
const aliveInterval = time.Second

// headerMore says that a part is not the last one.
const headerMore = "Cat-More"

// ErrRequest marks a request that can't be read.
var ErrRequest = errors.New("malformed request")

// Request is a request and the way its answer goes.
type Request struct {
	micro.Request
	conn *nats.Conn
	// mu keeps a sign of life from coming after the end.
	mu    sync.Mutex
	ended bool
}

// Read reads the question, strictly. It gives errors marked [ErrRequest].
func (r *Request) Read(into any) error {
	d := json.NewDecoder(bytes.NewReader(r.Data()))
	d.DisallowUnknownFields()
	return errors.Mark(errors.Wrap(d.Decode(into), "the request's body"), ErrRequest)
}

// Number reads a header. It gives errors marked [ErrRequest].
func (r *Request) Number(name string) (int64, error) {
	n, err := strconv.ParseInt(r.Headers().Get(name), 10, 64)
	return n, errors.Mark(errors.Wrapf(err, "header %s", name), ErrRequest)
}

// Send sends a part; last says that it is the last one, after which nothing is sent.
func (r *Request) Send(h nats.Header, body []byte, last bool) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended {
		return nil
	}
	r.ended = last
	if h == nil {
		h = nats.Header{}
	}
	if !last {
		h.Set(headerMore, "1")
	}
	return serving.Respond(r.conn, r.Reply(), h, body)
}

// Value sends a value as a part.
func (r *Request) Value(v any, last bool) error {
	body, err := json.Marshal(v)
	if err != nil {
		return errors.Wrap(err, "encode the answer")
	}
	return r.Send(nil, body, last)
}

// Each sends every value in a part of its own, and an empty last one.
func Each[T any](r *Request, values []T) error {
	for _, v := range values {
		if err := r.Value(v, false); err != nil {
			return err
		}
	}
	return r.Send(nil, nil, true)
}

// Alive says that the request is being worked at until the work is done.
func (r *Request) Alive(ctx context.Context, work func(context.Context) error) error {
	ctx, cancel := context.WithCancel(ctx)
	var saying sync.WaitGroup
	saying.Go(func() {
		tick := time.NewTicker(aliveInterval)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				if r.Send(nil, nil, false) != nil {
					return // the end of the answer will not arrive either, and that is reported
				}
			}
		}
	})
	err := work(ctx)
	cancel()
	saying.Wait()
	return err
}
