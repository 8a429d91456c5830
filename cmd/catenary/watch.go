package main

import (
	"context"
	"log/slog"
	"time"

	"github.com/cockroachdb/errors"
	"github.com/spf13/cobra"
)

const watchFleetHelp = `Watch shows the fleet and its rollouts as they are, until ^C: how many assignments run as told, each rollout that is not final with its tiers and
what it waits for, and the places that need a look.

On a terminal it is a picture that follows the window's size. Into a pipe or a file it writes a line for each thing that has changed, with its time.
With -o json it writes an object for each change, one a line, whose steps are those that have changed since the object before.

A server that restarts does not end it: what is shown stays, with a note since when it can't be told whether it still holds. So it is when a view is
behind, has stopped, or nobody says how far it is. With --once, the exit code is 7 then.

In JSON: at, server, event (the newest when it was looked), behind (why it may be out of date; left out when it is not), no-engine (why nobody says what rollouts
wait for), nodes {all, external}, assignments (how many are as-told, unhealthy, drifted, running-something-else, not-reported), rollouts[] {id, state,
reason, why, track, reverts, reverted-by, carries[], tiers[] {name, entered, counts}, waits[] {reason, count, and of the first tier, node, module, waits-for,
until}, ended}, trouble[] (the first 100 places that are not as told, of trouble-count) and steps[], as "get step -o json" has them.`

const (
	// watchEvery is how often is looked, unless told otherwise: people do not read faster.
	watchEvery = time.Second
	// watchLeast bounds how often one may ask for: a look costs about ten requests.
	watchLeast = 100 * time.Millisecond
	// watchPatience bounds one look. A server that restarts leaves requests without an answer.
	watchPatience = 5 * time.Second
	// resizePause is how often the window's size is looked at.
	resizePause = 200 * time.Millisecond
)

// watcher shows what is seen.
type watcher interface {
	// show shows what is seen now.
	show(sight) error
	// again shows the same anew where that is needed, as after the window has changed its size.
	again() error
	// close leaves the terminal as it was.
	close() error
}

func (a *app) watchCommand() *cobra.Command {
	every, once := watchEvery, false
	cmd := &cobra.Command{
		Use: "watch", Short: "Show the fleet and its rollouts as they are", Long: watchFleetHelp, GroupID: groupRollouts, Args: takes(),
		Example: "  catenary watch\n  catenary watch --once\n  catenary watch -o json | jq .assignments",
	}
	output := formatFlag(cmd, formatTable, formatTable, formatJSON)
	cmd.Flags().DurationVar(&every, "every", watchEvery, "`span` between two looks")
	cmd.Flags().BoolVar(&once, "once", false, "look once, and end")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if every < watchLeast {
			return usagef("--every is %s: give %s or more", every, watchLeast)
		}
		return a.withBus(cmd.Context(), slog.New(slog.DiscardHandler), func(ctx context.Context, s *session) (err error) {
			e := newEye(a.Now, s)
			var w watcher
			switch {
			case *output == formatJSON:
				w = &watchJSON{out: a.Stdout}
			case once:
				w = &watchOnce{out: a.Stdout, zone: s.zone, colours: a.colours(a.Stdout)}
			case isTerminal(a.Stdout) && a.Env("TERM") != "dumb":
				if w, err = a.newScreen(s.zone); err != nil {
					return err
				}
			default:
				w = &watchLines{out: a.Stdout, zone: s.zone, shown: map[string]string{}}
			}
			defer func() { err = errors.CombineErrors(err, w.close()) }()
			e.withSteps = *output == formatJSON || !isTerminal(a.Stdout)
			if once {
				return e.once(ctx, w)
			}
			return e.follow(ctx, w, every)
		})
	}
	return cmd
}

// once looks one time. What can't be seen is an error here, and what is behind one marked errStale.
func (e *eye) once(ctx context.Context, w watcher) error {
	seen, err := e.look(ctx)
	if err != nil {
		return err
	}
	if err := w.show(seen); err != nil {
		return err
	}
	if seen.Behind != "" {
		return errors.Wrap(errStale, seen.Behind)
	}
	return nil
}

// follow looks again and again until the context ends, which is how a person ends it.
func (e *eye) follow(ctx context.Context, w watcher, every time.Duration) error {
	looks, sizes := time.NewTicker(every), time.NewTicker(resizePause)
	defer looks.Stop()
	defer sizes.Stop()
	var last sight
	for {
		seen, err := e.look(ctx)
		switch {
		case ctx.Err() != nil && errors.Is(context.Cause(ctx), context.Canceled):
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil:
			seen = last.out(e.now(), err)
		}
		last = seen
		if err := w.show(seen); err != nil {
			return err
		}
		for looked := false; !looked; {
			select {
			case <-ctx.Done():
				looked = true
			case <-looks.C:
				looked = true
			case <-sizes.C:
				if err := w.again(); err != nil {
					return err
				}
			}
		}
	}
}
