package simulate

import (
	"fmt"
	"slices"
	"time"

	"catenary/chain"
	"catenary/commands"
	"catenary/es"
	"catenary/events"
	"catenary/rollout/plan"
	"catenary/rollout/walk"
)

const (
	// planInterval is how often tracks are looked at though nothing has happened, and when what is held is tried again to be taken back.
	planInterval = 30 * time.Second
	// firstRetry and lastRetry are the waits before what could not be planned is tried again.
	firstRetry, lastRetry = time.Second, 15 * time.Second
)

// planner makes the plans that nobody asks for, as that of the real engine does: one after another, as long as the engine walks, and again what
// could not be done.
type planner struct {
	*engine
	// backs, half and tracks are what it may have to do, round the tracks that it has not got to yet.
	backs  []string
	half   []walk.HalfPlan
	tracks bool
	round  []string
	// closed and settled hold rollouts that need nothing any more: those it has planned to the end, and those that need no way back. held says
	// until when others are left alone.
	closed, settled map[string]bool
	held            map[string]time.Time
	// looked is the last event that a track was found to wait at: it waits as long as nothing happens and no freeze comes or goes.
	looked map[string]int
	// writing says that a plan is written down to a part.
	serving, writing bool
	failed           time.Duration
}

// plansFrom lets the engine plan from now on, with nothing but the events.
func (e *engine) plansFrom() {
	e.plans = &planner{engine: e, tracks: true, closed: map[string]bool{}, settled: map[string]bool{}, held: map[string]time.Time{}, looked: map[string]int{}}
	e.plans.tick()
}

// soon does something after a time, if the planner plans yet.
func (p *planner) soon(d time.Duration, do func()) { p.later(d, p.presently(do)) }

func (p *planner) presently(do func()) func() {
	return func() {
		if p.engine.plans == p && p.leads() {
			do()
		}
	}
}

func (p *planner) tick() {
	p.alive(planInterval, p.presently(p.tick), true)
	p.tracks = p.tracks || p.walker.PlansByItself()
	p.tell()
}

// tell says what there is to do by now.
func (p *planner) tell() {
	p.backs, p.half, p.tracks = p.walker.ToTakeBack(), p.walker.HalfPlanned(), p.walker.ToPlan() || p.tracks
	if !p.serving {
		p.serve()
	}
}

// idle says that it has nothing to do that can be done.
func (p *planner) idle() bool {
	_, half := p.toGiveUp()
	return !p.serving && !p.tracks && !half && !slices.ContainsFunc(p.backs, func(id string) bool { return !p.settled[id] })
}

func (p *planner) toGiveUp() (walk.HalfPlan, bool) {
	at := slices.IndexFunc(p.half, func(h walk.HalfPlan) bool { return !p.closed[h.Rollout] })
	if at < 0 {
		return walk.HalfPlan{}, false
	}
	return p.half[at], true
}

func (p *planner) toTakeBack() (string, bool) {
	at := slices.IndexFunc(p.backs, func(id string) bool { return !p.settled[id] && !p.now.Before(p.held[id]) })
	if at < 0 {
		return "", false
	}
	return p.backs[at], true
}

// serve does the next thing there is to do.
func (p *planner) serve() {
	p.serving = true
	if half, is := p.toGiveUp(); is {
		p.giveUp(half)
		return
	}
	if id, is := p.toTakeBack(); is {
		p.back(id)
		return
	}
	if len(p.round) == 0 && p.tracks {
		p.tracks, p.round = false, p.chart.declared()
	}
	if len(p.round) > 0 {
		name := p.round[0]
		p.round = p.round[1:]
		p.track(name)
		return
	}
	p.serving, p.failed = false, 0
}

// goOn goes on to the next thing, after the time that reading the chain takes.
func (p *planner) goOn() { p.soon(p.span(time.Millisecond, 50*time.Millisecond), p.serve) }

// again tries again what could not be done, after a while.
func (p *planner) again() {
	p.failed = min(lastRetry, max(firstRetry, 2*p.failed))
	p.tracks = true
	p.soon(p.failed, p.serve)
}

// giveUp gives up a plan that nobody writes down to its end. One that has gone on since it was seen is left alone.
func (p *planner) giveUp(half walk.HalfPlan) {
	c := p.command(commands.AbortRollout{ID: half.Rollout, Reason: "its plan was never written to its end"})
	c.expected = &half.Version
	p.half = slices.DeleteFunc(p.half, func(h walk.HalfPlan) bool { return h == half })
	p.done(c, func(ok bool) {
		if ok {
			p.goOn()
			return
		}
		p.half = append(p.half, half)
		p.again()
	}, "version", "rollout-final")
}

// back plans a rollout back and writes the plan down.
func (p *planner) back(id string) {
	undo, strategy, err := plan.Undone(p.chart.whole(id))
	if err != nil {
		p.keep(id, err.Error())
		return
	}
	made, err := p.makes(plan.Request{ID: fmt.Sprintf("%s-back-%d", id, p.made+1), Strategy: strategy, Reason: "it has failed", Reverts: id, Undo: undo})
	switch {
	case err != nil:
		p.fail(err)
	case len(made.Steps) == 0 && made.Held():
		p.held[id] = p.now.Add(planInterval)
		p.goOn()
	case len(made.Steps) == 0:
		p.keep(id, fmt.Sprintf("%d places have gone on", len(made.LeftOut)))
	default:
		p.record(plan.TrackPlan{Plan: made}, func() { p.settled[id] = true })
	}
}

// keep says why a rollout needs no way back.
func (p *planner) keep(id, why string) {
	p.settled[id] = true
	p.history.Kept[id] = why
	p.goOn()
}

// track plans for a track, if that has something due.
func (p *planner) track(name string) {
	t, there := p.chart.tracks[name]
	if !there || p.looked[name] == len(p.ledger.Events) && !p.chart.thaws(p.now.Add(-planInterval)) {
		p.serve()
		return
	}
	seen := len(p.ledger.Events)
	made, hold, err := p.due(t, plan.Asked{})
	switch {
	case err != nil:
		p.fail(err)
	case hold == nil:
		p.made++
		p.record(made, func() {})
	case len(made.Placed) > 0:
		p.release(made.Placed)
	default:
		p.looked[name] = seen
		p.serve()
	}
}

// release lets merges wait no more that have nothing to bring.
func (p *planner) release(placed []chain.Merge) {
	if len(placed) == 0 {
		p.goOn()
		return
	}
	m := placed[0]
	c := p.command(commands.ReleaseMerge{Repository: m.Repository, Branch: m.Branch, Commit: m.Commit, Reason: "what was built of it stands everywhere"})
	p.done(c, func(ok bool) {
		if !ok {
			p.again()
			return
		}
		p.release(placed[1:])
	})
}

// record writes a plan down.
func (p *planner) record(made plan.TrackPlan, closed func()) {
	p.writing = true
	p.write(made, func(payload es.Payload, then func(bool)) { p.done(p.command(payload), then, "not-waiting") }, func(ok bool) {
		p.writing = false
		if !ok {
			p.again()
			return
		}
		p.closed[made.ID] = true
		closed()
		p.goOn()
	})
}

// done sends a command, and says then whether it is done, or refused for one of some reasons.
func (p *planner) done(c command, then func(ok bool), fine ...string) {
	p.issue(c, func(a es.Answer, err error) {
		p.soon(0, func() {
			ok := err == nil && (a.Status == es.StatusAccepted || a.Status == es.StatusUnchanged || a.Error != nil && slices.Contains(fine, a.Error.Code))
			then(ok)
		})
	})
}

// due gives what a track has to plan, or why it does not, by the chain's records.
func (s *simulation) due(t chain.Track, a plan.Asked) (plan.TrackPlan, *events.Hold, error) {
	facts := s.chart.facts()
	of := s.chart.trackFacts(t, facts, a.ByPerson)
	if s.config.Parts.Track != nil {
		t, of = s.config.Parts.Track(t, of)
	}
	due, hold := plan.NextOf(t, of)
	if hold != nil {
		return plan.TrackPlan{Placed: due.Placed}, hold, nil
	}
	var before chain.WholeRollout
	if due.Again != "" {
		before = s.chart.whole(due.Again)
	}
	a.Now, a.ID = s.now, fmt.Sprintf("%s-%d", t.Track, s.made+1)
	return plan.Carry(facts, t, due, before, s.chart.strategies[t.Strategy], a)
}

// write writes a plan down, each command when the one before it is done, and says then whether all of it is.
func (s *simulation) write(p plan.TrackPlan, send func(es.Payload, func(bool)), then func(ok bool)) {
	var confirm *int
	if p.Ends > 0 {
		confirm = &p.Ends
	}
	list, err := p.Commands(confirm)
	if err != nil {
		s.fail(err)
		return
	}
	if whole, ok := list[0].(commands.PlanRollout); ok && len(whole.Steps) > 1 && s.luckOf("plans").percent(50) {
		list = slices.Replace(list, 0, 1, s.parted(whole)...)
		if last, ok := list[len(list)-1].(commands.PlanRollout); ok && len(p.Merges) > 0 {
			last.Part++
			list[len(list)-1] = last
		}
	}
	if s.config.Parts.Write != nil {
		list = s.config.Parts.Write(list)
	}
	var next func(n int)
	next = func(n int) {
		if n == len(list) {
			then(true)
			return
		}
		send(list[n], func(ok bool) {
			if !ok {
				then(false)
				return
			}
			next(n + 1)
		})
	}
	next(0)
}

// parted writes a part down in two, as a large one is.
func (s *simulation) parted(whole commands.PlanRollout) []es.Payload {
	at := 1 + s.luckOf("plans").IntN(len(whole.Steps)-1)
	first, second := whole, whole
	first.Steps, first.Digest, first.Count, first.Confirm = whole.Steps[:at], "", 0, nil
	second.Part, second.Head, second.Steps = 2, nil, whole.Steps[at:]
	return []es.Payload{first, second}
}
