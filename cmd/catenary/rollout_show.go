package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/cockroachdb/errors"
	"github.com/spf13/cobra"

	"catenary/chain"
	"catenary/events"
	"catenary/rollout/plan"
)

// mostShown is how many steps of a tier a person is shown; JSON has all.
const mostShown = 20

// showRolloutPlan shows a plan as a tree, or as JSON.
func (a *app) showRolloutPlan(s *session, f format, p plan.Plan) error {
	body, err := json.Marshal(p)
	if err != nil {
		return errors.Wrap(err, "encode the plan")
	}
	if f != formatTable {
		return a.printOne(f, nil, line{name: p.ID, json: body, cells: func() []string { return nil }})
	}
	t := tree{app: a}
	t.linef("rollout %s", p.ID)
	if p.Head.Reverts != "" {
		t.linef("  takes back %s", p.Head.Reverts)
	}
	if !p.Head.Restores.IsZero() {
		t.linef("  goes back to %s", showTime(p.Head.Restores, s.zone))
	}
	for _, c := range p.Head.Commits {
		t.linef("  %s at %s", c.Repository, shortCommit(c.Commit))
	}
	rest := p.Steps
	for _, tier := range p.Tiers {
		t.linef("  tier %s: %s", tier.Name, counted(tier.Steps, "step"))
		for i, step := range rest[:tier.Steps] {
			if i == mostShown {
				t.linef("    and %d more", tier.Steps-mostShown)
				break
			}
			t.linef("    %s", plannedLine(step))
		}
		rest = rest[tier.Steps:]
	}
	t.linef("  right already: %d", p.Right)
	if p.Ends > 0 {
		t.linef("  ends %s: confirm with --confirm-ends %d", counted(p.Ends, "assignment"), p.Ends)
	}
	t.left(p.LeftOut, s.zone)
	t.list("not recorded as published", len(p.Missing), func(i int) string {
		return fmt.Sprintf("%s of %s, on %s", p.Missing[i].Version, p.Missing[i].Module, counted(p.Missing[i].Places, "node"))
	})
	t.list("commits since", len(p.Since), func(i int) string {
		return fmt.Sprintf("%s %s %s", shortCommit(p.Since[i].Commit), showTime(p.Since[i].Merged, s.zone), s.names(p.Since[i].Author))
	})
	switch {
	case len(p.Steps) > 0:
	case len(p.LeftOut) > 0:
		t.linef("nothing can change: nothing is recorded")
	default:
		t.linef("nothing to change: nothing is recorded")
	}
	return t.print()
}

// tree gathers lines that are shown to a person.
type tree struct {
	app  *app
	text strings.Builder
}

func (t *tree) linef(format string, args ...any) {
	t.text.WriteString(printable(fmt.Sprintf(format, args...)) + "\n")
}

// list shows the first items under a title.
func (t *tree) list(title string, n int, item func(int) string) {
	if n == 0 {
		return
	}
	t.linef("  %s: %d", title, n)
	for i := range min(n, mostShown) {
		t.linef("    %s", item(i))
	}
	if n > mostShown {
		t.linef("    and %d more", n-mostShown)
	}
}

func (t *tree) print() error {
	_, err := t.app.Stdout.Write([]byte(t.text.String()))
	return errors.Wrap(err, "write the output")
}

func counted(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	if strings.HasSuffix(noun, "s") {
		noun += "e"
	}
	return count(n) + " " + noun + "s"
}

func plannedLine(s events.PlannedStep) string {
	text := fmt.Sprintf("%s %s: %s", s.Node, s.Module, fromTo(s.Before, s.After, s.Refresh))
	var after []string
	for _, w := range s.WaitsFor {
		after = append(after, w.StepName.String())
	}
	if len(after) > 3 {
		after = append(after[:3], fmt.Sprintf("%d more", len(after)-3))
	}
	if len(after) > 0 {
		text += ", after " + strings.Join(after, ", ")
	}
	return text
}

func fromTo(before, after *events.Version, refresh bool) string {
	if refresh {
		return showVersion(before) + ", told anew if something changes"
	}
	return showVersion(before) + " → " + showVersion(after)
}

func showVersion(v *events.Version) string {
	switch {
	case v == nil:
		return "nothing"
	case v.IsZero():
		return v.Build
	}
	return showReference(v.Reference)
}

// left shows what is left out: each reason once, with the places that it holds for.
func (t *tree) left(list []plan.LeftOut, zone *time.Location) {
	var reasons []string
	places := map[string][]string{}
	for _, l := range list {
		reason := l.Reason + ": " + l.Why
		if !l.Until.IsZero() {
			reason += ", until " + showTime(l.Until, zone)
		}
		if places[reason] == nil {
			reasons = append(reasons, reason)
		}
		places[reason] = append(places[reason], l.Node+" "+l.Module)
	}
	if len(list) > 0 {
		t.linef("  left out: %d", len(list))
	}
	for _, reason := range reasons {
		t.linef("    %s", reason)
		for i, place := range places[reason] {
			if i == mostShown {
				t.linef("      and %d more", len(places[reason])-mostShown)
				break
			}
			t.linef("      %s", place)
		}
	}
}

func (a *app) rolloutListCommand() *cobra.Command {
	cmd := a.listCommand(kindOf("rollout"))
	cmd.Use, cmd.Short = "ls [ID...]", "List rollouts: those that are not final, or --all"
	return cmd
}

// kindOf gives a kind by what one of its records is called.
func kindOf(singular string) kind {
	list := kinds()
	return list[slices.IndexFunc(list, func(k kind) bool { return k.singular == singular })]
}

func (a *app) rolloutShowCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "show ID", Short: "Show a rollout with all its steps", Args: takes("ID"), ValidArgsFunction: a.completeKind("rollout"),
		Long: `Show gives a rollout with its tiers and steps: what changes from what to what, when each node was told, what it was handed, what became of it and what
it hands on. Of a tier the first 20 steps are shown; -o json has all of them.

In JSON the rollout's record comes with tiers[].nodes, with steps[] (tier, node, module, state, and where there are some attempt, by, reason, sent, reported,
ended, driver, inputs, outputs) and with changed[] (node, module, before, after). A step's state is waiting, pending, done, failed, unknown or skipped.`,
		Example: "  catenary rollout show 20260501-120000-3f9a\n  catenary rollout show 20260501-120000-3f9a -o json",
	}
	output := formatFlag(cmd, formatTable)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return a.read(cmd.Context(), func(ctx context.Context, s *session) error {
			whole, err := s.reader.Rollout(ctx, args[0])
			if err != nil {
				return err
			}
			if *output == formatTable {
				return a.showRollout(s, whole)
			}
			body, err := json.Marshal(whole)
			if err != nil {
				return errors.Wrap(err, "encode the rollout")
			}
			return a.printOne(*output, nil, line{name: whole.ID, json: body, cells: func() []string { return nil }})
		})
	}
	return cmd
}

func (a *app) showRollout(s *session, whole chain.WholeRollout) error {
	t := tree{app: a}
	t.linef("rollout %s: %s", whole.ID, whole.State)
	for _, fact := range [][2]string{
		{"reason", whole.Reason}, {"why", whole.Why}, {"takes back", whole.Reverts}, {"taken back by", whole.RevertedBy}, {"goes back to", showTime(whole.Times.Restores, s.zone)},
		{"supersedes", strings.Join(whole.Supersedes, ", ")}, {"superseded by", whole.SupersededBy}, {"track", whole.Track}, {"strategy", whole.Strategy},
		{"planned", showTime(whole.Times.Planned, s.zone)}, {"started", showTime(whole.Times.Started, s.zone)}, {"ended", showTime(whole.Times.Ended, s.zone)},
	} {
		if fact[1] != "" {
			t.linef("  %s: %s", fact[0], fact[1])
		}
	}
	for _, tier := range whole.Tiers {
		t.linef("  tier %s: %s", tier.Name, tierLine(tier.Tier))
		shown := 0
		for _, step := range whole.All {
			if step.Tier != tier.Name {
				continue
			}
			if shown++; shown > mostShown {
				t.linef("    and %d more", tier.Counts.Steps-mostShown)
				break
			}
			state := stepState(step, s.zone)
			if !whole.Stands() && step.State() == events.StepWaiting {
				state = "not begun"
			}
			t.linef("    %s %s: %s: %s", step.Node, step.Module, fromTo(step.Before, step.After, step.Refresh), state)
			t.handed(step)
		}
	}
	return t.print()
}

// handed shows what a step was handed and hands on.
func (t *tree) handed(step chain.Step) {
	for _, h := range step.Inputs {
		t.linef("      handed by %s: %s", h.StepName, handedValues(h))
	}
	if len(step.Outputs) > 0 {
		t.linef("      hands on: %s", handedValues(events.Handed{Values: step.Outputs}))
	}
}

// handedValues gives values in order, each as NAME=VALUE, with what has become of it.
func handedValues(h events.Handed) string {
	var words []string
	for _, name := range slices.Sorted(maps.Keys(h.Values)) {
		word := name + "=" + h.Values[name]
		if slices.Contains(h.Changed, name) {
			word += " (changed)"
		}
		words = append(words, word)
	}
	for _, name := range h.Changed {
		if _, there := h.Values[name]; !there {
			words = append(words, name+" (gone)")
		}
	}
	return strings.Join(words, ", ")
}

func tierLine(t chain.Tier) string {
	c := t.Counts
	words := []string{counted(c.Steps, "step")}
	for _, part := range []struct {
		n    int
		word string
	}{{c.Pending, "pending"}, {c.Done, "done"}, {c.Failed, "failed"}, {c.Unknown, "unknown"}, {c.Skipped, "skipped"}} {
		if part.n > 0 {
			words = append(words, fmt.Sprintf("%d %s", part.n, part.word))
		}
	}
	if t.Policy.Approval && !t.Approved {
		words = append(words, "waits for approval")
	}
	return strings.Join(words, ", ")
}

func stepState(s chain.Step, zone *time.Location) string {
	text := s.State()
	if s.Pending() {
		text += " since " + showTime(s.Sent, zone)
	}
	if s.By != "" && !s.Again {
		text += " (" + s.By + ")"
	}
	if s.Reason != "" {
		text += ": " + s.Reason
	}
	return text
}
