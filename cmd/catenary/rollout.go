package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/cockroachdb/errors"
	"github.com/spf13/cobra"

	"catenary/chain"
	"catenary/commands"
	"catenary/es"
	"catenary/events"
)

const rolloutHelp = `A rollout carries builds to nodes, tier by tier. Plan one, look at it, start it:

  catenary rollout plan --set web=web@1.21 --strategy canary --reason "the new start page" --dry-run
  catenary rollout plan --set web=web@1.21 --strategy canary --reason "the new start page"
  catenary rollout start ID
  catenary rollout watch ID
  catenary rollout why ID

"catenary watch" shows all rollouts and the fleet.`

func (a *app) rolloutCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "rollout", Short: "Carry builds to nodes, tier by tier", Long: rolloutHelp, GroupID: groupRollouts}
	return group(cmd,
		a.rolloutPlanCommand(), a.rolloutRollbackCommand(), a.rolloutApproveCommand(),
		a.rolloutVerbCommand("start", "Let the steps of a planned rollout begin", startHelp, func(id, reason string) es.Payload { return commands.StartRollout{ID: id, Reason: reason} }),
		a.rolloutVerbCommand("pause", "Let no step begin any more; what runs goes on", pauseHelp, func(id, reason string) es.Payload { return commands.PauseRollout{ID: id, Reason: reason} }),
		a.rolloutVerbCommand("resume", "Let steps begin again", resumeHelp, func(id, reason string) es.Payload { return commands.ResumeRollout{ID: id, Reason: reason} }),
		a.rolloutVerbCommand("abort", "Give a rollout up, for good", abortHelp, func(id, reason string) es.Payload { return commands.AbortRollout{ID: id, Reason: reason} }),
		a.rolloutSupersedeCommand(), a.rolloutSettleCommand(), a.rolloutRetryCommand(),
		a.rolloutTriggerCommand(), a.rolloutListCommand(), a.rolloutShowCommand(), a.rolloutWhyCommand(), a.rolloutWatchCommand(), a.rolloutWaitCommand(),
	)
}

const (
	startHelp = `Start lets the steps of a planned rollout begin. The engine begins them; without one that walks nothing moves, and "rollout why" says so. Where
the first tier wants approval, that comes first.`
	pauseHelp = `Pause lets no step begin any more. What runs goes on, and its outcome is taken in; the time of a pause counts for no deadline.`

	resumeHelp = `Resume lets the steps of a paused rollout begin again.`

	abortHelp = `Abort gives a rollout up, for good, in every state that is not final. Nothing is taken back: what has changed stays changed, and what is under way
stays pending until it is reported or settled. To go back: catenary rollout rollback ID`
)

// rolloutVerbCommand makes a command that takes a rollout and a reason.
func (a *app) rolloutVerbCommand(verb, short, long string, payload func(id, reason string) es.Payload) *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use: verb + " ID", Short: short, Long: long, Args: takes("ID"), ValidArgsFunction: a.completeKind("rollout"),
		Example: fmt.Sprintf("  catenary rollout %s 20260501-120000-3f9a --reason \"as agreed\"", verb),
	}
	w := a.writeFlags(cmd)
	cmd.Flags().StringVar(&reason, "reason", "", "why, in a `sentence`")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return a.write(cmd, w, verb+" rollout "+args[0], payload(args[0], reason))
	}
	return cmd
}

func (a *app) rolloutApproveCommand() *cobra.Command {
	var c commands.ApproveRollout
	cmd := &cobra.Command{
		Use: "approve ID [--tier NAME]", Short: "Agree to a tier being entered", Args: takes("ID"), ValidArgsFunction: a.completeKind("rollout"),
		Long: `Approve agrees to a tier being entered: the one named, or the next to be entered of those that wait for approval. Sent twice it agrees to that one
tier, and to none behind it.`,
		Example: "  catenary rollout approve 20260501-120000-3f9a --tier production",
	}
	w := a.writeFlags(cmd)
	cmd.Flags().StringVar(&c.Tier, "tier", "", "the tier's `name` (default the next that waits)")
	cmd.Flags().StringVar(&c.Reason, "reason", "", "why, in a `sentence`")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c.ID = args[0]
		if c.Tier == "" {
			if err := a.read(cmd.Context(), func(ctx context.Context, s *session) (err error) {
				c.Tier, err = s.tierToApprove(ctx, c.ID)
				return err
			}); err != nil {
				return err
			}
		}
		return a.write(cmd, w, strings.TrimSpace("approve rollout "+c.ID+" "+c.Tier), c)
	}
	return cmd
}

// tierToApprove names the next tier to be entered of those that wait for approval; nothing for a rollout that has none, or can't be read yet. The
// writer would find it, too. But the engine enters a tier within milliseconds, and whoever presses a key twice has seen only one waiting.
func (s *session) tierToApprove(ctx context.Context, id string) (string, error) {
	e, err := chain.Get(ctx, s.reader, chain.Rollouts, id)
	if errors.Is(err, es.ErrNotFound) {
		return "", nil
	}
	for _, t := range e.Value.Tiers {
		if t.Policy.Approval && t.Entered.IsZero() && t.Counts.Steps > 0 {
			return t.Name, err
		}
	}
	return "", err
}

func (a *app) rolloutSupersedeCommand() *cobra.Command {
	var c commands.SupersedeRollout
	cmd := &cobra.Command{
		Use: "supersede ID --by ID", Short: "Put another rollout in the place of one", Args: takes("ID"), ValidArgsFunction: a.completeKind("rollout"),
		Long: `Supersede ends a rollout that another one replaces. It is there for every state that is not final, queued or under way.

To plan one that replaces another: catenary rollout plan --supersedes ID`,
		Example: "  catenary rollout supersede 20260501-120000-3f9a --by 20260501-143000-77b0",
	}
	w := a.writeFlags(cmd)
	cmd.Flags().StringVar(&c.By, "by", "", "the `rollout` that takes its place")
	offer(cmd, "by", a.completeKind("rollout"))
	cmd.Flags().StringVar(&c.Reason, "reason", "", "why, in a `sentence`")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c.ID = args[0]
		return a.write(cmd, w, "supersede rollout "+c.ID, c)
	}
	return cmd
}

func (a *app) rolloutSettleCommand() *cobra.Command {
	var c commands.SettleStep
	cmd := &cobra.Command{
		Use: "settle ID NODE MODULE --outcome done|failed|skipped --reason TEXT", Short: "Say by hand what became of a step",
		Long: `Settle says by hand what became of a step: one that is pending because nobody reported, one whose outcome is unknown, or, as skipped, one
that shall not begin. Pending steps can be settled after their rollout has ended, too.`,
		Args: takes("ID", "NODE", "MODULE"), ValidArgsFunction: a.completeStep(),
		Example: `  catenary rollout settle 20260501-120000-3f9a edge-1 web --outcome done --reason "looked at it"`,
	}
	w := a.writeFlags(cmd)
	cmd.Flags().StringVar(&c.Outcome, "outcome", "", "done, failed or skipped")
	offer(cmd, "outcome", cobra.FixedCompletions([]string{events.StepDone, events.StepFailed, events.StepSkipped}, cobra.ShellCompDirectiveNoFileComp))
	cmd.Flags().StringVar(&c.Reason, "reason", "", "how you know, in a `sentence`")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c.ID, c.StepName = args[0], events.StepName{Node: args[1], Module: args[2]}
		return a.write(cmd, w, "settle "+c.StepName.String(), c)
	}
	return cmd
}

func (a *app) rolloutRetryCommand() *cobra.Command {
	var c commands.RetryStep
	cmd := &cobra.Command{
		Use: "retry-step ID NODE MODULE --reason TEXT", Short: "Have a step tried again that was not done",
		Args: takes("ID", "NODE", "MODULE"), ValidArgsFunction: a.completeStep(),
		Long:    `Retry-step has a step tried again that has failed, was skipped or is unknown, as long as its rollout is not final.`,
		Example: `  catenary rollout retry-step 20260501-120000-3f9a edge-1 web --reason "the disk was full"`,
	}
	w := a.writeFlags(cmd)
	cmd.Flags().StringVar(&c.Reason, "reason", "", "why it may go better now, in a `sentence`")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c.ID, c.StepName = args[0], events.StepName{Node: args[1], Module: args[2]}
		return a.write(cmd, w, "retry "+c.StepName.String(), c)
	}
	return cmd
}
