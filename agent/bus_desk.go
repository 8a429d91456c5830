package agent

import (
	"context"
	"encoding/json"
	"time"

	"github.com/cockroachdb/errors"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"catenary/es"
	"catenary/internal/topology"
)

// ErrNoDesk means that nobody answers check-ins now.
var ErrNoDesk = errors.New("nobody answers check-ins")

// RequestFunc sends one message and waits for one answer.
type RequestFunc func(ctx context.Context, m *nats.Msg) (*nats.Msg, error)

// checkInPatience bounds one question: longer than a desk waits for what an agent has heard of.
const checkInPatience = 5 * time.Second

// BusDesk is the desk, over the bus. It is safe for many goroutines.
type BusDesk struct{ request RequestFunc }

var _ Desk = (*BusDesk)(nil)

// NewBusDesk returns a desk that is asked through a function.
func NewBusDesk(request RequestFunc) *BusDesk { return &BusDesk{request: request} }

// CheckIn implements [Desk]. It gives errors marked [ErrNoDesk], and others that say why the desk does not answer.
func (d *BusDesk) CheckIn(ctx context.Context, c CheckIn) (Answer, error) {
	whole, err := d.ask(ctx, c)
	if err != nil {
		return Answer{}, err
	}
	for whole.Next != "" {
		c.Cursor = whole.Next
		part, err := d.ask(ctx, c)
		if err != nil {
			return Answer{}, err
		}
		// What was told between two parts is asked for the next time: the first one says how far it is whole.
		whole.Told, whole.Next = append(whole.Told, part.Told...), part.Next
	}
	return whole, nil
}

func (d *BusDesk) ask(ctx context.Context, c CheckIn) (Answer, error) {
	subject := topology.AgentSubject(es.EscapeToken(c.Node))
	body, err := json.Marshal(c)
	if err != nil {
		return Answer{}, errors.Wrap(err, "check in")
	}
	ctx, cancel := context.WithTimeout(ctx, checkInPatience)
	defer cancel()
	m := nats.NewMsg(subject)
	m.Data = body
	reply, err := d.request(ctx, m)
	switch {
	case errors.Is(err, nats.ErrNoResponders):
		return Answer{}, errors.Mark(errors.Newf("check in on %s: nobody listens; a projector answers", subject), ErrNoDesk)
	case err != nil:
		return Answer{}, errors.Wrapf(err, "check in on %s", subject)
	}
	if code := reply.Header.Get(micro.ErrorCodeHeader); code != "" {
		return Answer{}, errors.Mark(errors.Newf("check in on %s: %s (%s)", subject, reply.Header.Get(micro.ErrorHeader), code), ErrNoDesk)
	}
	var a Answer
	if err := json.Unmarshal(reply.Data, &a); err != nil {
		return Answer{}, errors.Wrapf(err, "the answer on %s can't be read", subject)
	}
	return a, nil
}
