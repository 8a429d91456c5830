package natsconn

import (
	"context"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/cockroachdb/errors"
	"github.com/nats-io/nats.go"
)

// ErrDenied means that the server does not permit it: to connect, or to publish or subscribe to the subject named in the message.
var ErrDenied = errors.New("bus: denied")

// Request sends a message and waits for one answer. It gives ErrDenied at once when the server forbids it,
// nats.ErrNoResponders when nobody serves the subject, and the context's error.
func Request(ctx context.Context, c *Conn, m *nats.Msg) (*nats.Msg, error) {
	ctx, cancel := c.WithDenial(ctx, m.Subject)
	defer cancel()
	answer, err := c.RequestMsgWithContext(ctx, m)
	if err == nil {
		return answer, nil
	}
	if cause := context.Cause(ctx); errors.Is(cause, ErrDenied) {
		err = cause
	}
	return nil, errors.Wrapf(err, "request %s", m.Subject)
}

// WithDenial gives a context that ends with the cause ErrDenied as soon as the server refuses to publish to one of the
// subjects, or to listen for answers. Without subjects any refusal on the connection counts, which suits calls that speak to
// the bus by subjects of their own, such as reading a bucket. The server does not say whose message it refused: all that
// wait for the same subject are told.
func (c *Conn) WithDenial(ctx context.Context, subjects ...string) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	w := &waiter{cancel: cancel, subjects: subjects, inboxPrefix: c.inboxPrefix()}
	c.denials.add(w)
	return ctx, func() {
		c.denials.remove(w)
		cancel(nil)
	}
}

func (c *Conn) inboxPrefix() string {
	if p := c.Opts.InboxPrefix; p != "" {
		return p + "."
	}
	return nats.InboxPrefix
}

// denials tells those who wait for an answer that there will be none. The server reports a refusal apart from the request it
// refuses, with no more than the subject.
type denials struct {
	mu      sync.Mutex
	waiters map[*waiter]struct{}
}

type waiter struct {
	cancel      context.CancelCauseFunc
	subjects    []string
	inboxPrefix string
}

func newDenials() *denials { return &denials{waiters: map[*waiter]struct{}{}} }

func (d *denials) add(w *waiter) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.waiters[w] = struct{}{}
}

func (d *denials) remove(w *waiter) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.waiters, w)
}

// observe takes an asynchronous error of the connection.
func (d *denials) observe(err error) {
	r, ok := parseRefusal(err)
	if !ok {
		return
	}
	denied := errors.Wrapf(ErrDenied, "the server does not permit this user to %s %s", r.action, r.subject)
	d.mu.Lock()
	defer d.mu.Unlock()
	for w := range d.waiters {
		if w.concerns(r) {
			w.cancel(denied)
		}
	}
}

func (w *waiter) concerns(r refusal) bool {
	if len(w.subjects) == 0 {
		return true
	}
	if r.action == subscribing {
		return strings.HasPrefix(r.subject, w.inboxPrefix)
	}
	return slices.Contains(w.subjects, r.subject)
}

// refusal is what the server says of something it does not permit.
type refusal struct{ action, subject string }

const (
	publishing  = "publish to"
	replying    = "be answered on"
	subscribing = "listen on"
)

// parseRefusal reads the server's words: Permissions Violation for Publish to "x", for Publish with Reply of "x", for
// Subscription to "x" with or without a queue. The subject is in Go's quoting.
func parseRefusal(err error) (refusal, bool) {
	if !errors.Is(err, nats.ErrPermissionViolation) {
		return refusal{}, false
	}
	words := regexp.MustCompile(`(?i)violation for (publish to|publish with reply of|subscription to) ("(?:[^"\\]|\\.)*")`).FindStringSubmatch(err.Error())
	if words == nil {
		return refusal{}, false
	}
	subject, unquoteErr := strconv.Unquote(words[2])
	if unquoteErr != nil {
		return refusal{}, false
	}
	action := map[string]string{"publish to": publishing, "publish with reply of": replying, "subscription to": subscribing}
	return refusal{action: action[strings.ToLower(words[1])], subject: subject}, true
}
