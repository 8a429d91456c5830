package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/cockroachdb/errors"
	"github.com/spf13/cobra"

	"catenary/audit/when"
	"catenary/chain"
	"catenary/commands"
	"catenary/es"
	"catenary/es/dispatch"
	"catenary/events"
	"catenary/rollout/plan"
)

const planHelp = `Plan says which modules change on which nodes, from what to what, in which tiers, and records that as a rollout. Nothing moves before it
is started.

What it shall lead to is one of these:

  --set MODULE=NAME@VERSION or MODULE=DIGEST   the module at this publication, wherever it stands; again for more modules
  --commit REPOSITORY@SHA                      what builds of the commit have published
  --as-of TIME [--node N] [--module M]         the fleet, a node or a module as it was told to be at that time

A module changes where it stands. It comes to nodes where it does not with --onto NODE, or --everywhere: on each node that a tier picks.

What is right already is no part of the plan; when all is, nothing is recorded. What would change but must not is shown with its reason:
frozen, vetoed, managed by somebody else, in no tier. What is not recorded as published is named, and nothing is planned then.

In JSON a plan is {id, head, steps[], tiers[], right, ends, left-out[], missing[], since[]}; with -o json, too, the plan is recorded unless
--dry-run is given.

   0  it is recorded; or there was nothing to change
   2  what was asked for is unclear, or the strategy is wrong
   4  there is no such strategy, track or rollout
   5  it is refused: something is not published, would end what stands without --confirm-ends, or waits for itself`

// planFlags say what a plan shall lead to, and how.
type planFlags struct {
	sets         []string
	onto         []string
	everywhere   bool
	commit       string
	asOf         time.Time
	node, module string
	strategy     string
	track        string
	id           string
	reason       string
	supersedes   []string
	dryRun       bool
	allowMissing bool
	confirm      int
	onBehalfOf   string
	wait         time.Duration
	output       *format
}

func (a *app) planFlags(cmd *cobra.Command) *planFlags {
	p := &planFlags{output: formatFlag(cmd, formatTable)}
	flags := cmd.Flags()
	flags.StringVar(&p.id, "as", "", "the rollout's `id` (default one of the time)")
	flags.StringVar(&p.reason, "reason", "", "why, in a `sentence`")
	flags.StringArrayVar(&p.supersedes, "supersedes", nil, "a `rollout` that this one replaces; once for each")
	flags.BoolVar(&p.dryRun, "dry-run", false, "only show the plan")
	flags.BoolVar(&p.allowMissing, "allow-missing", false, "plan also for what is not recorded as published")
	flags.Var(amount(&p.confirm, 0), "confirm-ends", "the exact number of assignments that the plan ends")
	flags.StringVar(&p.onBehalfOf, "on-behalf-of", "", "`name` of the person or system you act for")
	addWait(flags, &p.wait, defaultWait, "`span` of time to wait until it can be read, such as 10s; false for none")
	return p
}

func (a *app) rolloutPlanCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "plan (--set MODULE=REFERENCE | --commit REPOSITORY@SHA | --as-of TIME) --strategy FILE|NAME", Short: "Plan a rollout", Long: planHelp, Args: takes(),
		Example: `  catenary rollout plan --set web=web@1.21 --strategy canary --reason "the new start page"
  catenary rollout plan --set web=web@1.20 --everywhere --strategy canary --reason "the first installation"
  catenary rollout plan --commit git.example.org/shop@0362525 --strategy canary.yaml --dry-run
  catenary rollout plan --as-of 7d --module web --strategy canary --reason "last week was better"`,
	}
	p := a.planFlags(cmd)
	flags := cmd.Flags()
	flags.StringArrayVar(&p.sets, "set", nil, "`MODULE=REFERENCE`: the module at a package or an artifact; once for each module")
	flags.StringArrayVar(&p.onto, "onto", nil, "a `node` that the modules come to as well, where they do not stand; once for each")
	flags.BoolVar(&p.everywhere, "everywhere", false, "the modules come to every node that a tier of the strategy picks")
	flags.StringVar(&p.commit, "commit", "", "`REPOSITORY@SHA`: what builds of the commit have published")
	a.timeVar(flags, &p.asOf, "as-of", "what was told at this `time`: "+when.Notation)
	flags.StringVar(&p.node, "node", "", "with --as-of, only this `node`")
	flags.StringVar(&p.module, "module", "", "with --as-of, only this `module`")
	flags.StringVar(&p.strategy, "strategy", "", "a strategy `file`, or the name of a declared one")
	flags.StringVar(&p.track, "track", "", "plan for this `track`, with its strategy unless another is given")
	offer(cmd, "onto", a.completeKind("node"))
	offer(cmd, "node", a.completeKind("node"))
	offer(cmd, "module", a.completeKind("module"))
	offer(cmd, "track", a.completeKind("track"))
	offer(cmd, "strategy", a.completeStrategy())
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		given := 0
		for _, yes := range []bool{len(p.sets) > 0, p.commit != "", !p.asOf.IsZero()} {
			if yes {
				given++
			}
		}
		switch {
		case given != 1:
			return usagef("what shall it lead to? give --set, --commit or --as-of, one of them")
		case p.asOf.IsZero() && p.node+p.module != "":
			return usagef("--node and --module narrow what --as-of takes back: leave them out")
		case !p.asOf.IsZero() && (p.everywhere || len(p.onto) > 0):
			return usagef("--onto and --everywhere say where --set or --commit leads to: leave them out")
		case p.strategy == "" && p.track == "":
			return usagef("how shall it walk? give --strategy with a file or a name, or --track")
		}
		return a.plan(cmd, p, func(ctx context.Context, s *session, f plan.Facts, r *plan.Request) (plan.Facts, error) {
			var err error
			if p.strategy, err = p.walk(ctx, s); err != nil {
				return f, err
			}
			r.Track, r.Onto, r.Everywhere = p.track, p.onto, p.everywhere
			if r.Strategy, r.StrategyName, err = a.strategyOf(ctx, s, p.strategy); err != nil {
				return f, err
			}
			return p.wanted(ctx, s, f, r)
		})
	}
	return cmd
}

func (a *app) rolloutRollbackCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "rollback ID --reason TEXT", Short: "Plan a rollout that takes another one back", Args: takes("ID"), ValidArgsFunction: a.completeKind("rollout"),
		Long: `Rollback plans a rollout that takes each node back to what stood there before. Recording it aborts the original if it runs, and vetoes what it
carried until somebody lifts that. A place that has gone on since is left out.

The way back is one tier, and faster than the way out. Give --strategy for another one.`,
		Example: `  catenary rollout rollback 20260501-120000-3f9a --reason "logins break"`,
	}
	p := a.planFlags(cmd)
	cmd.Flags().StringVar(&p.strategy, "strategy", "", "a strategy `file`, or the name of a declared one (default one tier for all)")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if strings.TrimSpace(p.reason) == "" {
			return usagef("why is it taken back? give --reason: whoever looks at the veto sees it")
		}
		return a.plan(cmd, p, func(ctx context.Context, s *session, f plan.Facts, r *plan.Request) (plan.Facts, error) {
			var err error
			if r.Undo, r.Strategy, err = plan.Reverted(ctx, s.reader, args[0]); err != nil {
				return f, err
			}
			r.Reverts = args[0]
			if p.strategy != "" {
				if r.Strategy, r.StrategyName, err = a.strategyOf(ctx, s, p.strategy); err != nil {
					return f, err
				}
			}
			var before []events.Version
			for _, c := range r.Undo {
				if c.Before != nil {
					before = append(before, *c.Before)
				}
			}
			return f, f.Lookup(ctx, s.reader, before...)
		})
	}
	return cmd
}

// walk gives the strategy that is asked for, or else that of the track.
func (p *planFlags) walk(ctx context.Context, s *session) (string, error) {
	if p.track == "" || p.strategy != "" {
		return p.strategy, nil
	}
	t, err := chain.Get(ctx, s.reader, chain.Tracks, p.track)
	return t.Value.Strategy, err
}

// wanted fills in what the flags ask for.
func (p *planFlags) wanted(ctx context.Context, s *session, f plan.Facts, r *plan.Request) (plan.Facts, error) {
	switch {
	case !p.asOf.IsZero():
		if err := p.known(ctx, s, r.Now); err != nil {
			return f, err
		}
		restore, err := plan.Restored(ctx, s.reader, p.asOf, p.node, p.module)
		if err != nil {
			return f, err
		}
		r.Restore = &restore
		return f, f.Lookup(ctx, s.reader, restore.Versions()...)
	case p.commit != "":
		at := strings.LastIndexByte(p.commit, '@')
		if at <= 0 || at == len(p.commit)-1 {
			return f, usagef("--commit %q is not REPOSITORY@SHA", p.commit)
		}
		targets, err := plan.TargetsOf(ctx, s.reader, p.commit[:at], p.commit[at+1:])
		if err != nil {
			return f, err
		}
		r.Targets = targets
	default:
		for _, text := range p.sets {
			module, reference, ok := strings.Cut(text, "=")
			if !ok || module == "" {
				return f, usagef("--set %q is not MODULE=NAME@VERSION or MODULE=DIGEST", text)
			}
			ref, err := parseReference(reference)
			if err != nil {
				return f, err
			}
			t, err := f.Target(ctx, s.reader, module, ref)
			if err != nil {
				return f, explained(err)
			}
			r.Targets = append(r.Targets, t)
		}
	}
	var modules []string
	for _, t := range r.Targets {
		if err := f.Lookup(ctx, s.reader, t.Version); err != nil {
			return f, err
		}
		modules = append(modules, t.Module)
	}
	return f.WithCommits(ctx, s.reader, modules...)
}

// known says what is wrong with the moment, node and module that --as-of takes back: with a slip of the pen in them nothing would be found to change.
func (p *planFlags) known(ctx context.Context, s *session, now time.Time) error {
	if p.asOf.After(now) {
		return usagef("--as-of %s lies ahead: what nodes will be told is not known", showTime(p.asOf, s.zone))
	}
	if p.node != "" {
		if _, err := chain.Get(ctx, s.reader, chain.Nodes, p.node); err != nil {
			return err
		}
	}
	if p.module != "" {
		if _, err := chain.Get(ctx, s.reader, chain.Modules, p.module); err != nil {
			return err
		}
	}
	return nil
}

// strategyOf gives a declared strategy by its name, or that of a file.
func (a *app) strategyOf(ctx context.Context, s *session, text string) (events.Strategy, string, error) {
	if _, err := os.Stat(text); err == nil || text == "-" || strings.ContainsAny(text, `/\`) || strings.HasSuffix(text, ".yaml") || strings.HasSuffix(text, ".yml") {
		strategy, err := a.readStrategy(text)
		return strategy, "", err
	}
	e, err := chain.Get(ctx, s.reader, chain.Strategies, text)
	switch {
	case errors.Is(err, es.ErrNotFound):
		return events.Strategy{}, "", errors.WithHint(err, "there is no such file either; declare it with strategy declare")
	case err != nil:
		return events.Strategy{}, "", err
	case !e.Value.Stands():
		return events.Strategy{}, "", errors.Mark(errors.Newf("strategy %s has ended", text), errUsage)
	}
	strategy, err := events.ParseStrategy(e.Value.Strategy)
	return strategy, text, err
}

// plan makes a plan, shows it, and records it unless that is not asked for.
func (a *app) plan(cmd *cobra.Command, p *planFlags, fill func(context.Context, *session, plan.Facts, *plan.Request) (plan.Facts, error)) error {
	return a.read(cmd.Context(), func(ctx context.Context, s *session) error {
		facts, err := plan.Read(ctx, s.reader)
		if err != nil {
			return err
		}
		r := plan.Request{
			ID: p.id, Reason: p.reason, Supersedes: p.supersedes, Now: a.Now().UTC(), AllowMissing: p.allowMissing,
		}
		if r.ID == "" {
			r.ID = plan.NewID(r.Now)
		}
		if facts, err = fill(ctx, s, facts, &r); err != nil {
			return err
		}
		if err := facts.TriedBefore(ctx, s.reader, p.supersedes...); err != nil {
			return err
		}
		made, err := plan.Make(facts, r)
		if err != nil {
			return explained(err)
		}
		if err := a.showRolloutPlan(s, *p.output, made); err != nil {
			return err
		}
		if len(made.Steps)+len(made.LeftOut)+made.Right == 0 && len(r.Targets) > 0 {
			a.sayf("%s", printable(nowhere(r.Targets)))
		}
		if p.dryRun || len(made.Steps) == 0 {
			return nil
		}
		var confirm *int
		if cmd.Flags().Changed("confirm-ends") {
			confirm = &p.confirm
		}
		// The writer demands it too, but with the last part of the plan.
		if confirm == nil && made.Ends > 0 || confirm != nil && *confirm != made.Ends {
			err := errors.Newf("the plan ends %s", counted(made.Ends, "assignment"))
			return errors.WithHintf(errors.Mark(err, errRefused), "if that is meant, give --confirm-ends %d", made.Ends)
		}
		return a.record(ctx, s, p, made, confirm)
	})
}

// nowhere says why a plan has nothing to look at.
func nowhere(targets []events.Target) string {
	modules := make([]string, len(targets))
	for i, t := range targets {
		modules[i] = t.Module
	}
	return strings.Join(modules, ", ") + " stands on no node yet: say where to with --onto NODE, or --everywhere for each node that a tier picks"
}

// record writes a plan down, and says how it goes on.
func (a *app) record(ctx context.Context, s *session, p *planFlags, made plan.Plan, confirm *int) error {
	last, err := s.writePlan(ctx, plan.TrackPlan{Plan: made}, confirm, p.onBehalfOf)
	if err != nil {
		return err
	}
	a.awaitShown(ctx, s, last, p.wait)
	a.sayf("%s", a.paint(green, printable(fmt.Sprintf("planned as rollout %s, event %d; start it with: catenary rollout start %s", made.ID, last, shellWord(made.ID)))))
	return nil
}

// writePlan writes a plan down, and gives the last event.
func (s *session) writePlan(ctx context.Context, made plan.TrackPlan, confirm *int, onBehalfOf string) (uint64, error) {
	parts, err := made.Commands(confirm)
	if err != nil {
		return 0, err
	}
	var last uint64
	for i, part := range parts {
		if last, err = s.mustDo(ctx, "plan rollout "+made.ID, part, onBehalfOf); err != nil {
			return 0, unfinished(err, made.ID, i)
		}
	}
	return last, nil
}

// mustDo sends a command that has to be done, and gives its last event.
func (s *session) mustDo(ctx context.Context, what string, p es.Payload, onBehalfOf string) (uint64, error) {
	request, err := commands.Request(p, dispatch.Options{OnBehalfOf: onBehalfOf})
	if err != nil {
		return 0, errors.Wrap(err, what)
	}
	answer, err := s.bus.Send(ctx, request)
	switch {
	case err != nil:
		return 0, errors.Wrap(err, what)
	case statusCode(answer.Status) != exitOK:
		return 0, &notDone{what: what, answer: s.named(answer)}
	}
	return answer.Sequence, nil
}

// unfinished says what to do with a plan of which some parts are recorded.
func unfinished(err error, id string, recorded int) error {
	if recorded == 0 {
		return err
	}
	return errors.WithHintf(err, "part of the plan is recorded and will never start; take it away with: catenary rollout abort %s", shellWord(id))
}

// explained marks what is wrong with what was asked.
func explained(err error) error {
	var (
		missing *plan.MissingError
		circle  *plan.CircleError
		edge    *plan.EdgeError
		two     *plan.CommitsError
		many    *plan.TooManyError
	)
	switch {
	case errors.As(err, &missing):
		return errors.WithHintf(errors.Mark(err, errRefused), "when it is published: catenary record publication %s --module %s; or give --allow-missing", shellWord(missing.Missing[0].Version.String()), shellWord(missing.Missing[0].Module))
	case errors.Is(err, plan.ErrOtherModule), errors.As(err, &circle), errors.As(err, &edge), errors.As(err, &two), errors.As(err, &many):
		return errors.Mark(err, errRefused)
	}
	return err
}
