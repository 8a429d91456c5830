package audit

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/cockroachdb/errors"

	"catenary/es"
)

const (
	// MaxPageItems bounds the events of one answer.
	MaxPageItems = 1000
	// maxPageBytes bounds the bodies in one answer, well below what a client keeps of an answer it has not read yet.
	maxPageBytes = 8 << 20
	// maxPageScan bounds the events looked at for one answer: about a second of reading.
	maxPageScan = 200_000
	// firstWindow and lastWindow bound how many events are read at once when reading backwards. The stream can only be read
	// forwards, so it is read in windows from its end; they grow, since each costs a consumer.
	firstWindow = 256
	lastWindow  = 64 << 10
	// clockSlack is how far a writer's clock may have been set back. Events are in the order they were stored in, which
	// is that of recorded times but for this.
	clockSlack = time.Hour
)

// log finds events in a store.
type log struct {
	store    es.Store
	registry *es.Registry
}

// page gives the events asked for. It gives ErrInvalid and the store's errors.
func (l log) page(ctx context.Context, q LogQuestion) (LogPage, error) {
	if err := q.Validate(); err != nil {
		return LogPage{}, err
	}
	if q.Limit == 0 || q.Limit > MaxPageItems {
		q.Limit = MaxPageItems
	}
	if q.Wait > 0 {
		if err := l.await(ctx, q.After, q.Wait.wait()); err != nil {
			return LogPage{}, err
		}
	}
	switch {
	case q.Aggregate != "" && len(q.Keys) > 0:
		return l.ofInstances(ctx, q)
	case q.forward():
		return l.oldestFirst(ctx, q)
	default:
		return l.newestFirst(ctx, q)
	}
}

// await returns when there is an event after the given one, or the time is over.
func (l log) await(ctx context.Context, after uint64, wait time.Duration) error {
	waiting, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	for _, err := range l.store.Follow(waiting, after) {
		if err != nil && waiting.Err() == nil {
			return errors.Wrapf(err, "wait for an event after %d", after)
		}
		break
	}
	return ctx.Err()
}

// oldestFirst reads forwards from the cursor.
func (l log) oldestFirst(ctx context.Context, q LogQuestion) (LogPage, error) {
	c := newCollector(l.registry, q)
	next, scanned := q.After, 0
	for m, err := range l.store.Read(ctx, q.After) {
		if err != nil {
			return LogPage{}, errors.Wrapf(err, "read events after %d", next)
		}
		if c.full() || scanned == maxPageScan {
			return LogPage{Items: c.items, Next: next, More: true}, nil
		}
		c.take(m)
		next = m.Sequence
		scanned++
	}
	return LogPage{Items: c.items, Next: next}, nil
}

// newestFirst reads windows from the end, each forwards, and turns them round.
func (l log) newestFirst(ctx context.Context, q LogQuestion) (LogPage, error) {
	upper, err := l.store.Tail(ctx)
	if err != nil {
		return LogPage{}, errors.Wrap(err, "read the stream's tail")
	}
	if q.Before > 0 {
		upper = min(upper, q.Before-1)
	}
	c := newCollector(l.registry, q)
	size := uint64(firstWindow)
	for scanned := uint64(0); upper > 0 && scanned < maxPageScan; {
		lower := upper - min(size, upper)
		scanned += upper - lower
		window, oldest, err := l.window(ctx, q, lower, upper)
		if err != nil {
			return LogPage{}, err
		}
		for _, m := range slices.Backward(window) {
			if c.full() {
				break
			}
			c.take(m)
			upper = m.Sequence - 1
		}
		if c.full() {
			return LogPage{Items: c.items, Next: upper + 1, More: upper > 0}, nil
		}
		if !q.Since.IsZero() && !oldest.IsZero() && oldest.Before(q.Since.Add(-clockSlack)) {
			return LogPage{Items: c.items, Next: lower + 1}, nil
		}
		upper = lower
		size = min(2*size, lastWindow)
	}
	return LogPage{Items: c.items, Next: upper + 1, More: upper > 0}, nil
}

// window reads the events after lower up to upper, and keeps the last of those asked for, as many as a page holds.
func (l log) window(ctx context.Context, q LogQuestion, lower, upper uint64) (kept []es.Message, oldest time.Time, err error) {
	last := pageful{limit: q.Limit}
	for m, err := range l.store.Read(ctx, lower) {
		if err != nil {
			return nil, time.Time{}, errors.Wrapf(err, "read events after %d", lower)
		}
		if m.Sequence > upper {
			break
		}
		e, err := es.ReadEvent(m)
		if err == nil && oldest.IsZero() {
			oldest = e.Recorded
		}
		if wanted(q, e, err) {
			last.push(m)
		}
		if m.Sequence == upper {
			break
		}
	}
	return last.kept, oldest, nil
}

// pageful keeps of the messages pushed to it the last ones, as many as fill a page.
type pageful struct {
	limit, bytes int
	kept         []es.Message
	// dropped is set when there were others before those.
	dropped bool
}

func (p *pageful) full() bool { return len(p.kept) >= p.limit || p.bytes >= maxPageBytes }

func (p *pageful) push(m es.Message) {
	p.kept = append(p.kept, m)
	p.bytes += m.Size()
	for len(p.kept) > p.limit || len(p.kept) > 1 && p.bytes-p.kept[0].Size() >= maxPageBytes {
		p.bytes -= p.kept[0].Size()
		p.kept[0], p.dropped = es.Message{}, true
		p.kept = p.kept[1:]
	}
}

// ofInstances reads the events of few instances by their subjects, which for one instance is cheaper than reading all. Of
// each it holds no more than a page, however many there are.
func (l log) ofInstances(ctx context.Context, q LogQuestion) (LogPage, error) {
	// What is stored from here on is behind the answer's end, and the next question's.
	tail, err := l.store.Tail(ctx)
	if err != nil {
		return LogPage{}, errors.Wrap(err, "read the stream's tail")
	}
	var found []es.Message
	more := false
	for _, key := range slices.Compact(slices.Sorted(slices.Values(q.Keys))) {
		if _, err := es.SplitKey(key); err != nil {
			continue // nothing has such a key, and as a subject it might stand for many
		}
		ref := es.Ref{Aggregate: q.Aggregate, Key: key}
		page := pageful{limit: q.Limit}
		for m, err := range l.store.ReadAggregate(ctx, ref) {
			if err != nil {
				return LogPage{}, errors.Wrapf(err, "read the events of %s", ref)
			}
			if m.Sequence > tail || q.Before > 0 && m.Sequence >= q.Before {
				break
			}
			if e, err := es.ReadEvent(m); m.Sequence <= q.After || !wanted(q, e, err) {
				continue
			}
			if q.forward() && page.full() {
				more = true
				break
			}
			page.push(m)
		}
		more = more || page.dropped
		found = append(found, page.kept...)
	}
	slices.SortFunc(found, func(a, b es.Message) int {
		if q.forward() {
			return cmp.Compare(a.Sequence, b.Sequence)
		}
		return cmp.Compare(b.Sequence, a.Sequence)
	})
	c := newCollector(l.registry, q)
	next := q.Before
	if q.forward() {
		next = q.After
	}
	for _, m := range found {
		if c.full() {
			return LogPage{Items: c.items, Next: next, More: true}, nil
		}
		c.take(m)
		next = m.Sequence
	}
	if q.forward() && !more {
		next = max(q.After, tail)
	}
	return LogPage{Items: c.items, Next: next, More: more}, nil
}

// collector gathers what is asked for until a page is full.
type collector struct {
	registry *es.Registry
	q        LogQuestion
	items    []Item
	bytes    int
}

func newCollector(r *es.Registry, q LogQuestion) *collector {
	return &collector{registry: r, q: q, items: []Item{}}
}

func (c *collector) full() bool { return len(c.items) >= c.q.Limit || c.bytes >= maxPageBytes }

func (c *collector) take(m es.Message) {
	e, err := es.ReadEvent(m)
	if !wanted(c.q, e, err) {
		return
	}
	c.items = append(c.items, NewItem(c.registry, m))
	c.bytes += m.Size()
}

// wanted decides on a message; readErr says that it is no event, which no filter can tell anything about.
func wanted(q LogQuestion, e es.Event, readErr error) bool {
	if readErr != nil {
		return q.unfiltered()
	}
	return q.matches(e)
}
