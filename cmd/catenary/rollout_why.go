package main

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/cockroachdb/errors"
	"github.com/nats-io/nats.go"
	"github.com/spf13/cobra"

	"catenary/chain"
	"catenary/events"
	"catenary/internal/natsconn"
	"catenary/internal/topology"
	"catenary/rollout"
	"catenary/rollout/walk"
)

const whyHelp = `Why says why a rollout does not move: what holds it as a whole, and for each step that is not done whether it waits, is pending or has come to
another end. The engine that walks is asked, so that what it says holds now. When none walks, what the record says is shown, and a note says so.

In JSON each is {tier, node, module, reason, waits-for, until}; node and module are left out for what holds the rollout or a tier as a whole. The reasons
are stable words, such as tier, dependency, pending, concurrency, frozen, vetoed, offline, approval, bake, gate; not-begun where a rollout was over
before a step's turn came.`

func (a *app) rolloutWhyCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "why ID", Short: "Say what does not move, and why", Long: whyHelp, Args: takes("ID"), ValidArgsFunction: a.completeKind("rollout"),
		Example: "  catenary rollout why 20260501-120000-3f9a",
	}
	output := formatFlag(cmd, formatTable)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return a.read(cmd.Context(), func(ctx context.Context, s *session) error {
			whole, err := s.reader.Rollout(ctx, args[0])
			if err != nil {
				return err
			}
			list := still(whole)
			switch live, walked, err := s.blocked(ctx, whole.ID); {
			case err != nil && whole.Stands():
				a.sayf("no engine says what holds it now (%s): this is what the record says", printable(err.Error()))
			case err == nil && walked:
				list = append(live, ended(whole)...)
			}
			return a.showStill(s, *output, whole, list)
		})
	}
	return cmd
}

func (a *app) showStill(s *session, output format, whole chain.WholeRollout, list []standstill) error {
	p := a.newPrinter(output, "TIER", "NODE", "MODULE", "REASON", "WAITS FOR", "UNTIL")
	for _, w := range list {
		body, err := json.Marshal(w)
		if err != nil {
			return errors.Wrap(err, "encode a reason")
		}
		err = p.add(line{name: strings.Trim(w.Node+"."+w.Module, "."), json: body, cells: func() []string {
			return []string{w.Tier, w.Node, w.Module, w.Reason, w.WaitsFor, showTime(w.Until, s.zone)}
		}})
		if err != nil {
			return err
		}
	}
	if err := p.end(); err != nil {
		return err
	}
	if p.count == 0 {
		a.sayf("rollout %s is %s, and nothing of it waits", printable(whole.ID), whole.State)
	}
	return nil
}

// blockedPatience bounds one question to the engine, which answers within milliseconds.
const blockedPatience = 3 * time.Second

// blocked asks the engine that walks what of a rollout does not move, and whether it walks it. It gives an error when none answers.
func (s *session) blocked(ctx context.Context, id string) (list []standstill, walked bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, blockedPatience)
	defer cancel()
	for {
		a, err := s.blockedPage(ctx, id, len(list))
		if err != nil {
			return nil, false, err
		}
		list = append(list, standstills(a.Blocked)...)
		if len(a.Blocked) == 0 || len(list) >= a.Total {
			return list, a.Walked, nil
		}
	}
}

// blockedPage asks the engine for reasons, without the first of them.
func (s *session) blockedPage(ctx context.Context, id string, after int) (rollout.BlockedAnswer, error) {
	return s.askEngine(ctx, rollout.BlockedQuestion{Rollout: id, After: after})
}

// waits asks the engine that walks what rollouts wait for, by rollout; those that it does not walk are left out.
func (s *session) waits(ctx context.Context, ids []string) (map[string][]waits, error) {
	found := map[string][]waits{}
	for part := range slices.Chunk(ids, rollout.MaxBlockedRollouts) {
		a, err := s.askEngine(ctx, rollout.BlockedQuestion{Rollouts: part})
		if err != nil {
			return found, err
		}
		for _, r := range a.Rollouts {
			if !r.Walked {
				continue
			}
			found[r.Rollout] = []waits{}
			for _, w := range r.Waits {
				found[r.Rollout] = append(found[r.Rollout], waits{standstill: standstillOf(w.Blocked), Count: w.Count})
			}
		}
	}
	return found, nil
}

func (s *session) askEngine(ctx context.Context, q rollout.BlockedQuestion) (rollout.BlockedAnswer, error) {
	var a rollout.BlockedAnswer
	body, err := json.Marshal(q)
	if err != nil {
		return a, errors.Wrap(err, "encode the question")
	}
	m, err := natsconn.Request(ctx, s.conn, &nats.Msg{Subject: topology.QuerySubject(rollout.QuestionBlocked), Data: body})
	switch {
	case errors.Is(err, nats.ErrNoResponders):
		return a, errors.New("none walks")
	case err != nil:
		return a, err
	}
	if err := json.Unmarshal(m.Data, &a); err != nil {
		return a, errors.Wrap(err, "the engine's answer can't be read")
	}
	if a.Error != "" {
		return a, errors.New(a.Error)
	}
	return a, nil
}

func standstills(list []walk.Blocked) []standstill {
	found := make([]standstill, len(list))
	for i, b := range list {
		found[i] = standstillOf(b)
	}
	return found
}

func standstillOf(b walk.Blocked) standstill {
	return standstill{Tier: b.Tier, Node: b.Node, Module: b.Module, Reason: b.Reason, WaitsFor: b.WaitsFor, Until: b.Until}
}

// ended lists the steps that have come to another end than done, and of a final rollout those that never begin any more.
func ended(whole chain.WholeRollout) []standstill {
	var list []standstill
	for _, s := range whole.All {
		w := standstill{Tier: s.Tier, Node: s.Node, Module: s.Module}
		switch {
		case s.Pending(), s.Outcome == events.StepDone && !s.Again:
			continue
		case !s.Stands():
			w.Reason, w.WaitsFor = s.Outcome, s.Reason
		case whole.Stands():
			continue
		default:
			w.Reason, w.WaitsFor = notBegun, "nothing: the rollout is "+whole.State
		}
		list = append(list, w)
	}
	return list
}

// notBegun is the reason of a step that never begins any more, since its rollout is final.
const notBegun = "not-begun"

// pending lists the steps of which the node has not reported.
func pending(whole chain.WholeRollout) []standstill {
	var list []standstill
	for _, s := range whole.All {
		if s.Pending() {
			list = append(list, standstill{
				Tier: s.Tier, Node: s.Node, Module: s.Module, Reason: events.HoldPending, WaitsFor: "a report of the node that names rollout " + whole.ID,
			})
		}
	}
	return list
}

// standstill says of a rollout, or one of its steps, why it does not move.
type standstill struct {
	Tier     string    `json:"tier,omitempty"`
	Node     string    `json:"node,omitempty"`
	Module   string    `json:"module,omitempty"`
	Reason   string    `json:"reason"`
	WaitsFor string    `json:"waits-for,omitempty"`
	Until    time.Time `json:"until,omitzero"`
}

// still lists what does not move: the rollout as a whole first, then each step that has no good end.
func still(whole chain.WholeRollout) []standstill {
	if !whole.Stands() {
		return append(pending(whole), ended(whole)...)
	}
	list := ofTheWhole(whole)
	held := map[events.StepName]chain.Hold{}
	for _, h := range whole.Blocked {
		for _, n := range h.Steps {
			held[n] = h
		}
		if len(h.Steps) == 0 {
			list = append(list, standstill{Tier: h.Tier, Reason: h.Reason, WaitsFor: h.WaitsFor, Until: h.Until})
		}
	}
	entered, state := map[string]bool{}, map[events.StepName]string{}
	for _, t := range whole.Tiers {
		entered[t.Name] = !t.Entered.IsZero()
	}
	for _, s := range whole.All {
		state[events.StepName{Node: s.Node, Module: s.Module}] = s.State()
	}
	for _, s := range whole.All {
		n := events.StepName{Node: s.Node, Module: s.Module}
		w := standstill{Tier: s.Tier, Node: s.Node, Module: s.Module}
		h, isHeld := held[n]
		switch {
		case s.Outcome == events.StepDone && !s.Again:
			continue
		case s.Pending():
			w.Reason, w.WaitsFor = events.HoldPending, "a report of the node that names rollout "+whole.ID
		case !s.Stands():
			w.Reason, w.WaitsFor = s.Outcome, s.Reason
		case isHeld:
			w.Reason, w.WaitsFor, w.Until = h.Reason, h.WaitsFor, h.Until
		case !entered[s.Tier]:
			w.Reason, w.WaitsFor = events.HoldTier, "tier "+s.Tier+" to be entered"
		case waitsFor(s, state) != "":
			w.Reason, w.WaitsFor = events.HoldDependency, waitsFor(s, state)
		case s.Again:
			w.Reason, w.WaitsFor = events.HoldRetry, s.Reason
		default:
			w.Reason, w.WaitsFor = events.StepWaiting, "its turn"
		}
		list = append(list, w)
	}
	return list
}

func ofTheWhole(whole chain.WholeRollout) []standstill {
	switch whole.State {
	case chain.RolloutPlanning:
		return []standstill{{Reason: chain.RolloutPlanning, WaitsFor: "the rest of its plan"}}
	case chain.RolloutPlanned:
		return []standstill{{Reason: chain.RolloutPlanned, WaitsFor: "somebody to start it"}}
	case chain.RolloutWaitingApproval:
		return []standstill{{Reason: events.HoldApproval, WaitsFor: "somebody to approve it"}}
	case chain.RolloutPaused:
		return []standstill{{Reason: events.HoldPaused, WaitsFor: "somebody to resume it"}}
	}
	return nil
}

// waitsFor names the first step that a step waits for and that is not done.
func waitsFor(s chain.Step, state map[events.StepName]string) string {
	for _, w := range s.WaitsFor {
		if found := state[w.StepName]; found != events.StepDone {
			return w.StepName.String() + ", which is " + found
		}
	}
	return ""
}
