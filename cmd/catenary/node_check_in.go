package main

import (
	"context"
	"log/slog"
	"time"

	"github.com/cockroachdb/errors"
	"github.com/spf13/cobra"

	"catenary/agent"
	"catenary/agent/desk"
	"catenary/es"
	"catenary/events"
)

const checkInHelp = `Check-in says that nodes are there, for those without an agent of ours: whoever plays a node by hand, or acts for it with a program of their own, says
so every now and then. An agent does it by itself.

A node counts as there for three times the span of --every. One that has not been heard of for longer is off: a rollout waits for it, skips it
or counts it as failed, as its strategy says. What the node has done is reported with: catenary send assignment observe`

// byHand is the run that check-ins by hand go by. It is always the same: who says it twice is no rival of himself.
const byHand = "by hand"

func (a *app) nodeCheckInCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "check-in NODE...", Short: "Say that nodes are there, which have no agent of ours", Long: checkInHelp, Args: cobra.MinimumNArgs(1),
		ValidArgsFunction: a.completeKind("node"), Example: "  catenary node check-in shop-1 shop-2 --every 5m",
	}
	every := agent.DefaultEvery
	cmd.Flags().DurationVar(&every, "every", every, "`span` until the next one")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if every < desk.ShortestEvery || every > desk.LongestEvery {
			return usagef("--every is %s: it lies between %s and %s", every, desk.ShortestEvery, desk.LongestEvery)
		}
		return a.withBus(cmd.Context(), slog.New(slog.DiscardHandler), func(ctx context.Context, s *session) error {
			for _, node := range args {
				if err := s.checkIn(ctx, node, every); err != nil {
					return err
				}
			}
			a.sayf("%s checked in: there until %s", counted(len(args), "node"), showTime(a.Now().Add(desk.Missed*every), s.zone))
			return nil
		})
	}
	return cmd
}

// checkIn says that a node is there. It gives errors of kind [es.ErrNotFound] and errRefused for nodes that nobody can be an agent of.
func (s *session) checkIn(ctx context.Context, node string, every time.Duration) error {
	if err := es.CheckName("node", node); err != nil {
		return errors.Mark(err, errUsage)
	}
	answer, err := agent.NewBusDesk(s.request).CheckIn(ctx, agent.CheckIn{Node: node, Run: byHand, Every: every})
	switch {
	case err != nil:
		return err
	case !answer.Known:
		return errors.Mark(errors.WithHint(errors.Newf("there is no node %q", node), "get nodes lists what there is"), es.ErrNotFound)
	case answer.ManagedBy == events.ManagedByExternal:
		return errors.Mark(errors.Newf("somebody else manages node %s: no agent is expected", node), errRefused)
	}
	return nil
}
