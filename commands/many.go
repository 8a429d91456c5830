package commands

import (
	"context"
	"iter"

	"github.com/cockroachdb/errors"

	"catenary/es"
	"catenary/es/dispatch"
)

// DefaultInFlight is how many commands of many wait for their answers at once: enough for the writer to share a sync of the
// disk among them, and a small part of its queue.
const DefaultInFlight = 256

// ErrHeldBack means that a command was not sent, since an earlier one of the same instance has no answer: done after it, it
// might come out of order. Nothing was done.
var ErrHeldBack = errors.New("held back behind a command without an answer")

// Sending is one command of many.
type Sending struct {
	Payload es.Payload
	Options dispatch.Options
}

// Outcome is what came of one command of many. An answer that refuses is no error.
type Outcome struct {
	// Index is the command's place among those that were given, from 0.
	Index int
	Sending
	Answer es.Answer
	Err    error
}

// SendMany sends commands with at most inFlight of them waiting for an answer; zero means DefaultInFlight. The outcomes come in
// the order of the answers. Those of one instance are sent one after another, each when the one before it is answered, so that
// no try of one overtakes another; those of many instances share the writer's appends.
//
// Every command that was taken from the list has one outcome, with the errors of [Client.Send] or [ErrHeldBack]. The list is
// read only as far as the bound allows. When the caller takes no more, or the context ends, no more are taken from the list,
// and SendMany returns when those in flight are over.
func (c *Client) SendMany(ctx context.Context, list iter.Seq[Sending], inFlight int) iter.Seq[Outcome] {
	if inFlight <= 0 {
		inFlight = DefaultInFlight
	}
	return func(yield func(Outcome) bool) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		next, stop := iter.Pull(list)
		defer stop()
		m := &many{client: c, ctx: ctx, outcomes: make(chan Outcome, inFlight), queues: map[es.Ref]*queue{}}
		defer m.drain(cancel)
		for index, more := 0, true; ; {
			for more && m.open < inFlight && ctx.Err() == nil {
				var s Sending
				if s, more = next(); more {
					m.begin(Outcome{Index: index, Sending: s})
					index++
				}
			}
			if m.open == 0 {
				return
			}
			if !yield(m.next()) {
				return
			}
		}
	}
}

// many is a run of SendMany. All but the sending belongs to the goroutine that ranges over the outcomes.
type many struct {
	client   *Client
	ctx      context.Context
	outcomes chan Outcome
	// open counts the commands without an outcome, running those that are being sent.
	open, running int
	queues        map[es.Ref]*queue
}

// queue holds the commands of one instance behind the one that is being sent.
type queue struct {
	behind []Outcome
	// stuck says that one has no answer: nothing of this instance is sent any more.
	stuck bool
}

// begin takes a command in.
func (m *many) begin(o Outcome) {
	m.open++
	ref := o.Payload.Ref()
	q, busy := m.queues[ref]
	switch {
	case !busy:
		m.queues[ref] = &queue{}
		m.send(o)
	case q.stuck:
		m.hold(o)
	default:
		q.behind = append(q.behind, o)
	}
}

func (m *many) send(o Outcome) {
	m.running++
	go func() {
		r, err := identified(o.Payload, o.Options)
		if err == nil {
			o.Options.ID = r.ID
			o.Answer, err = m.client.send(m.ctx, r)
		}
		o.Err = err
		m.outcomes <- o
	}()
}

// hold gives a command the outcome that it is not sent.
func (m *many) hold(o Outcome) {
	o.Err = errors.Wrapf(ErrHeldBack, "%s %s", o.Payload.Ref(), o.Payload.Verb())
	m.running++
	m.outcomes <- o // there is room for as many as are open
}

// next waits for an outcome, and sends what waited for it.
func (m *many) next() Outcome {
	o := <-m.outcomes
	m.open--
	m.running--
	ref := o.Payload.Ref()
	q := m.queues[ref]
	switch {
	case q.stuck:
	case unanswered(o):
		q.stuck = true
		for _, behind := range q.behind {
			m.hold(behind)
		}
		q.behind = nil
	case len(q.behind) > 0:
		var first Outcome
		first, q.behind = q.behind[0], q.behind[1:]
		m.send(first)
	default:
		delete(m.queues, ref)
	}
	return o
}

// unanswered says that it is not known whether a command is done, or will be. One that is malformed is not, and never will be.
func unanswered(o Outcome) bool {
	var malformed *es.Refusal
	return o.Err != nil && !errors.As(o.Err, &malformed) || o.Err == nil && transient(o.Answer, nil)
}

// drain ends what is in flight and waits for it.
func (m *many) drain(cancel context.CancelFunc) {
	if m.running == 0 {
		return
	}
	cancel()
	for ; m.running > 0; m.running-- {
		<-m.outcomes
	}
}
