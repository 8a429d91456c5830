package room

import (
	"context"

	"github.com/nats-io/nats.go"

	"catenary/internal/parts"
	"catenary/internal/topology"
)

// Question is what is asked for the state: catenary.query.room.
const Question = "room"

// Endpoint answers with the watch's state.
func (w *Watch) Endpoint() parts.Endpoint {
	return parts.Endpoint{Name: Question, Subject: topology.QuerySubject(Question), Handler: func(_ context.Context, r *parts.Request) error {
		return r.Value(w.State(), true)
	}}
}

// Ask asks the chain how full its places are. It gives errors marked [parts.ErrUnreachable], and what the guard gives, which may be nil.
func Ask(ctx context.Context, nc *nats.Conn, guard parts.Guard) (s State, err error) {
	client := parts.NewClient(nc, guard, func(err error) error { return err })
	err = client.For(ctx, topology.QuerySubject(Question), struct{}{}, &s)
	return s, err
}
