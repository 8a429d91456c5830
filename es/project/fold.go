package project

import (
	"github.com/cockroachdb/errors"

	"catenary/es"
)

// aheadWorkers is how many goroutines verify and decode ahead of who folds the stream: as long as folding takes, one is enough.
const aheadWorkers = 1

// item is one event as all views get it. Nobody changes it.
type item struct {
	head  es.Head // the head of the chain with this event: its sequence and its hash
	event es.Event
	err   error // why the event can't be read, if so
}

func itemOf(v es.Verified) *item { return &item{head: v.Head, event: v.Event, err: v.Err} }

func newItem(registry *es.Registry, m es.Message, head es.Head) *item {
	e, err := registry.Decode(m)
	return &item{head: head, event: e, err: err}
}

// concerns says whether a view that reads these aggregates, nil for all, has to look at the event. Everybody has to look at what
// can't be told to be none of theirs.
func (it *item) concerns(reads map[string]bool) bool {
	return reads == nil || reads[it.event.Ref.Aggregate] || errors.Is(it.err, es.ErrMalformed)
}

// readsOf gives the aggregates a view reads; nil means all.
func readsOf(view View) map[string]bool {
	selective, ok := view.(Selective)
	if !ok {
		return nil
	}
	reads := map[string]bool{}
	for _, aggregate := range selective.Aggregates() {
		reads[aggregate] = true
	}
	return reads
}

// fold gives the values that an event leads to in a view: in a projector, and in every fresh fold that it is compared with. It
// gives why the event can't be folded, which stops the view.
func fold(view View, reads map[string]bool, control *Control, it *item) ([]Value, error) {
	if !it.concerns(reads) {
		return nil, nil
	}
	p, parks := view.(*parking)
	parks = parks && !errors.Is(it.err, es.ErrMalformed) // nobody can say whose event that is
	switch {
	case control.Skips(it.head.Sequence) && parks:
		return p.skip(it.event)
	case control.Skips(it.head.Sequence):
		return nil, nil
	case it.err != nil && parks:
		return p.park(it.event, it.err)
	case it.err != nil:
		return nil, it.err
	}
	return view.Fold(it.event)
}
