package main

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/cockroachdb/errors"
	"github.com/spf13/cobra"

	"catenary/chain"
	"catenary/events"
)

const waitHelp = `Wait waits until a rollout is final, and says by its exit code how it ended:

   0  it has finished, and every step is done or was skipped
   1  it has failed, was aborted or superseded; or it has finished although some step failed or nobody knows what became of it
   4  there is no such rollout
   9  it is not final when the time of --timeout is over; what it waits for is said

A node that never answers makes its step unknown, and that is never 0, whatever the failure budget of its tier accepts.`

// errNotWell means that a rollout has ended otherwise than well.
var errNotWell = errors.New("the rollout has not ended well")

// waitPause is how often a rollout is looked at. Nobody who waits for a delivery sees the difference to less.
const waitPause = 200 * time.Millisecond

func (a *app) rolloutWaitCommand() *cobra.Command {
	var patience time.Duration
	cmd := &cobra.Command{
		Use: "wait ID [--timeout SPAN]", Short: "Wait until a rollout is final", Long: waitHelp, Args: takes("ID"), ValidArgsFunction: a.completeKind("rollout"),
		Example: "  catenary rollout wait 20260501-120000-3f9a --timeout 20m",
	}
	cmd.Flags().DurationVar(&patience, "timeout", 0, "longest `span` to wait, such as 20m (default for ever)")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return a.follow(cmd.Context(), args[0], patience, func(context.Context, *session, chain.Rollout) error { return nil })
	}
	return cmd
}

const watchHelp = `Watch shows how a rollout goes, a line for each step and tier that has come further, until it is final. Its exit code is that of rollout wait.

To see all rollouts and the fleet: catenary watch`

func (a *app) rolloutWatchCommand() *cobra.Command {
	var patience time.Duration
	cmd := &cobra.Command{
		Use: "watch ID", Short: "Show how a rollout goes, until it is final", Long: watchHelp, Args: takes("ID"), ValidArgsFunction: a.completeKind("rollout"),
		Example: "  catenary rollout watch 20260501-120000-3f9a",
	}
	cmd.Flags().DurationVar(&patience, "timeout", 0, "longest `span` to watch, such as 20m (default for ever)")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		w := watching{app: a, shown: map[string]string{}}
		return a.follow(cmd.Context(), args[0], patience, w.look)
	}
	return cmd
}

// follow looks at a rollout whenever it has changed, until it is final or the time is over; zero means no bound.
func (a *app) follow(ctx context.Context, id string, patience time.Duration, look func(context.Context, *session, chain.Rollout) error) error {
	if patience < 0 {
		return usagef("--timeout is %s: give a span above zero", patience)
	}
	return a.withBus(ctx, slog.New(slog.DiscardHandler), func(ctx context.Context, s *session) error {
		waiting, cancel := ctx, context.CancelFunc(func() {})
		if patience > 0 {
			waiting, cancel = context.WithTimeout(ctx, patience)
		}
		defer cancel()
		tick := time.NewTicker(waitPause)
		defer tick.Stop()
		var revision uint64
		var last chain.Rollout
		for {
			e, err := chain.Get(waiting, s.reader, chain.Rollouts, id)
			switch {
			case err != nil && waiting.Err() != nil:
				return a.stillGoing(ctx, s, id, last, patience)
			case err != nil:
				return err
			case e.Revision != revision:
				revision, last = e.Revision, e.Value
				if err := look(ctx, s, last); err != nil {
					return err
				}
			}
			if !last.Stands() {
				return a.endedAs(last)
			}
			select {
			case <-waiting.Done():
				return a.stillGoing(ctx, s, id, last, patience)
			case <-tick.C:
			}
		}
	})
}

// stillGoing says what a rollout waits for whose time is over.
func (a *app) stillGoing(ctx context.Context, s *session, id string, last chain.Rollout, patience time.Duration) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	live, _, err := s.blocked(ctx, id)
	const most = 5
	for i, w := range live {
		if i == most {
			a.sayf("  and %d more: see catenary rollout why %s", len(live)-most, shellWord(id))
			break
		}
		a.sayf("  %s", printable(strings.TrimSpace(fmt.Sprintf("%s %s %s: %s", w.Node, w.Module, w.Reason, w.WaitsFor))))
	}
	err = errors.CombineErrors(errors.Newf("rollout %s is %s after %s", id, last.State, patience), err)
	return errors.Mark(err, context.DeadlineExceeded)
}

// endedAs says how a rollout has ended, and gives an error when that is not well.
func (a *app) endedAs(r chain.Rollout) error {
	sum := map[string]int{}
	for _, t := range r.Tiers {
		sum[events.StepDone] += t.Counts.Done
		sum[events.StepFailed] += t.Counts.Failed
		sum[events.StepUnknown] += t.Counts.Unknown
		sum[events.StepSkipped] += t.Counts.Skipped
	}
	text := fmt.Sprintf("rollout %s: %s", r.ID, r.State)
	for _, outcome := range []string{events.StepDone, events.StepFailed, events.StepUnknown, events.StepSkipped} {
		if n := sum[outcome]; n > 0 {
			text += fmt.Sprintf(", %d %s", n, outcome)
		}
	}
	if r.Why != "" {
		text += ": " + r.Why
	}
	if r.State != chain.RolloutFinished || sum[events.StepFailed]+sum[events.StepUnknown] > 0 {
		return errors.Mark(errors.New(text), errNotWell)
	}
	a.sayf("%s", a.paint(green, printable(text)))
	return nil
}

// watching shows what has changed since it was looked at last.
type watching struct {
	app *app
	// shown is how each step and tier was last shown.
	shown map[string]string
}

func (w *watching) look(ctx context.Context, s *session, r chain.Rollout) error {
	whole, err := s.reader.Rollout(ctx, r.ID)
	if err != nil {
		return err
	}
	lines := w.changed("", fmt.Sprintf("rollout %s: %s", r.ID, r.State))
	for _, t := range whole.Tiers {
		if !t.Entered.IsZero() {
			lines += w.changed("tier "+t.Name, tierLine(t.Tier))
		}
	}
	for _, step := range whole.All {
		if step.Sent.IsZero() && step.Stands() {
			continue
		}
		lines += w.changed(step.Node+" "+step.Module, fromTo(step.Before, step.After, step.Refresh)+": "+stepState(step, s.zone))
	}
	_, err = w.app.Stdout.Write([]byte(lines))
	return errors.Wrap(err, "write the output")
}

func (w *watching) changed(of, text string) string {
	if w.shown[of] == text {
		return ""
	}
	w.shown[of] = text
	return strings.TrimPrefix(printable(of)+" ", " ") + printable(text) + "\n"
}
