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

// Why a question has no answer.
var (
	// ErrNoService means that nobody answers: no projector is running.
	ErrNoService = errors.New("no projector gives proofs")
	// ErrBusy means that too many questions are being answered. Ask again later.
	ErrBusy = errors.New("the service for proofs is busy")
	// ErrFailed means that the service could not answer; the message is the service's.
	ErrFailed = errors.New("no proof could be given")
)

// RequestFunc sends a message and waits for its answer.
type RequestFunc func(ctx context.Context, m *nats.Msg) (*nats.Msg, error)

// Client asks for checkpoints and proofs. It trusts nothing of what it is told: its callers check. All methods give errors marked
// [ErrNoService], [ErrBusy], [ErrFailed], [ErrShortened], [ErrForked] or [es.ErrNotFound], and those of the request.
type Client struct{ request RequestFunc }

// NewClient returns a client that asks through a function.
func NewClient(request RequestFunc) *Client { return &Client{request: request} }

// Checkpoint asks for a checkpoint over all events there are.
func (c *Client) Checkpoint(ctx context.Context) (a Latest, err error) {
	return a, c.ask(ctx, QuestionCheckpoint, struct{}{}, &a)
}

// Checkpoints asks for a page of the checkpoints that are kept.
func (c *Client) Checkpoints(ctx context.Context, q CheckpointsQuestion) (a CheckpointsPage, err error) {
	return a, c.ask(ctx, QuestionCheckpoints, q, &a)
}

// Prove asks for the proof of an event.
func (c *Client) Prove(ctx context.Context, event uint64) (a Inclusion, err error) {
	return a, c.ask(ctx, QuestionProof, ProofQuestion{Event: event}, &a)
}

// Growth asks for the proof that a checkpoint of so many events still holds.
func (c *Client) Growth(ctx context.Context, size uint64) (a Growth, err error) {
	return a, c.ask(ctx, QuestionGrowth, GrowthQuestion{Size: size}, &a)
}

// Roots asks for roots computed anew.
func (c *Client) Roots(ctx context.Context, q RootsQuestion) (a RootsAnswer, err error) {
	return a, c.ask(ctx, QuestionRoots, q, &a)
}

func (c *Client) ask(ctx context.Context, name string, question, into any) error {
	body, err := json.Marshal(question)
	if err != nil {
		return errors.Wrapf(err, "encode the query %s", name)
	}
	m := nats.NewMsg(topology.QuerySubject(name))
	m.Data = body
	reply, err := c.request(ctx, m)
	if errors.Is(err, nats.ErrNoResponders) {
		return errors.Mark(errors.Wrapf(err, "query %s: nobody answers: is a projector running?", name), ErrNoService)
	}
	if err != nil {
		return errors.Wrapf(err, "query %s", name)
	}
	if code := reply.Header.Get(micro.ErrorCodeHeader); code != "" {
		return errorOf(code, reply.Header.Get(micro.ErrorHeader))
	}
	return errors.Mark(errors.Wrapf(json.Unmarshal(reply.Data, into), "the answer to the query %s", name), ErrFailed)
}

// errorOf gives the error that travelled under a code.
func errorOf(code, description string) error {
	kind := ErrFailed
	switch code {
	case codeNotFound:
		kind = es.ErrNotFound
	case codeShortened:
		kind = ErrShortened
	case codeForked:
		kind = ErrForked
	case codeBusy:
		kind = ErrBusy
	case codeNotReached:
		kind = ErrNoService
	}
	return errors.Mark(errors.Newf("%s", description), kind)
}
