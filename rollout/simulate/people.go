package simulate

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/cockroachdb/errors"

	"catenary/commands"
	"catenary/es"
	"catenary/events"
	"catenary/rollout/plan"
)

// do does an incident to what is there by now.
func (s *simulation) do(d Incident) {
	a := s.agents[d.A%len(s.agents)]
	place := events.StepName{Node: a.name, Module: s.fleet.modules[d.B%len(s.fleet.modules)].name}
	minutes := time.Duration(d.C%300) * time.Second
	switch d.What {
	case doPlan, doTakeBack, doRestore:
		s.doPlan(d)
	case doAssign:
		s.ask(commands.Assign{Node: place.Node, Module: place.Module, Reference: version(place.Module, 1+d.C%versions), Reason: "by hand"})
	case doUnassign:
		s.ask(commands.Unassign{Node: place.Node, Module: place.Module, Reason: "by hand"})
	case doRelabel:
		s.ask(commands.RelabelNode{Node: a.name, Labels: map[string]string{"ring": fmt.Sprint(1 + d.C%3)}})
	case doRetire:
		ends := 0
		for _, m := range s.fleet.modules {
			if s.chart.places[events.StepName{Node: a.name, Module: m.name}].version != nil {
				ends++
			}
		}
		s.ask(commands.RetireNode{Node: a.name, Confirm: &ends})
	case doFreeze:
		s.ask(s.freeze(d))
	case doLift:
		s.ask(commands.LiftFreeze{Name: freezeName(d)})
	case doVeto:
		s.veto(d, place)
	case doLiftVeto:
		for _, ref := range s.chart.vetoed() {
			s.ask(commands.LiftVeto{Reference: ref})
		}
	case doVanish:
		a.vanish(10*time.Second+minutes, false)
	case doLeave:
		a.vanish(0, true)
	case doMerge:
		s.merge(d)
	case doTrack:
		s.change(d)
	case doTrigger:
		s.trigger(d)
	case doTrap:
		verbs := []string{"plan", "plan", "take", "start", "begin-step", "end-step", "advance", "release", "block"}
		s.trap = trap{verb: verbs[d.A%len(verbs)], left: 1 + d.B%3, before: d.C%2 == 0, down: minutes / 4}
	case doCrash:
		s.engine(d).crash(minutes / 4)
	case doHang:
		s.engine(d).hang(mostHang * (30 + time.Duration(d.C%300)) / 330)
	case doStorm:
		s.storm = s.now.Add(minutes / 2)
	case doReopen:
		s.reopen()
	default:
		s.steer(d, place)
	}
}

// veto forbids something that a rollout carries, or else any version.
func (s *simulation) veto(d Incident, place events.StepName) {
	ref := version(place.Module, 1+d.C%versions)
	if n := len(s.chart.order); n > 0 {
		if steps := s.chart.order[n-1].steps; len(steps) > 0 {
			if after := steps[d.B/8%len(steps)].After; after != nil {
				ref = after.Reference
			}
		}
	}
	s.ask(commands.VetoPublication{Reference: ref, Reason: "it is bad"})
}

// engine gives the engine that walks, two times of three.
func (s *simulation) engine(d Incident) *engine {
	if e, ok := s.walking(); ok && d.B%3 > 0 {
		return e
	}
	return s.engines[d.A%len(s.engines)]
}

// reopen lets the writer end, and another go on from its snapshot.
func (s *simulation) reopen() {
	before := len(s.ledger.Events)
	s.ledger.Now = s.now
	if err := s.ledger.Reopen(); err != nil {
		s.fail(err)
		return
	}
	s.recorded(before)
}

// steer steers a rollout.
func (s *simulation) steer(d Incident, place events.StepName) {
	if len(s.chart.order) == 0 {
		return
	}
	id := s.chart.order[d.A/8%len(s.chart.order)].id
	if steps := s.chart.rollouts[id].steps; len(steps) > 0 {
		step := steps[d.B/8%len(steps)]
		place = events.StepName{Node: step.Node, Module: step.Module}
	}
	by := s.chart.order[d.C%len(s.chart.order)].id
	if d.What == doSupersede && by == id {
		return
	}
	outcomes := []string{events.StepDone, events.StepFailed, events.StepSkipped}
	if p, ok := (map[string]es.Payload{
		doStart: commands.StartRollout{ID: id}, doApprove: commands.ApproveRollout{ID: id}, doPause: commands.PauseRollout{ID: id}, doResume: commands.ResumeRollout{ID: id},
		doAbort: commands.AbortRollout{ID: id, Reason: "enough"}, doSupersede: commands.SupersedeRollout{ID: id, By: by},
		doSettle: commands.SettleStep{ID: id, StepName: place, Outcome: outcomes[d.C%len(outcomes)], Reason: "somebody has looked"},
		doRetry:  commands.RetryStep{ID: id, StepName: place, Reason: "it may work now"},
	}[d.What]); ok {
		s.ask(p)
	}
}

func freezeName(d Incident) string { return fmt.Sprintf("f%d", d.A%2) }

// freeze gives a freeze of some kind.
func (s *simulation) freeze(d Incident) commands.DeclareFreeze {
	f := commands.DeclareFreeze{Name: freezeName(d)}
	switch d.B % 3 {
	case 0:
		f.Selector.Modules = []string{s.fleet.modules[d.B/3%len(s.fleet.modules)].name}
	case 1:
		f.Selector.Labels = map[string]string{"ring": fmt.Sprint(1 + d.B/3%3)}
	}
	from := s.now.Add(time.Duration(d.C%60) * time.Second)
	to := from.Add(time.Minute + time.Duration(d.C/64%300)*time.Second)
	switch d.C / 8 % 4 {
	case 0:
		f.Window = &events.Window{Start: from.Format(time.RFC3339), End: to.Format(time.RFC3339)}
	case 1:
		f.Window = &events.Window{End: to.Format(time.RFC3339)}
	case 2:
		zone := time.FixedZone("", 2*60*60) // that of Berlin in May
		f.Window = &events.Window{Recurring: &events.Recurring{From: from.In(zone).Format("15:04"), To: to.In(zone).Add(time.Minute).Format("15:04"), Zone: "Europe/Berlin"}}
	}
	return f
}

// doPlan plans, writes the plan down and mostly starts it.
func (s *simulation) doPlan(d Incident) {
	chance := rand.New(rand.NewPCG(uint64(d.A), uint64(d.B)))
	r := plan.Request{ID: fmt.Sprintf("r%d", s.made+1), Strategy: s.fleet.strategy(chance), Reason: "somebody wants it"}
	switch {
	case d.What == doTakeBack:
		if len(s.chart.order) == 0 {
			return
		}
		r.Reverts = s.chart.order[d.C%len(s.chart.order)].id
		undo, strategy, err := plan.Undone(s.chart.whole(r.Reverts))
		if err != nil {
			return // it has told nothing yet
		}
		r.Undo, r.Strategy = undo, strategy
	case d.What == doRestore:
		at := s.now.Add(-time.Duration(d.C%900) * time.Second)
		r.Restore = &plan.Restore{At: at, Told: s.chart.stood(at)}
		switch d.B % 4 {
		case 0:
			r.Restore.Scope = func(n events.StepName) bool { return n.Node == s.agents[d.A%len(s.agents)].name }
		case 1:
			r.Restore.Scope = func(n events.StepName) bool { return n.Module == s.fleet.modules[d.A%len(s.fleet.modules)].name }
		}
	default:
		if chance.IntN(4) == 0 {
			r.Strategy = s.fleet.apart(r.Strategy, chance)
		}
		for i, m := range s.fleet.modules {
			if pick := d.C % 4; pick == 3 || pick%len(s.fleet.modules) == i {
				r.Targets = append(r.Targets, events.Target{Module: m.name, Version: events.Version{Reference: version(m.name, 1+chance.IntN(versions))}})
			}
		}
		if n := len(s.chart.order); n > 0 && d.C/4%5 == 0 {
			r.Supersedes = []string{s.chart.order[d.C/32%n].id}
		}
	}
	p, err := s.makes(r)
	var circle *plan.CircleError
	var edge *plan.EdgeError
	switch {
	case errors.As(err, &circle), errors.As(err, &edge):
		return // what ends goes the other way round than the strategy's edges, or these go back to an earlier tier
	case err != nil:
		s.fail(err)
		return
	case len(p.Steps) == 0:
		return
	}
	slow := time.Duration(0)
	if d.C/128%6 == 0 { // the plan lies about for a while
		slow = time.Duration(d.C/1024%60) * time.Second
	}
	s.after(slow, func() { s.person(plan.TrackPlan{Plan: p}, d.C/16%8 > 0) })
}
