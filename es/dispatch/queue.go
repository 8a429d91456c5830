package dispatch

import (
	"context"
	"fmt"
	"sync"
	"time"

	"catenary/es"
)

// How long a refused sender is told to stay away. The estimate is how long the oldest command before it has waited; below the
// first bound the answers would cost more than the commands, and above the second nobody waits any more.
const (
	minRetryAfter = 100 * time.Millisecond
	maxRetryAfter = 5 * time.Second
)

// submissionBytes is what a waiting command holds besides what was sent.
const submissionBytes = 512

// Submission is a command on its way into a writer's queue.
type Submission struct {
	// Command is what is known of the command so far: at least what tells its sender which one an answer is about.
	Command es.Command
	// Read completes the command when its turn comes, so that reading the bodies of one sender does not delay another's. It
	// gives an *es.Refusal for one that is malformed. Nil means that Command is complete.
	Read func() (es.Command, error)
	// Sender is whose share of the queue the command takes. The commands of one sender are decided in the order they came.
	Sender string
	// Bytes is what the command holds of memory while it waits.
	Bytes int
	// Answer is called exactly once, from any goroutine, and MUST NOT block.
	Answer func(es.Answer)
}

// queue holds what waits for the writer, bounded in number and bytes. Senders take turns, and each may hold as much as is left
// free at most: one alone gets half of the queue, two a third each, and so on, so that there is always room for one more
// sender, however fast the others are. It is safe for many goroutines.
type queue struct {
	limit, limitBytes int

	mu    sync.Mutex
	lanes map[string]*lane
	// turns are the lanes in the order of their turns. A lane is in it once as long as it is not empty, and else nowhere.
	turns        []*lane
	count, bytes int
	closed       *es.Refusal   // why nothing is taken any more
	more         chan struct{} // has a token when something may wait
}

// lane is what waits of one sender, in order.
type lane struct {
	sender string
	items  []queued
	bytes  int
}

type queued struct {
	Submission
	since time.Time
}

func newQueue(limit, limitBytes int) *queue {
	return &queue{limit: limit, limitBytes: limitBytes, lanes: map[string]*lane{}, more: make(chan struct{}, 1)}
}

// push takes a submission in, or gives the refusal that its sender is to get.
func (q *queue) push(s Submission, now time.Time) *es.Refusal {
	s.Bytes += submissionBytes
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed != nil {
		return q.closed
	}
	l := q.lanes[s.Sender]
	held, heldBytes := 0, 0
	if l != nil {
		held, heldBytes = len(l.items), l.bytes
	}
	if held >= q.limit-q.count || heldBytes+s.Bytes > q.limitBytes-q.bytes {
		return q.full(l, held, now)
	}
	if l == nil {
		l = &lane{sender: s.Sender}
		q.lanes[s.Sender] = l
		q.turns = append(q.turns, l)
	}
	l.items = append(l.items, queued{Submission: s, since: now})
	l.bytes += s.Bytes
	q.count++
	q.bytes += s.Bytes
	select {
	case q.more <- struct{}{}:
	default:
	}
	return nil
}

func (q *queue) full(l *lane, held int, now time.Time) *es.Refusal {
	if l == nil && len(q.turns) > 0 {
		l = q.turns[0]
	}
	after := minRetryAfter
	if l != nil {
		after = min(max(after, now.Sub(l.items[0].since)), maxRetryAfter)
	}
	return busy("queue-full", fmt.Sprintf("%d commands wait, %d of them from this sender, in %d bytes; the limits are %d commands and %d bytes, and no sender gets more than what is left free",
		q.count, held, q.bytes, q.limit, q.limitBytes), after)
}

// pop gives the next one, whose sender then gets its next turn after all others.
func (q *queue) pop() (queued, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.turns) == 0 {
		return queued{}, false
	}
	l := q.turns[0]
	q.turns[0] = nil
	q.turns = q.turns[1:]
	item := q.shift(l)
	if len(l.items) > 0 {
		q.turns = append(q.turns, l)
	}
	return item, true
}

// shift takes the oldest item off a lane, and forgets a lane that is empty then.
func (q *queue) shift(l *lane) queued {
	item := l.items[0]
	l.items[0] = queued{} // nothing of it is held on to
	l.items = l.items[1:]
	l.bytes -= item.Bytes
	q.count--
	q.bytes -= item.Bytes
	if len(l.items) == 0 {
		delete(q.lanes, l.sender)
	}
	return item
}

// waiting gives how many wait.
func (q *queue) waiting() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.count
}

// next waits for the next one. It gives false when the context has ended.
func (q *queue) next(ctx context.Context) (queued, bool) {
	for ctx.Err() == nil {
		if item, ok := q.pop(); ok {
			return item, true
		}
		select {
		case <-q.more:
		case <-ctx.Done():
		}
	}
	return queued{}, false
}

// overdue takes out what has waited since before a moment.
func (q *queue) overdue(before time.Time) []queued {
	q.mu.Lock()
	defer q.mu.Unlock()
	var out []queued
	turns := q.turns[:0:0]
	for _, l := range q.turns {
		for len(l.items) > 0 && l.items[0].since.Before(before) {
			out = append(out, q.shift(l))
		}
		if len(l.items) > 0 {
			turns = append(turns, l)
		}
	}
	q.turns = turns
	return out
}

// close refuses all that comes from now on, and gives what waits.
func (q *queue) close(why *es.Refusal) []queued {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = why
	var out []queued
	for _, l := range q.turns {
		out = append(out, l.items...)
	}
	q.lanes, q.turns, q.count, q.bytes = map[string]*lane{}, nil, 0, 0
	return out
}

// busy is the refusal of a command that was not done only because there is too much to do.
func busy(code, message string, after time.Duration) *es.Refusal {
	return &es.Refusal{Status: es.StatusBusy, Code: code, Message: message, RetryAfter: after,
		Hint: fmt.Sprintf("send it again with the same id in %s", after.Round(minRetryAfter))}
}
