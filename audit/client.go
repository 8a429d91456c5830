package audit

import (
	"context"
	"encoding/json"
	"iter"
	"strconv"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/cockroachdb/errors"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"catenary/es/project"
)

// patience is how long a client waits for the next part. The service says every second that it is still at it.
const patience = 10 * time.Second

// Guard gives a context that ends with a cause of its own as soon as the bus refuses what goes to one of the subjects. Without
// one a refused question only times out.
type Guard func(ctx context.Context, subjects ...string) (context.Context, context.CancelFunc)

// Client asks the query service. It may be used by many goroutines at once.
//
// All methods give errors marked [ErrNoService], [ErrTimeout], [ErrIncomplete], [ErrInvalid], [ErrBusy] or [ErrFailed], those
// of [Answers], what the guard gives, and the context's error.
type Client struct {
	nc    *nats.Conn
	guard Guard
}

// NewClient returns a client that asks over the connection. Guard may be nil.
func NewClient(nc *nats.Conn, guard Guard) *Client {
	if guard == nil {
		guard = func(ctx context.Context, _ ...string) (context.Context, context.CancelFunc) {
			return context.WithCancel(ctx)
		}
	}
	return &Client{nc: nc, guard: guard}
}

// Position asks which bucket revisions an event has led to.
func (c *Client) Position(ctx context.Context, q PositionQuestion) (Positions, error) {
	var p Positions
	err := c.ask(ctx, QuestionPosition, q, func(body []byte) error { return json.Unmarshal(body, &p) })
	return p, err
}

// Projections asks what the projector and its views are doing.
func (c *Client) Projections(ctx context.Context) (project.Status, error) {
	var status project.Status
	err := c.ask(ctx, QuestionProjections, ProjectionsQuestion{}, func(body []byte) error {
		var part project.Status
		if err := json.Unmarshal(body, &part); err != nil {
			return err
		}
		status.Tail, status.Reason, status.Unknown = part.Tail, part.Reason, part.Unknown
		status.Views = append(status.Views, part.Views...)
		return nil
	})
	return status, err
}

// Tail asks where the event stream ends.
func (c *Client) Tail(ctx context.Context) (Tail, error) {
	var t Tail
	err := c.ask(ctx, QuestionTail, TailQuestion{}, func(body []byte) error { return json.Unmarshal(body, &t) })
	return t, err
}

// Log asks for one page of the log.
func (c *Client) Log(ctx context.Context, q LogQuestion) (LogPage, error) {
	page := LogPage{Items: []Item{}}
	err := c.ask(ctx, QuestionLog, q, func(body []byte) error {
		var part LogPage
		if err := json.Unmarshal(body, &part); err != nil {
			return err
		}
		part.Items = append(page.Items, part.Items...)
		page = part
		return nil
	})
	return page, err
}

// Events gives all that is asked for, page by page, up to the question's limit; without one, up to the end. It ends after
// the first error.
func (c *Client) Events(ctx context.Context, q LogQuestion) iter.Seq2[Item, error] {
	return func(yield func(Item, error) bool) {
		left := q.Limit
		for {
			page, err := c.Log(ctx, q)
			if err != nil {
				yield(Item{}, err)
				return
			}
			for _, item := range page.Items {
				if !yield(item, nil) {
					return
				}
			}
			if q.Limit > 0 {
				if left -= len(page.Items); left <= 0 {
					return
				}
				q.Limit = left
			}
			if !page.More {
				return
			}
			switch {
			case q.Refused != "":
				q.Before, q.Cursor = 0, page.Cursor
			case q.forward():
				q.Oldest, q.After = true, page.Next
			default:
				q.Before, q.Cursor = page.Next, ""
			}
		}
	}
}

// Pauses of a follower between questions that had no answer.
const (
	shortestPause = 100 * time.Millisecond
	longestPause  = 5 * time.Second
)

// Follow gives what comes after a place as it comes, each once and none left out, until the context ends: the events after a sequence,
// or, where the question asks for refused commands, both after a cursor. Events come in their order and refused commands in theirs;
// between the two, what is there at the same time comes in the order of the times it was recorded, and what comes late comes late.
//
// While nobody answers, or the audit store is being built, it asks again: it outlives a restart of the service and of the bus. Waits hears
// why, each time; it may be nil. Follow ends after the first other error.
func (c *Client) Follow(ctx context.Context, q LogQuestion, waits func(error)) iter.Seq2[Item, error] {
	if waits == nil {
		waits = func(error) {}
	}
	return func(yield func(Item, error) bool) {
		q.Oldest, q.Limit, q.Wait = true, 0, Duration(patience/2)
		pace := backoff.NewExponentialBackOff()
		pace.InitialInterval, pace.MaxInterval = shortestPause, longestPause
		for {
			page, err := backoff.Retry(ctx, func() (LogPage, error) {
				page, err := c.Log(ctx, q)
				if err != nil && !errors.IsAny(err, ErrNoService, ErrTimeout, ErrIncomplete, ErrBusy, ErrStoreBehind) {
					err = backoff.Permanent(err)
				}
				return page, err
			}, backoff.WithBackOff(pace), backoff.WithMaxElapsedTime(0), backoff.WithNotify(func(err error, _ time.Duration) { waits(err) }))
			if err != nil {
				yield(Item{}, err)
				return
			}
			for _, item := range page.Items {
				if !yield(item, nil) {
					return
				}
			}
			if q.Refused != "" {
				q.Cursor = page.Cursor
			} else {
				q.After = page.Next
			}
		}
	}
}

// Verify asks for a check of the whole record. Progress is told how many events were folded so far; it may be nil.
func (c *Client) Verify(ctx context.Context, progress func(events uint64)) (project.Report, error) {
	var report project.Report
	found := false
	err := c.ask(ctx, QuestionVerify, VerifyQuestion{}, func(body []byte) error {
		var part verifyPart
		if err := json.Unmarshal(body, &part); err != nil {
			return err
		}
		if part.Report != nil {
			report, found = *part.Report, true
		} else if progress != nil {
			progress(part.Events)
		}
		return nil
	})
	if err == nil && !found {
		err = errors.Mark(errors.New("query verify: the answer has no report"), ErrIncomplete)
	}
	return report, err
}

// ask sends a question and hands over the body of each part that has one.
func (c *Client) ask(ctx context.Context, name string, question any, take func([]byte) error) error {
	body, err := encode(question)
	if err != nil {
		return errors.Wrapf(err, "encode the query %s", name)
	}
	subject := subjectOf(name)
	inbox := c.nc.NewInbox()
	ctx, cancel := c.guard(ctx, subject, inbox)
	defer cancel()
	sub, err := c.nc.SubscribeSync(inbox)
	if err != nil {
		return errors.Wrapf(err, "query %s: listen for the answer", name)
	}
	err = c.nc.PublishRequest(subject, inbox, body)
	if err == nil {
		err = receive(ctx, sub, take)
	}
	// The connection may be gone by now, and with it the subscription.
	if e := sub.Unsubscribe(); err == nil && e != nil && !c.nc.IsClosed() {
		err = e
	}
	return errors.Wrapf(err, "query %s", name)
}

func receive(ctx context.Context, sub *nats.Subscription, take func([]byte) error) error {
	for part := 1; ; part++ {
		m, err := next(ctx, sub)
		if err != nil {
			return err
		}
		if code := m.Header.Get(micro.ErrorCodeHeader); code != "" {
			return errorOf(code, m.Header.Get(micro.ErrorHeader), m.Header.Values(headerHint))
		}
		if found := m.Header.Get(headerPart); found != strconv.Itoa(part) {
			return errors.Mark(errors.Newf("part %d came as part %q", part, found), ErrIncomplete)
		}
		if len(m.Data) > 0 {
			if err := take(m.Data); err != nil {
				return errors.Mark(errors.Wrapf(err, "part %d can't be read", part), ErrIncomplete)
			}
		}
		if m.Header.Get(headerStream) == streamEnd {
			return nil
		}
	}
}

// next waits for the next part, within patience.
func next(ctx context.Context, sub *nats.Subscription) (*nats.Msg, error) {
	waiting, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	m, err := sub.NextMsgWithContext(waiting)
	switch {
	case err == nil && len(m.Data) == 0 && m.Header.Get("Status") == "503", errors.Is(err, nats.ErrNoResponders):
		return nil, errors.Mark(errors.New("nobody answers: is a projector running?"), ErrNoService)
	case err == nil:
		return m, nil
	case errors.Is(err, nats.ErrSlowConsumer):
		return nil, errors.Mark(errors.Wrap(err, "the answer came faster than it was read"), ErrIncomplete)
	case ctx.Err() != nil && !errors.Is(context.Cause(ctx), context.DeadlineExceeded):
		return nil, context.Cause(ctx)
	case waiting.Err() != nil:
		return nil, errors.Mark(late(ctx), ErrTimeout)
	default:
		return nil, err
	}
}

// late says that an answer, or its next part, did not come in time.
func late(ctx context.Context) error {
	if ctx.Err() != nil {
		return errors.New("no answer came in the time that was given for it")
	}
	return errors.WithHint(errors.Newf("the service is there, but said nothing for %s", patience),
		"its process is overloaded, stopped or cut off: look at its log; what was asked may still be done")
}
