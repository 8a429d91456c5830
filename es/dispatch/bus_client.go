package dispatch

import (
	"context"
	"encoding/json"
	"time"

	"github.com/cockroachdb/errors"
	"github.com/google/uuid"
	"github.com/nats-io/nats.go"

	"catenary/es"
)

// CommandPrefix starts the subject of every command: catenary.cmd.<aggregate>.<verb>.
const CommandPrefix = "catenary.cmd"

// DefaultTimeout is how long a sender waits for an answer when its context says nothing: longer than the writer's
// patience, so that the writer's own "unknown" arrives first.
const DefaultTimeout = 10 * time.Second

// RequestFunc sends one message and waits for one answer. It MUST mark a refusal by the server's permissions with
// [ErrDenied].
type RequestFunc func(ctx context.Context, m *nats.Msg) (*nats.Msg, error)

// Client sends commands over NATS. It is safe for many goroutines.
type Client struct {
	request RequestFunc
}

// NewClient returns a client that sends through a connection.
func NewClient(nc *nats.Conn) *Client { return &Client{request: nc.RequestMsgWithContext} }

// NewClientFunc returns a client that sends through a function, for connections that know more of refusals.
func NewClientFunc(request RequestFunc) *Client { return &Client{request: request} }

// Send implements [Bus].
func (c *Client) Send(ctx context.Context, r Request) (es.Answer, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	if r.ID == "" {
		id, err := uuid.NewV7()
		if err != nil {
			return es.Answer{}, errors.Wrap(err, "make a command id")
		}
		r.ID = id.String()
	}
	reply, err := c.request(ctx, message(CommandPrefix, r))
	if err != nil {
		return es.Answer{}, sendError(r, err)
	}
	return readAnswer(r, reply)
}

// message is a request as it goes over the bus, below a prefix.
func message(prefix string, r Request) *nats.Msg {
	m := nats.NewMsg(prefix + "." + r.Aggregate + "." + r.Verb)
	m.Data = r.Body
	writeOptions(r.Options, func(name, value string) { m.Header[name] = []string{es.EncodeHeaderValue(value)} })
	if r.ContentType != "" {
		m.Header[HeaderContentType] = []string{r.ContentType}
	}
	return m
}

func readAnswer(r Request, reply *nats.Msg) (es.Answer, error) {
	var a es.Answer
	if err := json.Unmarshal(reply.Data, &a); err != nil {
		return es.Answer{}, errors.Wrapf(err, "the answer to %s %s (%s) can't be read", r.Aggregate, r.Verb, r.ID)
	}
	a.Repeated = header(reply.Header, HeaderRepeated) != ""
	return a, nil
}

// sendError says why no answer came.
func sendError(r Request, err error) error {
	name := r.Aggregate + " " + r.Verb
	switch {
	case errors.Is(err, ErrDenied):
		return errors.Wrapf(err, "send %s", name)
	case errors.Is(err, nats.ErrNoResponders):
		return errors.Mark(errors.Newf("send %s: no writer listens; start one (catenary up, or writer)", name), ErrNoWriter)
	case errors.Is(err, nats.ErrMaxPayload):
		return errors.Mark(errors.Newf("send %s: the body of %d bytes is over the bus's payload limit, and the limit for a command is %d", name, len(r.Body), MaxBodyBytes), ErrTooLarge)
	case errors.IsAny(err, context.DeadlineExceeded, nats.ErrTimeout):
		return errors.Mark(errors.Newf("send %s: no answer in time; it may have been done: send it again with --id %s to learn which", name, r.ID), ErrTimeout)
	case errors.IsAny(err, nats.ErrConnectionClosed, nats.ErrDisconnected, nats.ErrNoServers, nats.ErrConnectionReconnecting):
		return errors.Mark(errors.Wrapf(err, "send %s", name), es.ErrUnavailable)
	}
	return errors.Wrapf(err, "send %s", name)
}

func header(h nats.Header, name string) string {
	if vs := h[name]; len(vs) > 0 {
		return vs[0]
	}
	return ""
}
