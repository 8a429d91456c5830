package deliveries

import (
	"math"
	"slices"

	"catenary/es"
	"catenary/es/dispatch"
)

// never is a version that no key has. A command that expects it is done by nobody, but is answered as a repeat when it was
// done before: so it can be asked after.
const never = math.MaxUint64

// outcome is what became of a step.
type outcome int

const (
	// open means not known yet.
	open outcome = iota
	// accepted: recorded by this run.
	accepted
	// repeated: recorded before, or passed by an earlier run that recorded what comes later.
	repeated
	// unchanged: all was so already.
	unchanged
	// behind: refused because the key has something later. Whether an earlier run recorded that shows at the next step.
	behind
	// refused by a rule, for good.
	refused
	// again: not done, and to be sent once more.
	again
	// absent: asked after, and not recorded before.
	absent
)

// item is a step on its way through its lane.
type item struct {
	step
	request dispatch.Request
	outcome outcome
	why     es.AnswerError
	// version is the key's, as the last answer gave it.
	version uint64
	// last is the place of the last step with the same time in an unbroken row of them.
	last int
	// flying is set while an answer is awaited, sent once the step was sent to be done.
	flying, sent bool
	// absent is set when it was asked after in vain.
	absent bool
}

// waits says whether it is to be sent, or asked after.
func (it *item) waits() bool { return it.outcome == open && !it.flying && !it.absent }

// lane keeps one key's steps in order. It is in one of two moods.
//
// Telling, it sends the steps to be done. The first goes alone, expecting nothing; from its answer the key's version is
// known, and each that follows expects the version that the one before leads to. So many can be in flight, and none can be
// recorded before the one it follows. When one comes back undone the lane waits until nothing is in flight, and asks.
//
// Asking, it sends steps only to learn whether they were done before, by this run or an earlier one. What stands
// before a step that an earlier run recorded was dealt with by that run. Once a step was asked after in vain, and so were
// those of the very same time after it, the lane tells again from there. Without those of the same time the writer could
// not see that the step comes late, if the earlier run had found it unchanged: such answers are not remembered.
type lane struct {
	// queue has the steps whose outcome was not told yet, next is the first that may have to be sent.
	queue []*item
	next  int
	// gates are the registrations still to be answered, depth is how many steps may be in flight.
	gates, depth int
	flying       int
	asking       bool
	// draining holds new flights back until nothing is in flight.
	draining bool
	// crowded is the place of the last step of the newest row of steps with the same time.
	crowded int
	// missing is the first step that was asked after in vain.
	missing *item
	// version is what the key will have after all that is in flight; it is known from an answer.
	version uint64
	known   bool
	// late are the steps found behind, until it is known what that means; resumed is set when the last step that left an
	// event was an earlier run's.
	late    []*item
	resumed bool
	// ready is set while the lane waits for its turn to send.
	ready bool
}

// add takes a step in.
func (l *lane) add(it *item) {
	l.queue = append(l.queue, it)
	if l.flying == 0 {
		l.turn()
	}
}

// sendable gives the next step that may be sent now, nil when there is none.
func (l *lane) sendable() *item {
	if l.gates > 0 || l.draining || l.flying >= l.depth || !l.asking && !l.known && l.flying > 0 {
		return nil
	}
	for l.next < len(l.queue) && !l.queue[l.next].waits() {
		l.next++
	}
	if l.next == len(l.queue) {
		return nil
	}
	it := l.queue[l.next]
	if l.missing != nil && it.place > l.missing.last {
		return nil // enough is known for a turn once the answers are here
	}
	return it
}

// launch marks a step as sent, and gives the version it expects.
func (l *lane) launch(it *item) (expected *uint64) {
	it.flying = true
	l.flying++
	l.next++
	if l.asking {
		n := uint64(never)
		return &n
	}
	it.sent = true
	if !l.known || l.depth == 1 {
		return nil
	}
	n := l.version
	if !it.same {
		l.version++
	}
	return &n
}

// land takes a step's answer in. version is the key's as the answer gives it, 0 when it does not.
func (l *lane) land(it *item, o outcome, why es.AnswerError, version uint64) {
	it.flying, it.version = false, version
	l.flying--
	switch {
	case o == absent:
		it.absent = true
		if l.missing == nil || it.place < l.missing.place {
			l.missing = it
		}
	case o == again:
		l.draining = l.draining || !l.asking
		l.next = 0
	default:
		if o == repeated && l.asking && it.sent {
			o = accepted // by this run; the answer was lost
		}
		it.outcome, it.why = o, why
		if !l.asking && (o == accepted || o == unchanged) {
			if !l.known {
				l.version, l.known = version, true
			}
		} else if !l.asking {
			l.draining = true
		}
	}
	if l.flying == 0 {
		l.turn()
	}
}

// turn changes the mood when it is time. Nothing is in flight.
func (l *lane) turn() {
	if l.draining {
		l.draining, l.asking = false, true
		l.next = 0
	}
	if !l.asking {
		return
	}
	l.pass()
	first := slices.IndexFunc(l.queue, func(it *item) bool { return it.outcome == open })
	l.missing = nil
	if first < 0 || !l.queue[first].absent {
		l.forget()
		return
	}
	// The whole row of steps with the same time must have been asked after.
	covered := false
	for _, it := range l.queue[first:] {
		if it.place > l.queue[first].last || it.outcome == open && !it.absent {
			break
		}
		covered = it.place == l.queue[first].last
	}
	l.next = 0
	if !covered {
		l.missing = l.queue[first]
		return
	}
	l.forget()
	l.asking, l.known = false, false
}

// forget drops what was asked: it may change.
func (l *lane) forget() {
	l.next = 0
	for _, it := range l.queue {
		it.absent = false
	}
}

// pass settles the steps that were asked after in vain and have later ones that were recorded.
func (l *lane) pass() {
	later := open
	for _, it := range slices.Backward(l.queue) {
		switch {
		case it.outcome == open && it.absent && later == repeated:
			it.outcome = repeated
		case it.outcome == open && it.absent && later == accepted && it.same:
			it.outcome = unchanged
		case it.outcome == open && it.absent && later == accepted:
			it.outcome = refused
			it.why = es.AnswerError{Code: codeOvertaken, Message: "a later row of the same key was recorded first, because somebody else changed the key meanwhile"}
		case it.outcome == repeated, it.outcome == accepted:
			later = it.outcome
		}
	}
}

// settled takes the steps off the queue's head whose outcome is final, in order, and tells it.
func (l *lane) settled(tell func(*item)) {
	for len(l.queue) > 0 && l.queue[0].outcome != open {
		it := l.queue[0]
		l.queue[0] = nil
		l.queue = l.queue[1:]
		l.next = max(l.next-1, 0)
		l.settle(it, tell)
	}
}

func (l *lane) settle(it *item, tell func(*item)) {
	switch it.outcome {
	case accepted:
		// One whose answer was lost may have been an earlier run's all the same: then it stood already when those before it were
		// found behind, and is what they were behind of.
		l.resumed = len(l.late) > 0 && it.version <= l.late[0].version
		if l.resumed {
			l.judgeLate(repeated, tell)
		} else {
			l.judgeLate(refused, tell)
		}
	case repeated:
		l.resumed = true
		l.judgeLate(repeated, tell)
	case behind:
		if it.same && l.resumed {
			// It says again what an earlier run had recorded; what is later is somebody else's.
			it.outcome = unchanged
			break
		}
		l.late = append(l.late, it)
		return
	}
	tell(it)
}

// judgeLate says what became of the steps found behind.
func (l *lane) judgeLate(o outcome, tell func(*item)) {
	for _, it := range l.late {
		it.outcome = o
		tell(it)
	}
	l.late = nil
}
