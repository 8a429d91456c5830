package proof

import (
	"context"
	"encoding/json"

	"github.com/cockroachdb/errors"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"catenary/es"
	"catenary/internal/topology"
)

// signedSubject is where those services alone take a question whose logs sign.
func signedSubject(question string) string { return topology.QuerySubject("signed." + question) }

// signed makes an answer of a log without keys to a question about what is signed: that of one which signs, while there is any. A question
// comes to any of several services, and what it is answered must not hang on which.
func signed(nc *nats.Conn, question string, own func(context.Context, []byte) (any, error)) func(context.Context, []byte) (any, error) {
	return func(ctx context.Context, body []byte) (any, error) {
		m, err := nc.RequestWithContext(ctx, signedSubject(question), body)
		switch {
		case errors.Is(err, nats.ErrNoResponders):
			return own(ctx, body)
		case err != nil:
			return nil, errors.Mark(errors.Wrap(err, "ask a projector that signs checkpoints"), es.ErrUnavailable)
		}
		if code := m.Header.Get(micro.ErrorCodeHeader); code != "" {
			return nil, errorOf(code, m.Header.Get(micro.ErrorHeader))
		}
		return json.RawMessage(m.Data), nil
	}
}
