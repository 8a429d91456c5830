package simulate

import (
	"strconv"
	"time"

	"catenary/commands"
	"catenary/es"
	"catenary/events"
	"catenary/rollout/simulate/check"
)

const (
	// polls is how often an agent reads all that it is told: hints get lost.
	polls = 2 * time.Minute
	// reports is how often a report is sent that nobody answers.
	reports = 4
)

// agent acts on a node: it does what the node is told and reports, or fails, lies, hangs, and is away.
type agent struct {
	*simulation
	luck
	name  string
	gone  bool
	since time.Time
	// left says that it is gone until somebody fetches it back.
	left  bool
	units []*unit
}

// unit is a module on the node.
type unit struct {
	name events.StepName
	told told
	// well says that it runs what was told, and that this was reported.
	well bool
	// brought is how often it has brought about what it was told.
	brought int
}

func newAgent(s *simulation, n fleetNode) *agent {
	a := &agent{simulation: s, luck: s.luckOf(n.name), name: n.name}
	if n.external {
		return a
	}
	for _, m := range s.fleet.modules {
		a.units = append(a.units, &unit{name: events.StepName{Node: n.name, Module: m.name}})
	}
	s.timeline.plan(a.span(time.Second, polls), a.poll, true)
	return a
}

func (a *agent) poll() {
	a.timeline.plan(polls, a.poll, true)
	a.readAll()
}

func (a *agent) readAll() {
	for _, u := range a.units {
		a.read(u)
	}
}

// hint tells a node that something is new for it; some hints get lost.
func (s *simulation) hint(e es.Event) {
	var n events.StepName
	switch f := e.Data.(type) {
	case events.AssignmentAssigned:
		n = events.StepName{Node: f.Node, Module: f.Module}
	case events.AssignmentEnded:
		n = events.StepName{Node: f.Node, Module: f.Module}
	default:
		return
	}
	for _, a := range s.agents {
		for _, u := range a.units {
			if u.name == n && (s.quiet || !a.percent(5)) {
				s.after(a.span(time.Millisecond, 100*time.Millisecond), func() { a.read(u) })
			}
		}
	}
}

// read reads what the node is told, and takes up only what is newer than what it knows.
func (a *agent) read(u *unit) {
	t := a.chart.places[u.name]
	if a.gone || t.source <= u.told.source {
		return
	}
	u.told, u.well = t, false
	told := a.history.Told
	a.history.Told = append(told, toldOf(u, a.now))
	a.work(u, a.span(10*time.Millisecond, 3*time.Second))
}

// work does what is told, after a time.
func (a *agent) work(u *unit, d time.Duration) {
	t := u.told
	a.after(d, func() {
		if !a.gone && u.told == t {
			a.try(u)
		}
	})
}

// try is one attempt at what is told.
func (a *agent) try(u *unit) {
	if !a.quiet {
		broken := u.told.version != nil && bad(u.told.version.Reference)
		odds := a.IntN(100)
		switch {
		case broken && odds < 70, odds < 8:
			a.failed(u)
			return
		case odds < 13:
			return // it hangs
		case odds < 25:
			a.lie(u)
			a.work(u, a.span(time.Second, 20*time.Second))
			return
		case odds < 29:
			a.work(u, a.span(time.Minute, 8*time.Minute))
			return
		}
	}
	u.well = true
	u.brought++
	ran := a.history.Ran
	a.history.Ran = append(ran, toldOf(u, a.now))
	outcome := commands.OutcomeApplied
	if u.told.version == nil {
		outcome = commands.OutcomeRemoved
	}
	a.report(u, outcome)
	if u.told.version != nil {
		a.examine(u, a.span(time.Second, 15*time.Second))
	}
}

// bad says whether a version does not work: every fourth one.
func bad(r events.Reference) bool {
	n, err := strconv.Atoi(r.Package.Version)
	return err == nil && n%4 == 3
}

func (a *agent) failed(u *unit) {
	outcome := commands.OutcomeApplyFailed
	if u.told.version == nil {
		outcome = commands.OutcomeRemoveFailed
	}
	a.report(u, outcome)
}

// examine looks after a time whether what runs is well.
func (a *agent) examine(u *unit, d time.Duration) {
	t := u.told
	a.after(d, func() {
		switch {
		case a.gone || u.told != t:
		case a.quiet || a.percent(88):
			a.report(u, commands.OutcomeHealthy)
		default:
			a.report(u, commands.OutcomeUnhealthy)
			a.examine(u, 40*time.Second)
		}
	})
}

// seen is what the node says of itself.
func seen(u *unit) events.Seen {
	s := events.Seen{Node: u.name.Node, Module: u.name.Module, Rollout: u.told.rollout, Source: u.told.source}
	if u.told.version != nil {
		s.Reference, s.Build = u.told.version.Reference, u.told.version.Build
	}
	return s
}

// handsOn is what a module hands on to those that wait for it or require it: mostly the same, at times another value, one more, or none.
func (u *unit) handsOn() map[string]string {
	switch n := u.told.source + uint64(u.brought); n % 5 {
	case 0:
		return nil
	case 1:
		return map[string]string{"port": "2", "path": "/"}
	case 2:
		return map[string]string{"port": "2"}
	}
	return map[string]string{"port": "1"}
}

// report reports, and sometimes again when nobody wants to know any more.
func (a *agent) report(u *unit, outcome string) {
	o := commands.Observe{Seen: seen(u), Outcome: outcome}
	if outcome == commands.OutcomeApplied {
		o.Outputs = u.handsOn()
	}
	saw := a.now
	a.say(u, o, saw, reports)
	if !a.quiet && a.percent(15) {
		a.after(a.span(time.Second, 3*time.Minute), func() { a.say(u, o, saw, 1) })
	}
}

// say sends a report until it is answered, or something else is told.
func (a *agent) say(u *unit, o commands.Observe, saw time.Time, times int) {
	t := u.told
	a.send(command{Payload: o, actor: a.name, effective: saw}, func(_ es.Answer, err error) {
		if err != nil && times > 1 && u.told == t && !a.gone {
			a.say(u, o, saw, times-1)
		}
	})
}

// lie reports what is not so: about another rollout, another build, or an earlier instruction.
func (a *agent) lie(u *unit) {
	o := commands.Observe{Seen: seen(u), Outcome: commands.OutcomeApplied}
	o.Outputs = map[string]string{"port": "a lie"}
	switch a.IntN(4) {
	case 0:
		o.Rollout = "r99"
	case 1:
		o.Rollout, o.Source = "r1", 0
		if u.told.rollout == "r1" {
			o.Rollout = ""
		}
	case 2:
		o.Reference, o.Build = other(u.told.version, u.name.Module), ""
		if u.told.version == nil {
			o.Rollout = "r99" // where nothing stands there is nothing else to be at
		}
	case 3:
		o.Source = u.told.source - 1
	}
	switch a.IntN(4) {
	case 0:
		o.Outcome = commands.OutcomeHealthy
	case 1:
		o.Outcome = commands.OutcomeApplyFailed
	case 2:
		if u.told.version == nil {
			o.Outcome = commands.OutcomeRemoved
		}
	}
	a.say(u, o, a.now, 1)
}

// vanish takes the node away for a while. Engines learn of it when they miss it. One that has left does not come back by itself.
func (a *agent) vanish(d time.Duration, left bool) {
	if a.gone || len(a.units) == 0 {
		return
	}
	a.gone, a.since, a.left = true, a.now, left
	for _, e := range a.engines {
		e.later(missed, func() { e.miss(a) })
	}
	if !left {
		a.after(d, a.back)
	}
}

// back lets it be there again: it reads everything anew, and does what it has not done.
func (a *agent) back() {
	if !a.gone {
		return
	}
	a.history.Away = append(a.history.Away, check.Absence{Node: a.name, From: a.since, To: a.now})
	a.gone, a.left = false, false
	for _, e := range a.engines {
		e.later(a.span(time.Millisecond, time.Second), func() {
			if !a.gone {
				e.walker.SetAway(a.name, time.Time{})
				e.look()
			}
		})
	}
	a.readAll()
	a.goOn()
}

// goOn takes up again what is not done, and looks whether what is done is well.
func (a *agent) goOn() {
	for _, u := range a.units {
		switch {
		case u.told.source == 0:
		case !u.well:
			a.work(u, a.span(10*time.Millisecond, 3*time.Second))
		case u.told.version != nil:
			a.examine(u, a.span(time.Second, 15*time.Second))
		}
	}
}

// calm lets it be there and do what it is told, unless it has left.
func (a *agent) calm() {
	if a.left {
		return
	}
	a.back()
	a.readAll()
	for _, u := range a.units {
		u.well = false
	}
	a.goOn()
}
