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
	"catenary/es"
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

// follow looks at a rollout whenever it has changed, until it is final or the time is over; zero means no bound. A server that goes away and comes
// back meanwhile does not end it.
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
		var last chain.Entry[chain.Rollout]
		away := false
		for {
			e, err := chain.Get(waiting, s.reader, chain.Rollouts, id)
			if err == nil && e.Revision != last.Revision {
				if err = look(waiting, s, e.Value); err == nil {
					last = e
				}
			}
			switch {
			case err != nil && waiting.Err() != nil:
				return a.stillGoing(ctx, s, id, last.Value, patience)
			case err != nil && (last.Revision == 0 || !passes(err)):
				return err
			case err != nil && !away:
				a.sayf("nothing can be read now, waiting on: %s", printable(err.Error()))
			case err == nil && away:
				a.sayf("it can be read again")
			}
			away = err != nil
			if !away && !last.Value.Stands() {
				return a.endedAs(last.Value)
			}
			select {
			case <-waiting.Done():
				return a.stillGoing(ctx, s, id, last.Value, patience)
			case <-tick.C:
			}
		}
	})
}

// passes says whether a record that was there can't be read for a while only: the server is away, or the copy that is read is made anew.
func passes(err error) bool { return errors.IsAny(err, es.ErrUnavailable, es.ErrNotFound) }

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
