package simulate

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/cockroachdb/errors"
	"github.com/google/go-cmp/cmp"

	"catenary/commands"
	"catenary/es"
	"catenary/events"
	"catenary/rollout/walk"
)

const (
	// leaseTTL is how long an engine's lease holds, renewed three times meanwhile.
	leaseTTL = 30 * time.Second
	// missed is after how long without a word a node counts as away.
	missed = 15 * time.Second
	// mostSkew is how far an engine's clock may be from the writer's.
	mostSkew = 2 * time.Second
	// mostHang is the longest time that an engine hangs: what it knows of nodes may be as old as that when it goes on.
	mostHang = 110 * time.Second
)

// engine is a process that walks rollouts, as the real one does: it follows the events, holds a lease, and sends what its walker asks for.
type engine struct {
	*simulation
	luck
	seat string
	// life counts its starts: what an earlier one was about to do is not done. holder is its name in this life.
	life   int
	holder string
	up     bool
	asleep time.Time
	walker Walker
	skew   time.Duration
	// heard is how many events have reached it, read how many it has taken in.
	heard, read int
	// wake is when it wants to look again.
	wake time.Time
	// plans makes the plans that nobody asks for, while it walks.
	plans *planner
}

func (e *engine) clock() time.Time { return e.now.Add(e.skew) }

// later does something after a time, if the engine still lives then; one that hangs does it when it goes on.
func (e *engine) later(d time.Duration, do func()) { e.alive(d, do, false) }

// alive does it as a thing that is done every so often, or as one that is to be done now.
func (e *engine) alive(d time.Duration, do func(), regular bool) {
	life := e.life
	e.timeline.plan(d, func() {
		switch {
		case e.life != life || !e.up:
		case e.now.Before(e.asleep):
			e.later(e.asleep.Sub(e.now), do)
		default:
			do()
		}
	}, regular)
}

// start starts it with nothing but the events.
func (e *engine) start() {
	e.life++
	e.holder = fmt.Sprintf("%s.%d", e.seat, e.life)
	e.up, e.asleep, e.wake = true, time.Time{}, time.Time{}
	e.heard, e.read, e.skew = len(e.ledger.Events), 0, 0
	e.plans = nil
	if !e.quiet {
		e.skew = e.span(-mostSkew, mostSkew)
	}
	e.walker = e.newWalker()
	e.later(e.span(time.Millisecond, time.Second), e.catchUp)
	e.later(e.span(time.Millisecond, time.Second), e.lease)
	for _, a := range e.agents {
		if a.gone {
			e.later(missed, func() { e.miss(a) })
		}
	}
}

func (e *engine) newWalker() Walker {
	w := walk.New(walk.Config{Registry: e.config.Tools.Registry})
	if e.config.Parts.Walker != nil {
		return e.config.Parts.Walker(w)
	}
	return w
}

func (e *engine) crash(down time.Duration) {
	if !e.up {
		return
	}
	e.up = false
	e.after(down, func() {
		if !e.up {
			e.start()
		}
	})
}

// hang stops it without ending it.
func (e *engine) hang(d time.Duration) { e.asleep = e.now.Add(d) }

func (e *engine) calm() {
	e.asleep, e.skew = time.Time{}, 0
	if !e.up {
		e.start()
		return
	}
	e.later(0, e.catchUp)
}

// hears says that events are stored: they reach the engine in their order, some of them late. One that stands by takes them in when the lease
// changes hands: before that nobody can tell.
func (e *engine) hears(upTo int) {
	d := e.span(time.Millisecond, 10*time.Millisecond)
	if !e.quiet && e.percent(2) {
		d = e.span(time.Millisecond, 3*time.Second)
	}
	e.later(d, func() {
		if upTo <= e.heard {
			return
		}
		fresh := e.ledger.Events[e.heard:upTo]
		e.heard = upTo
		if e.leads() || slices.ContainsFunc(fresh, func(ev es.Event) bool { return ev.Ref.Aggregate == events.AggregateLease }) {
			e.catchUp()
		}
	})
}

// catchUp takes in what has reached it, and looks.
func (e *engine) catchUp() {
	led := e.leads()
	beginning, moved := e.read == 0, false
	for ; e.read < e.heard; e.read++ {
		moved = moved || e.ledger.Events[e.read].Ref.Aggregate != events.AggregateLease
		if err := e.walker.Apply(e.folded(e.ledger.Events[e.read], beginning)); err != nil {
			e.fail(err)
			return
		}
	}
	switch {
	case e.leads() && !led:
		e.walker.Forget()
		e.plansFrom()
	case !e.leads():
		e.plans = nil
	}
	if e.config.Anew && moved && led && e.leads() && e.mayCut() {
		e.anew()
		return
	}
	e.look()
}

func (e *engine) folded(ev es.Event, beginning bool) es.Event {
	if fold := e.config.Parts.Fold; fold != nil {
		ev = fold(ev)
	}
	if recall := e.config.Parts.Recall; recall != nil && beginning {
		ev = recall(ev)
	}
	return ev
}

// leads says whether it has the lease, as far as it has read.
func (e *engine) leads() bool { return e.walker.Lease().Holder == e.holder }

// busy says whether it knows of something that is to be done yet.
func (e *engine) busy() bool {
	return e.read < len(e.ledger.Events) || e.plans == nil || !e.plans.idle()
}

// lease renews the lease, or tries to take it.
func (e *engine) lease() {
	e.alive(leaseTTL/3, e.lease, true)
	if !e.leads() {
		if e.seesOther() && e.percent(e.leaves()) {
			return // asking for a lease that is held is refused
		}
		e.send(command{Payload: commands.TakeLease{Name: commands.EngineLease, Holder: e.holder, TTL: leaseTTL.String()}, actor: e.seat}, nil)
		return
	}
	if !e.config.Parts.Unrenewed {
		e.send(command{Payload: commands.RenewLease{Name: commands.EngineLease, Holder: e.holder}, actor: e.seat}, nil)
	}
}

// leaves is how often, of a hundred, an engine does not ask for the lease of another that is at work: a refusal is all that comes of it.
func (e *engine) leaves() int {
	if e.quiet {
		return 95
	}
	return 70
}

// seesOther says whether another engine is at work.
func (e *engine) seesOther() bool {
	return slices.ContainsFunc(e.engines, func(o *engine) bool { return o != e && o.up && o.leads() && !e.now.Before(o.asleep) })
}

// look lets it look once, and sends what it asks for.
func (e *engine) look() {
	if !e.leads() {
		return
	}
	actions, again := e.walker.Next(e.clock())
	for _, a := range actions {
		if e.act(a); !e.up {
			return
		}
	}
	if !again.IsZero() {
		e.lookAt(again.Add(-e.skew))
	}
	if e.plans != nil {
		e.plans.tell()
	}
}

// lookAt lets it look again at a moment.
func (e *engine) lookAt(at time.Time) {
	if !e.wake.IsZero() && !at.Before(e.wake) && e.wake.After(e.now) {
		return
	}
	e.wake = at
	e.later(max(time.Millisecond, at.Sub(e.now)), func() {
		if e.wake.Equal(at) {
			e.wake = time.Time{}
			e.look()
		}
	})
}

// act sends a command that the walker asks for.
func (e *engine) act(a walk.Action) {
	walker, life := e.walker, e.life
	c := e.command(a.Payload)
	if a.Expected != 0 {
		c.expected = &a.Expected
	}
	e.issue(c, func(answer es.Answer, err error) {
		e.later(0, func() {
			if e.life == life && e.walker == walker {
				walker.Answered(a, answer, err, e.clock())
				e.look()
			}
		})
	})
}

// issue sends a command of this engine, which may die over it.
func (e *engine) issue(c command, answered func(es.Answer, error)) {
	dies := e.trap.springs(c.Verb())
	if dies && e.trap.before {
		e.crash(e.trap.down)
		return
	}
	e.send(c, answered)
	if dies {
		e.crash(e.trap.down)
	}
}

// trap lets the engine that walks die when it is about to send a command of a kind, or has just sent it.
type trap struct {
	verb   string
	left   int
	before bool
	down   time.Duration
}

// springs says whether the engine dies over a command.
func (t *trap) springs(verb string) bool {
	if t.left == 0 || t.verb != verb {
		return false
	}
	t.left--
	return t.left == 0
}

// command is one of this engine: under its fence, and not to be done when the engine has given it up.
func (e *engine) command(p es.Payload) command {
	c := command{Payload: p, actor: e.seat, fence: e.walker.Lease().Fence}
	if !e.config.Parts.Undated {
		c.deadline = e.clock().Add(timely)
	}
	return c
}

// miss notes that a node has not been heard of.
func (e *engine) miss(a *agent) {
	if a.gone {
		e.walker.SetAway(a.name, a.since)
		e.look()
	}
}

// mostCut is how many plans are cut short where engines die all the time: each next one gives half a plan up and begins anew, and would never come
// to the end of one.
const mostCut = 3

// mayCut says whether the engine may die now, and counts the plans that this leaves half written.
func (e *engine) mayCut() bool {
	if e.plans == nil || !e.plans.writing {
		return true
	}
	e.cut++
	return e.cut <= mostCut
}

// anew lets the engine die, whatever it has asked for, and another one go on, which has to be the same.
func (e *engine) anew() {
	fresh := e.newWalker()
	for _, ev := range e.ledger.Events[:e.read] {
		if err := fresh.Apply(e.folded(ev, true)); err != nil {
			e.fail(err)
			return
		}
	}
	for _, a := range e.agents {
		since := time.Time{}
		if a.gone && e.now.Sub(a.since) >= missed {
			since = a.since
		}
		fresh.SetAway(a.name, since) // no event says who is away
		e.walker.SetAway(a.name, since)
	}
	e.walker.Forget()
	for _, r := range e.chart.order {
		if diff := cmp.Diff(fresh.Blocked(r.id, e.clock()), e.walker.Blocked(r.id, e.clock())); diff != "" {
			e.fail(errors.Newf("reasons of %s (-another engine +this one):\n%s", r.id, diff))
			return
		}
	}
	due, _ := fresh.Next(e.clock())
	mine, _ := e.walker.Next(e.clock())
	if diff := cmp.Diff(said(due), said(mine)); diff != "" {
		e.fail(errors.Newf("due (-another engine +this one):\n%s", diff))
		return
	}
	before := e.holder
	e.start()
	for _, p := range []es.Payload{
		commands.ReleaseLease{Name: commands.EngineLease, Holder: before}, commands.TakeLease{Name: commands.EngineLease, Holder: e.holder, TTL: leaseTTL.String()},
	} {
		e.decide(es.Command{ID: e.commandID(), Ref: p.Ref(), Verb: p.Verb(), Data: p, Actor: e.seat})
	}
}

func said(list []walk.Action) []string {
	var texts []string
	for _, a := range list {
		body, err := json.Marshal(a.Payload)
		texts = append(texts, fmt.Sprintf("%s %s %s %v", a.Payload.Ref(), a.Payload.Verb(), body, err))
	}
	slices.Sort(texts)
	return texts
}
