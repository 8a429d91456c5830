package simulate

import (
	"strconv"
	"time"

	"github.com/cockroachdb/errors"

	"catenary/es"
)

const (
	// patience is how long a sender waits for an answer. A command of an engine MUST NOT be done later than that: the engine asks again then.
	patience = 10 * time.Second
	// timely is how long after it was sent a command of an engine may be done. With the difference of the clocks that is less than patience.
	timely = 5 * time.Second
	// late is how long after an engine has decided on a command it may be done: clocks differ by twice as much as one is wrong.
	late = timely + 2*mostSkew
)

var errNoAnswer = errors.New("no answer")

// fate is what becomes of a message and its answer.
type fate struct {
	// copies is how often the message arrives.
	copies      int
	there, back time.Duration
	mute        bool
}

func (s *simulation) fate(l luck) fate {
	f := fate{copies: 1, there: l.span(time.Millisecond, 20*time.Millisecond), back: l.span(time.Millisecond, 20*time.Millisecond)}
	odds := 3
	switch {
	case s.quiet:
		return f
	case s.now.Before(s.storm):
		odds = 20
	}
	switch {
	case l.percent(odds):
		f.copies = 0
	case l.percent(odds):
		f.mute = true
	case l.percent(odds):
		f.copies = 2
	case l.percent(odds):
		f.there = l.span(time.Second, time.Minute)
	case l.percent(odds):
		f.back = l.span(time.Second, 20*time.Second)
	}
	return f
}

// command is what is sent.
type command struct {
	es.Payload
	actor    string
	fence    uint64
	deadline time.Time
	// expected is the version that the sender decided on; nil means any.
	expected *uint64
	// effective is when a node saw what it reports.
	effective time.Time
}

// send sends a command. answered, if it is not nil, is told once what came back, or that nothing did.
func (s *simulation) send(m command, answered func(es.Answer, error)) {
	c := &es.Command{
		ID: s.commandID(), Ref: m.Ref(), Verb: m.Verb(), Data: m.Payload, Actor: m.actor, Fence: m.fence, Deadline: m.deadline, Effective: m.effective, Expected: m.expected,
	}
	if m.fence != 0 {
		s.history.Fences[c.ID] = m.fence
	}
	f := s.fate(s.luckOf(m.actor))
	reply := &reply{to: answered, over: answered == nil}
	for copied := range f.copies {
		s.after(f.there*time.Duration(1+copied), func() {
			a := s.decide(*c)
			if !reply.over && !f.mute {
				s.after(f.back, func() { reply.give(a, nil) })
			}
		})
	}
	if !reply.over && (f.copies == 0 || f.mute || f.there+f.back >= patience) {
		s.after(patience, func() { reply.give(es.Answer{}, errNoAnswer) })
	}
}

// commandID gives each command an id of its own.
func (s *simulation) commandID() string {
	s.sent++
	return "c" + strconv.Itoa(s.sent)
}

// reply is what is told to the sender of a command, once.
type reply struct {
	to   func(es.Answer, error)
	over bool
}

func (r *reply) give(a es.Answer, err error) {
	if !r.over {
		r.over = true
		r.to(a, err)
	}
}

// decide lets the writer decide, and tells everybody what it has recorded.
func (s *simulation) decide(c es.Command) es.Answer {
	before := len(s.ledger.Events)
	s.ledger.Now = s.now
	a, err := s.ledger.Do(c)
	if err != nil {
		s.fail(errors.Wrapf(err, "%s %s", c.Ref, c.Verb))
		return a
	}
	s.recorded(before)
	return a
}

// recorded tells everybody what was recorded since there were so many events.
func (s *simulation) recorded(before int) {
	fresh := s.ledger.Events[before:]
	if len(fresh) == 0 {
		return
	}
	for _, e := range fresh {
		s.chart.take(e)
		s.hint(e)
	}
	upTo := len(s.ledger.Events)
	for _, e := range s.engines {
		e.hears(upTo)
	}
}
