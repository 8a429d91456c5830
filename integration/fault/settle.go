package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"catenary/agent/desk"
	"catenary/audit"
	"catenary/commands"
	"catenary/es/natskv"
	"catenary/es/project"
	"catenary/events"
	"catenary/integration/fault/check"
	"catenary/internal/topology"
	"catenary/projections"
)

// Bounds within which everything has to be well again after the faults. They are wide: what is bounded here is "for ever", on a machine that may be
// busy with fifty other things. How long it takes is measured apart.
const (
	writeBound  = 2 * time.Minute
	answerBound = 2 * time.Minute
	catchBound  = 2 * time.Minute
	agentBound  = 2 * time.Minute
	// lateBound is for what is looked at after something else was late: the run has found something, and what else is not well is told besides.
	lateBound = 10 * time.Second
)

// settle waits until everything is well again, and gives what is not. It does what the guides tell an operator to do, and counts that.
func (s *striker) settle(ctx context.Context) ([]check.Violation, error) {
	var found []check.Violation
	within := func(what string, bound time.Duration, so func(context.Context) (bool, string)) {
		if ctx.Err() != nil || s.rig.planted != "" && len(found) > 0 {
			return // a bug that is found need not be looked for any more
		}
		if len(found)+len(s.problems) > 0 {
			bound = min(bound, lateBound)
		}
		began, why := time.Now(), ""
		err := s.rig.await(ctx, what, bound, func() bool {
			bounded, cancel := context.WithTimeout(ctx, 2*tryPatience)
			defer cancel()
			var done bool
			done, why = so(bounded)
			return done
		})
		if err != nil {
			found = append(found, check.Violation{Invariant: "I8", Text: fmt.Sprintf("%s: not within %s after the faults: %s", what, bound, why)})
			return
		}
		s.tally.took(what, time.Since(began))
	}
	nc, err := s.rig.asOperator()
	if err != nil {
		return nil, err
	}
	defer nc.Close()
	within("a command is accepted", writeBound, s.writable)
	within("every command is answered", answerBound, s.answered)
	within("every view is caught up", catchBound, func(ctx context.Context) (bool, string) { return s.viewsCaughtUp(ctx, nc) })
	within("every agent is converged", agentBound, func(ctx context.Context) (bool, string) { return agentsConverged(ctx, nc) })
	within("every rollout is over", agentBound, s.rolloutsOver)
	// A copy that a server has recovered before its bucket may not ask for half a minute.
	within("every copy is caught up", catchBound, s.copiesCaughtUp)
	if len(s.harmed) > 0 {
		within("what was harmed is built anew", catchBound, s.wholeAgain)
	}
	// What agents and the engine have reported since is in the buckets too.
	within("every view is caught up again", catchBound, func(ctx context.Context) (bool, string) { return s.viewsCaughtUp(ctx, nc) })
	return found, nil
}

// writable says whether a new command is accepted.
func (s *striker) writable(ctx context.Context) (bool, string) {
	r, err := s.crowd.note(commands.RegisterNode{Node: s.probes(), ManagedBy: events.ManagedByExternal}, nil)
	if err != nil {
		return false, err.Error()
	}
	if s.crowd.try(ctx, r) == check.Done {
		return true, ""
	}
	return false, fmt.Sprintf("the answer is %+v", r.Tries[0].Answer)
}

// probes gives a name that was not used before.
func (s *striker) probes() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.storms++
	return fmt.Sprintf("probe-%d", s.storms)
}

// answered sends again what was not answered.
func (s *striker) answered(ctx context.Context) (bool, string) {
	open := s.crowd.open()
	for _, r := range open {
		s.crowd.try(ctx, r)
		if ctx.Err() != nil {
			break
		}
	}
	left := s.crowd.open()
	if len(left) == 0 {
		return true, ""
	}
	return false, fmt.Sprintf("%d are open, such as %s %s of %s", len(left), left[0].Verb, left[0].ID, left[0].Ref)
}

// viewsCaughtUp says whether all views are at the end of the stream. A view that has stopped over a bucket that was harmed is built anew.
func (s *striker) viewsCaughtUp(ctx context.Context, nc *nats.Conn) (bool, string) {
	queries := audit.NewClient(nc, nil)
	status, err := queries.Projections(ctx)
	if err != nil {
		return false, err.Error()
	}
	var why []string
	for _, v := range status.Views {
		if v.State == project.StateRunning && v.Behind == 0 {
			continue
		}
		why = append(why, fmt.Sprintf("%s is %s, %d behind, %s", v.View, v.State, v.Behind, v.Reason))
		s.mu.Lock()
		harmed := s.harmed[v.View]
		s.mu.Unlock()
		if v.State != project.StateStopped || !harmed {
			continue
		}
		s.tally.add("operator: built a view anew", 1)
		if _, err := queries.Rebuild(ctx, audit.RebuildQuestion{View: v.View, RebuildOptions: project.RebuildOptions{Anew: true}}, nil); err != nil {
			why = append(why, err.Error())
		}
	}
	tail, err := queries.Tail(ctx)
	if err != nil {
		return false, err.Error()
	}
	if len(why) == 0 && status.Tail != tail.Sequence {
		why = append(why, fmt.Sprintf("the projector knows of %d events of %d", status.Tail, tail.Sequence))
	}
	return len(why) == 0, strings.Join(why, "; ")
}

// copiesCaughtUp says whether every copy has come as far as its bucket.
func (s *striker) copiesCaughtUp(ctx context.Context) (bool, string) {
	ledger, err := s.rig.asLedger(ctx)
	if err != nil {
		return false, err.Error()
	}
	defer ledger.Close()
	people, err := s.rig.asOperator()
	if err != nil {
		return false, err.Error()
	}
	defer people.Close()
	generations, err := natskv.OpenGenerations(ctx, ledger.Conn, topology.Options{Replicas: s.rig.shape.Servers}, nil)
	if err != nil {
		return false, err.Error()
	}
	for _, v := range projections.All() {
		p, err := generations.Pointer(ctx, v.Name())
		if err != nil {
			return false, err.Error()
		}
		var last [2]uint64
		for i, nc := range []*nats.Conn{ledger.Conn, people} {
			b, err := natskv.Open(ctx, nc, p.Bucket)
			if err != nil {
				return false, err.Error()
			}
			state, err := b.State(ctx)
			if err != nil {
				return false, err.Error()
			}
			last[i] = state.Last
		}
		if last[1] < last[0] {
			return false, fmt.Sprintf("the copy of %s is at %d of %d", p.Bucket, last[1], last[0])
		}
	}
	return true, ""
}

// wholeAgain says whether the product finds all buckets and copies as they should be. What it finds to differ in a bucket that was harmed,
// or in its copy, is built anew, as it says itself: a server may go on without telling that it can't read an older value any more.
func (s *striker) wholeAgain(ctx context.Context) (bool, string) {
	said, code := s.rig.tool(ctx, "verify")
	if code == 0 {
		return true, ""
	}
	for _, view := range slices.Sorted(maps.Keys(s.harmed)) {
		if !strings.Contains(said, view+" ") {
			continue
		}
		s.tally.add("operator: built a view anew", 1)
		if out, code := s.rig.tool(ctx, "rebuild", "--anew", view); code != 0 {
			return false, out
		}
	}
	return false, said
}

func agentsConverged(ctx context.Context, nc *nats.Conn) (bool, string) {
	nodes, err := desk.NewClient(nc.RequestMsgWithContext).Nodes(ctx)
	if err != nil {
		return false, err.Error()
	}
	var why []string
	for _, n := range nodes {
		if slices.Contains(agentNodes(), n.Node) && !n.Converged {
			why = append(why, fmt.Sprintf("%s is %s: %+v", n.Node, n.State, n.Status))
		}
	}
	return len(why) == 0, strings.Join(why, "; ")
}

// rolloutsOver says whether every rollout that was started has come to its end.
func (s *striker) rolloutsOver(ctx context.Context) (bool, string) {
	messages, _, err := s.rig.stream(ctx)
	if err != nil {
		return false, err.Error()
	}
	all, err := decoded(messages)
	if err != nil {
		return false, err.Error()
	}
	state := map[string]string{}
	for _, e := range all {
		switch e.Data.(type) {
		case events.RolloutStarted:
			state[e.Ref.Key] = e.Type
		case events.RolloutFinished, events.RolloutFailed, events.RolloutAborted, events.RolloutSuperseded:
			delete(state, e.Ref.Key)
		}
	}
	return len(state) == 0, fmt.Sprintf("%d are not: %v", len(state), state)
}
