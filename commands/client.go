package commands

import (
	"context"

	"github.com/cockroachdb/errors"

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

// Client sends commands for Go programs.
type Client struct {
	bus dispatch.Bus
}

// NewClient returns a client that sends over the bus.
func NewClient(bus dispatch.Bus) *Client { return &Client{bus: bus} }

// Send validates a payload, sends it and returns the answer. An answer that refuses is no error: see its status. It gives
// an *es.Refusal for a payload that is malformed, and the errors of [dispatch.Bus] when no answer came.
func (c *Client) Send(ctx context.Context, p es.Payload, o dispatch.Options) (es.Answer, error) {
	r, err := Request(p, o)
	if err != nil {
		return es.Answer{}, err
	}
	return c.bus.Send(ctx, r)
}
