package main

import (
	"slices"
	"strings"
	"time"

	"github.com/cockroachdb/errors"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"catenary/internal/natsconn"
)

// app is one run of the tool.
type app struct {
	Main
	// bus says where the bus is, as the flags have it.
	bus natsconn.Config
	// ran says that a command began its work: what failed before that is a matter of usage.
	ran bool
	// draining lets up wait for the steps that are under way.
	draining *draining
	// timeout bounds what is asked of the bus.
	timeout time.Duration
	// zone names the zone of times, as the flag has it; times are the flags that hold some.
	zone  string
	times []*timeFlag
}

const rootHelp = `Catenary remembers what runs where, and how it came there.

Start a chain with "catenary up --demo", and look around from a second terminal:

  catenary get assignments
  catenary blame NODE MODULE
  catenary log --limit 10
  catenary verify`

func (a *app) rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:           "catenary",
		Short:         "Remember what runs where, and how it came there",
		Long:          rootHelp,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          unknownWord,
		RunE:          showHelp,
	}
	// Before any command is added: cobra's own ask for the output when they are made.
	root.SetIn(a.Stdin)
	root.SetOut(a.Stdout)
	root.SetErr(a.Stderr)
	root.SetFlagErrorFunc(explainFlags)
	flags := root.PersistentFlags()
	flags.StringVar(&a.bus.Server, "server", "", "`URL` of the bus (default NATS_URL, or nats://127.0.0.1:4222)")
	flags.StringVar(&a.bus.Creds, "creds", "", "credentials `file` (default NATS_CREDS)")
	flags.StringVar(&a.bus.Context, "context", "", "`name` of a nats context (default NATS_CONTEXT, or the selected one)")
	a.timeout = 30 * time.Second
	flags.Var(patienceFlag{&a.timeout}, "timeout", "longest `span` of time to wait for the bus")
	flags.StringVar(&a.zone, "zone", "", "time `zone` of what is read and shown, such as Europe/Berlin (default CATENARY_ZONE, or the machine's)")
	root.AddGroup(
		&cobra.Group{ID: groupRun, Title: "Run:"},
		&cobra.Group{ID: groupWrite, Title: "Change:"},
		&cobra.Group{ID: groupRollouts, Title: "Carry:"},
		&cobra.Group{ID: groupRead, Title: "Read:"},
		&cobra.Group{ID: groupAsk, Title: "Ask about the past:"},
	)
	root.AddCommand(
		a.upCommand(), a.configureCommand(), a.serverCommand(), a.clusterCommand(), a.agentCommand(), a.repairCommand(), a.rebuildCommand(), a.backupCommand(), a.restoreCommand(),
		a.doctorCommand(), a.checkCommand(),
		a.sendCommand(), a.recordCommand(), a.publishCommand(), a.assignCommand(), a.unassignCommand(), a.importCommand(), a.parkedCommand(),
		a.rolloutCommand(), a.strategyCommand(), a.trackCommand(), a.watchCommand(),
		a.getCommand(), a.nodeCommand(), a.historyCommand(), a.receiptCommand(), a.verifyCommand(), a.projectionsCommand(), a.artifactsCommand(), a.logsCommand(), a.auditCommand(),
		a.asOfCommand(), a.diffCommand(), a.blameCommand(), a.traceCommand(), a.logCommand(), a.reportCommand(), a.sqlCommand(), a.exportCommand(),
		a.versionCommand(),
		&cobra.Command{Use: "exit-codes", Short: "What the exit codes mean", Long: exitCodesHelp},
	)
	root.InitDefaultCompletionCmd(a.Args...)
	a.watchRuns(root)
	return root
}

// Groups of commands in the help.
const (
	groupRun      = "run"
	groupWrite    = "write"
	groupRead     = "read"
	groupAsk      = "ask"
	groupRollouts = "rollouts"
)

// watchRuns notes when a command begins its work: what fails before that is a matter of usage.
func (a *app) watchRuns(cmd *cobra.Command) {
	if run := cmd.RunE; run != nil {
		cmd.RunE = func(cmd *cobra.Command, args []string) error {
			if err := a.readTimes(); err != nil {
				return err
			}
			a.ran = true
			return run(cmd, args)
		}
	}
	for _, sub := range cmd.Commands() {
		a.watchRuns(sub)
	}
}

// group makes a command that only holds others, and says so when it is called with none or an unknown one.
func group(cmd *cobra.Command, subs ...*cobra.Command) *cobra.Command {
	cmd.AddCommand(subs...)
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			var known []string
			for _, sub := range subs {
				known = append(known, sub.Name())
			}
			slices.Sort(known)
			return usagef("%s what? one of %s", cmd.CommandPath(), strings.Join(known, ", "))
		}
		return unknownWord(cmd, args)
	}
	cmd.RunE = showHelp
	return cmd
}

// takes makes sure that a command gets the arguments it needs.
func takes(names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) != len(names) {
			return usagef("%s takes %s, and %d given", cmd.CommandPath(), strings.Join(names, " "), len(args))
		}
		return nil
	}
}

// explainFlags says of a flag that does not exist how to give a name that looks like one.
func explainFlags(cmd *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	if errors.As(err, &unknown) && cmd.ValidArgsFunction != nil {
		return errors.WithHint(err, "if it is a name, write -- before it: nothing after that is a flag")
	}
	return err
}

func showHelp(cmd *cobra.Command, _ []string) error { return cmd.Help() }

// mostTypos is how far a word may be from the one that was meant.
const mostTypos = 2

// unknownWord gives a usage error for a word that is no command, with the one that may have been meant.
func unknownWord(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	cmd.SuggestionsMinimumDistance = mostTypos
	err := usagef("%s has no command %q", cmd.CommandPath(), args[0])
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		err = errors.WithHintf(err, "did you mean %s?", strings.Join(near, " or "))
	}
	return err
}
