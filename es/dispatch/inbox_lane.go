package dispatch

import (
	"cmp"
	"slices"
	"time"
)

// Bounds of what one worker holds.
const (
	// maxHeld is how many deliveries a worker holds. One more is held of an instance only while that leaves as much room for others, so
	// that as many instances have room.
	maxHeld = 1024
	// maxHeldOfOne is how many deliveries a worker holds of one instance: what it works off in the time after which the server notices
	// that what was given back is due.
	maxHeldOfOne = 256
	// shortestReturn and longestReturn bound how long what is given back stays with the server. After the last the instance may stand
	// still, when its commands have become quicker meanwhile.
	shortestReturn = 50 * time.Millisecond
	longestReturn  = 5 * time.Second
)

// sequenced holds what was taken of one instance, in the stream's order. The lowest is worked on; a lower one may still come,
// when a worker that had it has died, or when it was given back.
type sequenced[T any] struct {
	held []placed[T]
	// returned are the sequences that were given back, in order, as far as they are not known to be settled.
	returned []uint64
	// arrived is signalled when something was added.
	arrived chan struct{}
	// begun is when the present lowest became that, took how long those before it have lately taken.
	begun time.Time
	took  time.Duration
}

type placed[T any] struct {
	sequence uint64
	item     T
}

func newSequenced[T any](now time.Time) *sequenced[T] {
	return &sequenced[T]{arrived: make(chan struct{}, 1), begun: now}
}

// add puts an item in its place. What comes again takes the place of what came before.
func (l *sequenced[T]) add(sequence uint64, item T) {
	i, found := l.find(sequence)
	if found {
		l.held[i].item = item
	} else {
		l.held = slices.Insert(l.held, i, placed[T]{sequence, item})
	}
	if i, found := slices.BinarySearch(l.returned, sequence); found {
		l.returned = slices.Delete(l.returned, i, i+1)
	}
	select {
	case l.arrived <- struct{}{}:
	default:
	}
}

func (l *sequenced[T]) find(sequence uint64) (int, bool) {
	return slices.BinarySearchFunc(l.held, sequence, func(p placed[T], s uint64) int { return cmp.Compare(p.sequence, s) })
}

// lowest gives the first item.
func (l *sequenced[T]) lowest() (item T, ok bool) {
	if len(l.held) == 0 {
		return item, false
	}
	return l.held[0].item, true
}

// settled takes an item out that has left the stream, and with it all that is known of earlier ones.
func (l *sequenced[T]) settled(sequence uint64, now time.Time) {
	if i, found := l.find(sequence); found {
		l.held = slices.Delete(l.held, i, i+1)
	}
	behind, _ := slices.BinarySearch(l.returned, sequence+1)
	l.returned = l.returned[behind:]
	l.took = (l.took*7 + now.Sub(l.begun)) / 8
	l.begun = now
}

// giveBack takes the last item out, and says for how long it is to stay away: about half of the time until its turn, so that it is back
// in time when those before it turn out to be quicker, and is not handed to and fro.
func (l *sequenced[T]) giveBack(now time.Time) (item T, after time.Duration) {
	last := l.held[len(l.held)-1]
	l.held = l.held[:len(l.held)-1]
	i, found := slices.BinarySearch(l.returned, last.sequence)
	if !found {
		l.returned = slices.Insert(l.returned, i, last.sequence)
	}
	turn := time.Duration(len(l.held)+i) * max(l.took, now.Sub(l.begun))
	return last.item, min(max(turn/2, shortestReturn), longestReturn)
}
