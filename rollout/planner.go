package rollout

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/cockroachdb/errors"

	"catenary/chain"
	"catenary/commands"
	"catenary/es"
	"catenary/es/dispatch"
	"catenary/events"
	"catenary/rollout/plan"
	"catenary/rollout/walk"
)

// summary says what the planner may have to do. Summaries are merged until it gets to them.
type summary struct {
	// position is the last event that is behind it.
	position uint64
	// tracks says that tracks are to be looked at.
	tracks bool
	// takeBack lists the rollouts that are to be taken back.
	takeBack []string
	// half lists the plans that were begun and not closed, as of the position.
	half []walk.HalfPlan
}

func (s summary) merged(o summary) summary {
	if o.position >= s.position {
		s.position, s.half = o.position, o.half
	}
	s.tracks = s.tracks || o.tracks
	for _, id := range o.takeBack {
		if !slices.Contains(s.takeBack, id) {
			s.takeBack = append(s.takeBack, id)
		}
	}
	return s
}

func (s summary) none() bool { return !s.tracks && len(s.takeBack) == 0 && len(s.half) == 0 }

// Waits between two tries of the planner.
const (
	firstPlanRetry = time.Second
	lastPlanRetry  = 15 * time.Second
)

// planner makes the plans that nobody asks for, one after another.
type planner struct {
	cfg    Config
	log    *slog.Logger
	client *commands.Client
	fence  uint64
	// closed holds the rollouts whose plan it has written down to the end.
	closed map[string]bool
	// settled holds the rollouts that need no way back any more.
	settled map[string]bool
	// held says until when those are left alone that can't be taken back yet.
	held map[string]time.Time
	// written is the last event that its own commands have led to. What it reads MUST show that: else it would plan the same twice.
	written uint64

	mu   sync.Mutex
	next summary
	wake chan struct{}
}

func newPlanner(c Config, client *commands.Client, fence uint64) *planner {
	return &planner{
		cfg: c, log: c.Logger.With("part", "planner"), client: client.Within(commandPatience), fence: fence, closed: map[string]bool{}, settled: map[string]bool{}, held: map[string]time.Time{},
		wake: make(chan struct{}, 1),
	}
}

// tell merges a summary with what the planner has not got to yet.
func (p *planner) tell(s summary) {
	p.mu.Lock()
	p.next = p.next.merged(s)
	p.mu.Unlock()
	signal(p.wake)
}

func (p *planner) take() summary {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.next
	p.next = summary{}
	return s
}

// run plans until the context ends. What could not be done is tried again, together with what has come meanwhile.
func (p *planner) run(ctx context.Context) {
	pace := backoff.NewExponentialBackOff()
	pace.InitialInterval, pace.MaxInterval = firstPlanRetry, lastPlanRetry
	for {
		select {
		case <-ctx.Done():
			return
		case <-p.wake:
		}
		for s := p.take(); !s.none(); s = s.merged(p.take()) {
			left, err := p.serve(ctx, s)
			if err == nil {
				pace.Reset()
				break
			}
			if ctx.Err() != nil {
				return
			}
			wait := min(lastPlanRetry, max(firstPlanRetry, pace.NextBackOff())) // its waits are longer or shorter by half, by chance
			p.log.Warn("can't plan, trying again", "after", wait.Round(time.Millisecond), "error", err)
			pause(ctx, wait)
			s = left
		}
	}
}

// readPatience bounds the wait until the chain shows what the engine has read.
const readPatience = 30 * time.Second

// serve does what a summary says, and gives what of it is left when that fails.
func (p *planner) serve(ctx context.Context, s summary) (summary, error) {
	for len(s.half) > 0 {
		if err := p.giveUp(ctx, s.half[0]); err != nil {
			return s, err
		}
		s.half = s.half[1:]
	}
	var left []string
	var failed error
	for i, id := range s.takeBack {
		if err := p.await(ctx, s.position); err != nil {
			s.takeBack = append(left, s.takeBack[i:]...)
			return s, errors.CombineErrors(failed, err)
		}
		if err := p.takeBack(ctx, id); err != nil { // the others go back all the same
			left, failed = append(left, id), errors.CombineErrors(failed, errors.Wrapf(err, "take rollout %s back", id))
		}
	}
	s.takeBack = left
	if s.tracks {
		err := p.await(ctx, s.position)
		if err == nil {
			err = p.tracks(ctx)
		}
		s.tracks, failed = err != nil, errors.CombineErrors(failed, err)
	}
	return s, failed
}

// giveUp gives up a plan that nobody writes down to its end: the planner writes one after another, and this is none of those it has closed. One
// that has gone on since it was seen is left alone.
func (p *planner) giveUp(ctx context.Context, half walk.HalfPlan) error {
	if p.closed[half.Rollout] {
		return nil
	}
	abort := commands.AbortRollout{ID: half.Rollout, Reason: "its plan was not written down to the end"}
	answer, err := p.send(ctx, abort, &half.Version)
	if err == nil && answer.Status != es.StatusConflict {
		err = refusal(abort, answer, "rollout-final")
	}
	return err
}

// await waits until the chain shows an event, and all that the planner has written itself.
func (p *planner) await(ctx context.Context, position uint64) error {
	ctx, cancel := context.WithTimeout(ctx, readPatience)
	defer cancel()
	return p.cfg.Reader.WaitFor(ctx, max(position, p.written))
}

// takeBack plans a rollout that takes another one back. Who and why stand in its own record, and in the veto of what it carried.
func (p *planner) takeBack(ctx context.Context, id string) error {
	if p.settled[id] || p.cfg.Now().Before(p.held[id]) {
		return nil
	}
	made, err := plan.Back(ctx, p.cfg.Reader, id, p.cfg.Now().UTC())
	switch {
	case errors.Is(err, plan.ErrNothingChanged):
		p.log.Info("nothing to take back", "rollout", id)
		p.settled[id] = true
		return nil
	case err != nil:
		return err
	}
	if len(made.Steps) == 0 && made.Held() {
		p.log.Info("nothing can be taken back yet", "rollout", id, "reason", made.LeftOut[0].Why)
		p.held[id] = p.cfg.Now().Add(planInterval)
		return nil
	}
	if len(made.Steps) == 0 {
		p.log.Info("nothing to take back: all places have gone on", "rollout", id)
		p.settled[id] = true
		return nil
	}
	if err := p.record(ctx, plan.TrackPlan{Plan: made}); err != nil {
		return err
	}
	p.log.Warn("rollout has failed and is taken back", "rollout", id, "by", made.ID, "steps", len(made.Steps), "reason", made.Head.Reason)
	p.settled[id] = true
	return nil
}

// tracks plans for every track that has something due.
func (p *planner) tracks(ctx context.Context) error {
	page, err := chain.List(ctx, p.cfg.Reader, chain.Tracks, chain.Query{})
	if err != nil {
		return err
	}
	var failed error
	for _, e := range page.Entries {
		if e.Value.On == events.OnManual {
			continue
		}
		if err := p.track(ctx, e.Value); err != nil { // the others plan all the same
			failed = errors.CombineErrors(failed, errors.Wrapf(err, "track %s", e.Value.Track))
		}
	}
	return failed
}

func (p *planner) track(ctx context.Context, t chain.Track) error {
	made, hold, err := plan.ForTrack(ctx, p.cfg.Reader, t, plan.Asked{Now: p.cfg.Now().UTC()})
	if err != nil {
		return err
	}
	if hold != nil {
		p.log.Debug("a track does not plan", "track", t.Track, "reason", hold.Reason, "waits for", hold.WaitsFor)
		for _, m := range made.Placed {
			release := commands.ReleaseMerge{Repository: m.Repository, Branch: m.Branch, Commit: m.Commit, Reason: "what was built of it stands everywhere already, or something newer does"}
			if err := p.done(ctx, release); err != nil {
				return err
			}
		}
		return nil
	}
	if err := p.record(ctx, made); err != nil {
		return err
	}
	p.log.Info("planned for a track", "track", t.Track, "rollout", made.ID, "steps", len(made.Steps), "merges", len(made.Merges))
	return nil
}

// record writes a plan down. The merges that it carries are its own before it is one.
func (p *planner) record(ctx context.Context, made plan.TrackPlan) error {
	list, err := made.Commands(&made.Ends)
	if err != nil {
		return err
	}
	for _, payload := range list {
		if err := p.done(ctx, payload, "not-waiting"); err != nil {
			return err // what is written of it is half a plan, which is given up
		}
	}
	p.closed[made.ID] = true
	return nil
}

// done sends a command and demands that it is done, or refused for one of some reasons.
func (p *planner) done(ctx context.Context, payload es.Payload, fine ...string) error {
	answer, err := p.send(ctx, payload, nil)
	if err != nil {
		return err
	}
	return refusal(payload, answer, fine...)
}

// send sends a command. What got no answer is not done any more by the time that is known: a part of a plan that came later would be half of one,
// which nobody has seen begin.
func (p *planner) send(ctx context.Context, payload es.Payload, expected *uint64) (es.Answer, error) {
	answer, err := p.client.Send(ctx, payload, dispatch.Options{Fence: p.fence, Expected: expected, Deadline: p.cfg.Now().Add(commandTerm)})
	p.written = max(p.written, answer.Sequence)
	return answer, err
}

// refusal gives an error for what was neither done nor refused for one of some reasons.
func refusal(payload es.Payload, answer es.Answer, fine ...string) error {
	if answer.Status == es.StatusAccepted || answer.Status == es.StatusUnchanged {
		return nil
	}
	why := answer.Error
	if why == nil {
		why = &es.AnswerError{}
	}
	if slices.Contains(fine, why.Code) {
		return nil
	}
	return errors.Newf("%s %s: %s (%s): %s", payload.Ref(), payload.Verb(), answer.Status, why.Code, why.Message)
}
