package dispatch

import (
	"context"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/cockroachdb/errors"
	"github.com/google/uuid"
	"github.com/nats-io/nats.go"

	"catenary/es"
)

// statusNoResponders is what the server answers for a subject that nobody serves.
const statusNoResponders = "503"

// Pipeline sends commands over NATS without waiting, for senders of many. The writer sees them in the order they were
// posted. It is safe for many goroutines.
type Pipeline struct {
	conn    *nats.Conn
	timeout time.Duration
	inbox   string
	sub     *nats.Subscription

	mu      sync.Mutex
	waiting map[uint64]posted
	// oldest and next bound the numbers of what waits. All wait equally long, so the oldest is the first to time out.
	oldest, next uint64
	timer        *time.Timer
	closed       bool
}

// posted is a command that waits for its answer.
type posted struct {
	request  Request
	deadline time.Time
	done     func(es.Answer, error)
}

// NewPipeline returns a pipeline whose commands wait for an answer as long as timeout says; zero means DefaultTimeout. It
// MUST be closed.
func NewPipeline(conn *nats.Conn, timeout time.Duration) (*Pipeline, error) {
	if timeout <= 0 {
		timeout = DefaultTimeout
	}
	p := &Pipeline{conn: conn, timeout: timeout, inbox: conn.NewInbox() + ".", waiting: map[uint64]posted{}}
	sub, err := conn.Subscribe(p.inbox+"*", p.answered)
	if err != nil {
		return nil, errors.Mark(errors.Wrap(err, "listen for the answers to commands"), es.ErrUnavailable)
	}
	p.sub = sub
	return p, nil
}

// Post hands a command over and returns. The command MUST have an id, since only that makes it possible to learn what
// became of one that was not answered. Done is called once, by any goroutine, maybe before Post returns, and MUST NOT block:
// with the writer's answer, whatever its status, or with an error marked [ErrNoWriter], [ErrTimeout], [ErrTooLarge] or
// es.ErrUnavailable.
func (p *Pipeline) Post(r Request, done func(es.Answer, error)) {
	if err := p.publish(r, done); err != nil {
		done(es.Answer{}, sendError(r, err))
	}
}

// Send implements [Bus]: it posts a command and waits for its answer.
func (p *Pipeline) Send(ctx context.Context, r Request) (es.Answer, error) {
	if r.ID == "" {
		id, err := uuid.NewV7()
		if err != nil {
			return es.Answer{}, errors.Wrap(err, "make a command id")
		}
		r.ID = id.String()
	}
	type outcome struct {
		answer es.Answer
		err    error
	}
	outcomes := make(chan outcome, 1)
	p.Post(r, func(a es.Answer, err error) { outcomes <- outcome{a, err} })
	select {
	case o := <-outcomes:
		return o.answer, o.err
	case <-ctx.Done():
		return es.Answer{}, sendError(r, ctx.Err())
	}
}

// publish sends under the lock, so that the bus has the commands in the order of their numbers.
func (p *Pipeline) publish(r Request, done func(es.Answer, error)) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nats.ErrConnectionClosed
	}
	m := message(CommandPrefix, r)
	m.Reply = p.inbox + strconv.FormatUint(p.next, 10)
	if err := p.conn.PublishMsg(m); err != nil {
		return err
	}
	p.waiting[p.next] = posted{request: r, deadline: time.Now().Add(p.timeout), done: done}
	p.next++
	if p.timer == nil {
		p.timer = time.AfterFunc(p.timeout, p.expire)
	}
	return nil
}

// answered takes an answer in. One that comes after its command has timed out is dropped.
func (p *Pipeline) answered(m *nats.Msg) {
	number, err := strconv.ParseUint(strings.TrimPrefix(m.Subject, p.inbox), 10, 64)
	if err != nil {
		return
	}
	p.mu.Lock()
	c, ok := p.waiting[number]
	delete(p.waiting, number)
	p.mu.Unlock()
	switch {
	case !ok:
	case len(m.Data) == 0 && header(m.Header, "Status") == statusNoResponders:
		c.done(es.Answer{}, sendError(c.request, nats.ErrNoResponders))
	default:
		c.done(readAnswer(c.request, m))
	}
}

// expire gives up what has waited long enough.
func (p *Pipeline) expire() {
	var over []posted
	now := time.Now()
	p.mu.Lock()
	p.timer = nil
	for ; p.oldest < p.next && p.timer == nil && !p.closed; p.oldest++ {
		c, ok := p.waiting[p.oldest]
		if !ok {
			continue
		}
		if wait := c.deadline.Sub(now); wait > 0 {
			p.timer = time.AfterFunc(wait, p.expire)
			break
		}
		delete(p.waiting, p.oldest)
		over = append(over, c)
	}
	p.mu.Unlock()
	for _, c := range over {
		c.done(es.Answer{}, sendError(c.request, nats.ErrTimeout))
	}
}

// Close stops listening. What still waits is given up with an error marked [ErrTimeout]: it may have been done.
func (p *Pipeline) Close() error {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return nil
	}
	p.closed = true
	over := p.waiting
	p.waiting = nil
	if p.timer != nil {
		p.timer.Stop()
	}
	p.mu.Unlock()
	err := p.sub.Unsubscribe()
	for _, c := range over {
		c.done(es.Answer{}, sendError(c.request, nats.ErrTimeout))
	}
	if errors.IsAny(err, nats.ErrConnectionClosed, nats.ErrBadSubscription) {
		err = nil
	}
	return errors.Wrap(err, "stop listening for the answers to commands")
}
