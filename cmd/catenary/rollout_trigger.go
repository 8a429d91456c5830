package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/cockroachdb/errors"
	"github.com/spf13/cobra"

	"catenary/chain"
	"catenary/commands"
	"catenary/events"
	"catenary/rollout/plan"
)

const triggerHelp = `Trigger lets a track plan what it has due, and starts that: also a track that plans only when somebody asks, and what came to nothing before.

What holds the track holds the trigger too: a rollout of its own under way, a build that has not published yet, a freeze or a veto on all that would
change. It is refused then, and the reason is said. Wait for the end with: catenary rollout wait ID`

func (a *app) rolloutTriggerCommand() *cobra.Command {
	var reason, onBehalfOf string
	var wait time.Duration
	var dryRun bool
	cmd := &cobra.Command{
		Use: "trigger TRACK", Short: "Let a track plan now, and start that", Long: triggerHelp, Args: takes("TRACK"), ValidArgsFunction: a.completeKind("track"),
		Example: `  catenary rollout trigger shops --reason "the release of May"`,
	}
	output := formatFlag(cmd, formatTable)
	flags := cmd.Flags()
	flags.StringVar(&reason, "reason", "", "why, in a `sentence`")
	flags.BoolVar(&dryRun, "dry-run", false, "only show the plan")
	flags.StringVar(&onBehalfOf, "on-behalf-of", "", "`name` of the person or system you act for")
	addWait(flags, &wait, defaultWait, "`span` of time to wait until it can be read, such as 10s; false for none")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return a.read(cmd.Context(), func(ctx context.Context, s *session) error {
			made, err := a.trackPlan(ctx, s, args[0], plan.Asked{Now: a.Now().UTC(), ByPerson: true, Reason: reason})
			if err != nil {
				return err
			}
			if err := a.showRolloutPlan(s, *output, made.Plan); err != nil || dryRun {
				return err
			}
			if _, err := s.writePlan(ctx, made, nil, onBehalfOf); err != nil {
				return err
			}
			last, err := s.mustDo(ctx, "start rollout "+made.ID, commands.StartRollout{ID: made.ID, Reason: reason}, onBehalfOf)
			var refused *notDone
			if errors.As(err, &refused) && refused.answer.Error != nil && refused.answer.Error.Code == "approval-needed" {
				a.sayf("planned as rollout %s; it waits for somebody to approve it, and to start it then", printable(made.ID))
				return nil
			}
			if err != nil {
				return err
			}
			a.awaitShown(ctx, s, last, wait)
			a.sayf("%s", a.paint(green, printable(fmt.Sprintf("started as rollout %s, event %d; see catenary rollout watch %s", made.ID, last, shellWord(made.ID)))))
			return nil
		})
	}
	return cmd
}

// trackPlan gives what a track has due. A hold is an error marked errRefused that names it.
func (a *app) trackPlan(ctx context.Context, s *session, name string, asked plan.Asked) (plan.TrackPlan, error) {
	t, err := chain.Get(ctx, s.reader, chain.Tracks, name)
	switch {
	case err != nil:
		return plan.TrackPlan{}, err
	case !t.Value.Stands():
		return plan.TrackPlan{}, errors.Mark(errors.Newf("track %s has ended", name), errRefused)
	}
	made, hold, err := plan.ForTrack(ctx, s.reader, t.Value, asked)
	if err != nil {
		return made, explained(err)
	}
	if hold != nil {
		return made, errors.Mark(&heldTrack{track: name, hold: *hold}, errRefused)
	}
	return made, nil
}

// heldTrack says why a track does not plan.
type heldTrack struct {
	track string
	hold  events.Hold
}

// Error names the reason and what has to happen.
func (e *heldTrack) Error() string {
	text := fmt.Sprintf("track %s does not plan (%s): it waits for %s", e.track, e.hold.Reason, e.hold.WaitsFor)
	if !e.hold.Until.IsZero() {
		text += ", until " + e.hold.Until.Format(time.RFC3339)
	}
	return text
}

func (a *app) trackWhyCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "why NAME", Short: "Say why a track does not plan", Args: takes("NAME"), ValidArgsFunction: a.completeKind("track"), Example: "  catenary track why shops",
		Long: `Why says why a track does not plan by itself, as the engine sees it, or what it is about to plan. In JSON that is {reason, waits-for, until}, or the plan.`,
	}
	output := formatFlag(cmd, formatTable)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return a.read(cmd.Context(), func(ctx context.Context, s *session) error {
			made, err := a.trackPlan(ctx, s, args[0], plan.Asked{Now: a.Now().UTC()})
			var held *heldTrack
			switch {
			case errors.As(err, &held):
			case err != nil:
				return err
			default:
				return a.showRolloutPlan(s, *output, made.Plan)
			}
			w := standstill{Reason: held.hold.Reason, WaitsFor: held.hold.WaitsFor, Until: held.hold.Until}
			body, err := json.Marshal(w)
			if err != nil {
				return errors.Wrap(err, "encode a reason")
			}
			p := a.newPrinter(*output, "TRACK", "REASON", "WAITS FOR", "UNTIL")
			if err := p.add(line{name: strings.TrimSpace(args[0]), json: body, cells: func() []string {
				return []string{args[0], w.Reason, w.WaitsFor, showTime(w.Until, s.zone)}
			}}); err != nil {
				return err
			}
			return p.end()
		})
	}
	return cmd
}
