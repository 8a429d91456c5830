package rollout

import (
	"context"
	"sync"
	"time"

	"catenary/commands"
	"catenary/es"
	"catenary/es/dispatch"
	"catenary/internal/failpoint"
	"catenary/rollout/walk"
)

// loop takes in what comes, and asks for what is due, until the context ends.
func (e *Engine) loop(ctx context.Context) error {
	timer := time.NewTimer(longAgain)
	defer timer.Stop()
	for {
		if e.act(ctx) {
			return ErrDrained
		}
		timer.Reset(e.sleep())
		more, err := e.batch(ctx, timer.C)
		if err != nil || !more {
			return err
		}
	}
}

// sleep is how long the loop may wait for an input.
func (e *Engine) sleep() time.Duration {
	d := longAgain
	if !e.again.IsZero() {
		d = min(d, max(0, e.again.Sub(e.cfg.Now())))
	}
	return d
}

// batch waits for an input and gathers those of a millisecond behind it. It says whether the loop goes on.
func (e *Engine) batch(ctx context.Context, again <-chan time.Time) (bool, error) {
	if more, _, err := e.input(ctx, again); err != nil || !more {
		return false, err
	}
	over := time.NewTimer(batchSpan)
	defer over.Stop()
	for range maxBatch {
		more, closed, err := e.input(ctx, over.C)
		if err != nil || !more || closed {
			return more, err
		}
	}
	return true, nil
}

// input takes one input in, or sees that the time is over. It says whether there may be more.
func (e *Engine) input(ctx context.Context, time <-chan time.Time) (more, over bool, err error) {
	drain := e.drain
	if e.draining {
		drain = nil
	}
	select {
	case <-ctx.Done():
		return false, false, nil
	case s := <-e.stretches:
		if s.read {
			e.state.Passed(s.through)
			e.caughtUp = true
			return true, false, nil
		}
		err := e.state.Take(s.message)
		if e.cfg.Trace != nil {
			e.noteTrace(s.message)
		}
		return true, false, err
	case o := <-e.outcomes:
		e.answered(o)
	case p := <-e.presence:
		e.state.SetAway(p.Node, p.Since)
	case <-e.keeper.changed:
	case ask := <-e.asks:
		ask()
	case <-drain:
		e.draining = true
		e.state.Drain()
		e.log.Info("no step begins any more; what runs goes on", "steps", stepNames(e.state.Pending()))
	case <-time:
		return true, true, nil
	}
	return true, false, nil
}

// answered takes in what came of a command. A holder that is fenced stands by.
func (e *Engine) answered(o outcome) {
	if o.fence != e.state.Lease().Fence {
		return // it was asked for under another lease, and forgotten with it
	}
	if o.err == nil && o.answer.Status == es.StatusFenced {
		e.keeper.lost()
	}
	e.state.Answered(o.action, o.answer, o.err, e.cfg.Now())
}

// act does what follows from a batch. It says whether a draining engine has nothing left.
func (e *Engine) act(ctx context.Context) bool {
	if !e.ready && e.caughtUp {
		e.ready = true
		e.log.Info("following the stream", "event", e.state.Position(), "rollouts", e.state.Count())
		if e.cfg.Ready != nil {
			e.cfg.Ready()
		}
	}
	if e.ready && !e.draining && !e.state.Idle() {
		e.keeper.want()
	}
	now := e.cfg.Now()
	until := e.keeper.heldUntil()
	leads := e.ready && e.state.Lease().Holder == e.cfg.Holder && now.Before(until)
	switch {
	case leads && !e.leading:
		e.lead(ctx)
	case !leads && e.leading:
		e.standBy("the lease is another's, or has run out")
	}
	e.again = time.Time{}
	if !e.leading {
		return e.draining && e.ready
	}
	due, again := e.state.Next(now)
	for _, a := range due {
		e.send(a)
	}
	e.again = earliest(again, until)
	if e.draining {
		return e.state.PendingCount() == 0 && e.state.InFlight() == 0
	}
	e.summarise(now)
	return false
}

func earliest(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// reign is the time in which an engine walks.
type reign struct {
	ctx    context.Context
	cancel context.CancelFunc
	fence  uint64
	parts  sync.WaitGroup
	plans  *planner
}

// lead begins to walk.
func (e *Engine) lead(ctx context.Context) {
	e.leading = true
	r := &reign{fence: e.state.Lease().Fence}
	r.ctx, r.cancel = context.WithCancel(ctx)
	e.reign = r
	e.log.Info("walking", "holder", e.cfg.Holder, "fence", r.fence, "rollouts", e.state.Count(), "pending", e.state.PendingCount())
	if e.cfg.Leads != nil {
		r.parts.Go(func() { e.cfg.Leads(r.ctx) })
	}
	if e.cfg.Reader != nil {
		r.plans = newPlanner(e.cfg, e.client, r.fence)
		r.parts.Go(func() { r.plans.run(r.ctx) })
	}
	e.planned = time.Time{}
}

// standBy ends walking: what is under way is left to whoever walks next.
func (e *Engine) standBy(why string) {
	if !e.leading {
		return
	}
	e.leading = false
	r := e.reign
	r.cancel()
	r.parts.Wait()
	if list := e.state.Pending(); len(list) > 0 {
		e.log.Warn("steps are under way and stay so until they are settled", "steps", stepNames(list), "number", len(list))
	}
	e.state.Forget()
	e.log.Info("standing by", "holder", e.cfg.Holder, "fence", r.fence, "reason", why)
}

// send sends a command, beside the loop.
func (e *Engine) send(a walk.Action) {
	r := e.reign
	trace, answered := e.trace(a)
	r.parts.Go(func() {
		options := dispatch.Options{Fence: r.fence, Deadline: e.cfg.Now().Add(commandTerm), Trace: trace}
		if a.Expected != 0 {
			options.Expected = &a.Expected
		}
		beforeSending(a)
		answer, err := e.client.Within(commandPatience).Send(r.ctx, a.Payload, options)
		afterAnswer(a)
		answered(answer, err)
		select {
		case e.outcomes <- outcome{action: a, answer: answer, err: err, fence: r.fence}:
		case <-r.ctx.Done():
		}
	})
}

// beforeSending and afterAnswer are the moments around a command of a step.
func beforeSending(a walk.Action) {
	switch a.Payload.(type) {
	case commands.BeginStep:
		failpoint.Pass(failpoint.EngineBeforeBegin)
	case commands.EndStep:
		failpoint.Pass(failpoint.EngineBeforeEnd)
	}
}

func afterAnswer(a walk.Action) {
	switch a.Payload.(type) {
	case commands.BeginStep:
		failpoint.Pass(failpoint.EngineAfterBegin)
	case commands.EndStep:
		failpoint.Pass(failpoint.EngineAfterEnd)
	}
}

// planInterval is how often tracks are looked at though nothing has happened: what kept one from planning may have passed with time.
const planInterval = 30 * time.Second

// summarise tells the planner what it may have to do, merged with what it has not got to yet.
func (e *Engine) summarise(now time.Time) {
	if e.reign.plans == nil {
		return
	}
	s := summary{position: e.state.Position(), takeBack: e.state.ToTakeBack(), half: e.state.HalfPlanned()}
	s.tracks = e.state.ToPlan() || e.state.PlansByItself() && now.Sub(e.planned) >= planInterval
	if s.tracks {
		e.planned = now
	}
	if !s.none() {
		e.reign.plans.tell(s)
	}
	if e.state.PlansByItself() {
		e.again = earliest(e.again, e.planned.Add(planInterval))
	}
}
