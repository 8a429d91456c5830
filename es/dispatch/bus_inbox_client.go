package dispatch

import (
	"context"
	"encoding/json"
	"time"

	"github.com/cockroachdb/errors"
	"github.com/google/uuid"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"catenary/es"
)

// InboxClient sends commands through the inbox, and asks what became of them. It is safe for many goroutines.
type InboxClient struct {
	conn    *nats.Conn
	request RequestFunc
}

var _ Bus = (*InboxClient)(nil)

// NewInboxClient returns a client of the inbox over a connection. Request sends a message and waits for the answer; nil means
// the connection's own way.
func NewInboxClient(conn *nats.Conn, request RequestFunc) *InboxClient {
	if request == nil {
		request = conn.RequestMsgWithContext
	}
	return &InboxClient{conn: conn, request: request}
}

// Send implements [Bus]. The answer says that the command is stored, and where; its outcome comes later, as a receipt. A
// command that is malformed is refused at once.
func (c *InboxClient) Send(ctx context.Context, r Request) (es.Answer, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	if r.ID == "" {
		id, err := uuid.NewV7()
		if err != nil {
			return es.Answer{}, errors.Wrap(err, "make a command id")
		}
		r.ID = id.String()
	}
	reply, err := c.request(ctx, message(InboxPrefix, r))
	if err != nil {
		return es.Answer{}, sendError(r, err)
	}
	return readAnswer(r, reply)
}

// Receipt asks what became of a command. It gives errors marked es.ErrNotFound while there is no receipt, *es.Refusal, and
// those of [Bus].
func (c *InboxClient) Receipt(ctx context.Context, q ReceiptQuestion) (Receipt, error) {
	var r Receipt
	return r, c.ask(ctx, SubjectReceipt, q, &r)
}

// receiptPoll bounds how long an outcome that was told while the connection was away goes unnoticed.
const receiptPoll = time.Second

// Await waits until a command has a receipt that is final or says that it is parked, and gives it. It gives the errors of
// [InboxClient.Receipt] but for es.ErrNotFound, and the context's error.
func (c *InboxClient) Await(ctx context.Context, q ReceiptQuestion) (Receipt, error) {
	told := make(chan *nats.Msg, 1)
	sub, err := c.conn.Subscribe(OutcomePrefix+"."+q.ID, func(m *nats.Msg) {
		select {
		case told <- m:
		default:
		}
	})
	if err != nil {
		return Receipt{}, errors.Mark(errors.Wrap(err, "listen for the outcome"), es.ErrUnavailable)
	}
	r, err := c.await(ctx, q, told)
	if e := sub.Unsubscribe(); err == nil && e != nil && !c.conn.IsClosed() {
		err = errors.Wrap(e, "listen for the outcome no more")
	}
	return r, err
}

func (c *InboxClient) await(ctx context.Context, q ReceiptQuestion, told <-chan *nats.Msg) (Receipt, error) {
	poll := time.NewTicker(receiptPoll)
	defer poll.Stop()
	for {
		// What is told is only a sign to look: others can speak on a subject too.
		r, err := c.Receipt(ctx, q)
		switch {
		case err == nil && r.Status != es.StatusStored:
			return r, nil
		case err != nil && !errors.IsAny(err, es.ErrNotFound, ErrNoWriter, es.ErrUnavailable):
			return r, err
		}
		select {
		case <-ctx.Done():
			if errors.Is(context.Cause(ctx), context.DeadlineExceeded) {
				return r, errors.Mark(errors.Newf("the command %s has no outcome yet", q.ID), ErrTimeout)
			}
			return r, context.Cause(ctx)
		case <-told:
		case <-poll.C:
		}
	}
}

// ParkedPage asks for parked commands, without their bodies. It gives *es.Refusal and the errors of [Bus].
func (c *InboxClient) ParkedPage(ctx context.Context, cursor string, limit int) (ParkedPage, error) {
	var p ParkedPage
	return p, c.ask(ctx, SubjectParked, ParkedQuestion{Cursor: cursor, Limit: limit}, &p)
}

// Parked asks for one parked command. It gives errors marked es.ErrNotFound, *es.Refusal and those of [Bus].
func (c *InboxClient) Parked(ctx context.Context, id string) (Parked, error) {
	var p Parked
	return p, c.ask(ctx, SubjectParked, ParkedQuestion{ID: id}, &p)
}

// Retry puts a parked command into the inbox again. It gives errors marked es.ErrNotFound, *es.Refusal for one that can't be
// read now either, and those of [Bus].
func (c *InboxClient) Retry(ctx context.Context, id string) (es.Answer, error) {
	var a es.Answer
	return a, c.ask(ctx, ParkedPrefix+".retry", ParkedOrder{ID: id}, &a)
}

// Discard forgets a parked command for a reason, and gives its receipt. It gives errors marked es.ErrNotFound, *es.Refusal and
// those of [Bus].
func (c *InboxClient) Discard(ctx context.Context, id, reason string) (Receipt, error) {
	var r Receipt
	return r, c.ask(ctx, ParkedPrefix+".discard", ParkedOrder{ID: id, Reason: reason}, &r)
}

func bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, ok := ctx.Deadline(); ok {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, DefaultTimeout)
}

// ask sends a question of the inbox and reads the answer.
func (c *InboxClient) ask(ctx context.Context, subject string, question, into any) error {
	body, err := json.Marshal(question)
	if err != nil {
		return errors.Wrapf(err, "ask %s", subject)
	}
	ctx, cancel := bounded(ctx)
	defer cancel()
	m := nats.NewMsg(subject)
	m.Data = body
	reply, err := c.request(ctx, m)
	switch {
	case errors.Is(err, nats.ErrNoResponders):
		return errors.Mark(errors.Newf("ask %s: nobody keeps an inbox; start a writer (catenary up, or writer)", subject), ErrNoWriter)
	case errors.IsAny(err, context.DeadlineExceeded, nats.ErrTimeout):
		return errors.Mark(errors.Newf("ask %s: no answer in time", subject), ErrTimeout)
	case errors.IsAny(err, nats.ErrConnectionClosed, nats.ErrDisconnected, nats.ErrNoServers, nats.ErrConnectionReconnecting):
		return errors.Mark(errors.Wrapf(err, "ask %s", subject), es.ErrUnavailable)
	case err != nil:
		return errors.Wrapf(err, "ask %s", subject)
	}
	if header(reply.Header, micro.ErrorCodeHeader) == "" {
		return errors.Wrapf(json.Unmarshal(reply.Data, into), "read the answer to %s", subject)
	}
	var refused es.Answer
	if err := json.Unmarshal(reply.Data, &refused); err != nil || refused.Error == nil {
		return errors.Newf("ask %s: %s", subject, header(reply.Header, micro.ErrorHeader))
	}
	if refused.Status == statusNotFound {
		err := errors.Mark(errors.Newf("%s", refused.Error.Message), es.ErrNotFound)
		if refused.Error.Hint != "" {
			err = errors.WithHint(err, refused.Error.Hint)
		}
		return err
	}
	return &es.Refusal{Status: refused.Status, Code: refused.Error.Code, Message: refused.Error.Message, Hint: refused.Error.Hint}
}
