package guard

import (
	"context"

	"github.com/nats-io/nats.go"

	"catenary/internal/parts"
	"catenary/internal/topology"
)

// Question is what is asked for the state: catenary.query.guard.
const Question = "guard"

// Endpoint answers with the watch's state.
func (w *Watch) Endpoint() parts.Endpoint {
	return parts.Endpoint{Name: Question, Subject: topology.QuerySubject(Question), Handler: func(_ context.Context, r *parts.Request) error {
		return r.Value(w.State(), true)
	}}
}

// Ask asks the chain whether its streams are as they must be. It gives errors marked [parts.ErrUnreachable], and what denied gives, which
// may be nil.
func Ask(ctx context.Context, nc *nats.Conn, denied parts.Guard) (s State, err error) {
	client := parts.NewClient(nc, denied, func(err error) error { return err })
	err = client.For(ctx, topology.QuerySubject(Question), struct{}{}, &s)
	return s, err
}
