package main

import (
	"io"
	"os"

	"github.com/cockroachdb/errors"
	"github.com/spf13/cobra"

	"catenary/commands"
	"catenary/events"
	"catenary/rollout/strategy"
)

const strategyHelp = `A strategy says how a rollout walks over the nodes: tier by tier, how many at once, how much may fail, what has to be reported
before it goes on. It is a YAML file; "catenary strategy schema" prints its JSON Schema.

A rollout keeps the strategy it was planned with. Declaring another under the same name is for the plans to come.`

func (a *app) strategyCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "strategy", Short: "Say how rollouts walk over the nodes", Long: strategyHelp, GroupID: groupRollouts}
	return group(cmd, a.strategySchemaCommand(), a.strategyCheckCommand(), a.strategyDeclareCommand(), a.strategyEndCommand())
}

func (a *app) strategySchemaCommand() *cobra.Command {
	return &cobra.Command{
		Use: "schema", Short: "Print the JSON Schema of a strategy file", Args: takes(), Example: "  catenary strategy schema > strategy.schema.json",
		RunE: func(*cobra.Command, []string) error {
			_, err := a.Stdout.Write(strategy.Schema())
			return errors.Wrap(err, "write the schema")
		},
	}
}

func (a *app) strategyCheckCommand() *cobra.Command {
	return &cobra.Command{
		Use: "check FILE", Short: "Say what is wrong with a strategy file, and print its canonical JSON", Args: takes("FILE"),
		Example: "  catenary strategy check canary.yaml",
		RunE: func(_ *cobra.Command, args []string) error {
			s, err := a.readStrategy(args[0])
			if err != nil {
				return err
			}
			raw, digest, err := s.Canonical()
			if err != nil {
				return err
			}
			if _, err := a.Stdout.Write(append(raw, '\n')); err != nil {
				return errors.Wrap(err, "write the strategy")
			}
			a.sayf("digest %s", digest)
			return nil
		},
	}
}

func (a *app) strategyDeclareCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "declare NAME FILE", Short: "Store a strategy under a name", Args: takes("NAME", "FILE"),
		Example: "  catenary strategy declare canary canary.yaml",
	}
	w := a.writeFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		s, err := a.readStrategy(args[1])
		if err != nil {
			return err
		}
		raw, _, err := s.Canonical()
		if err != nil {
			return err
		}
		return a.write(cmd, w, "declare strategy "+args[0], commands.DeclareStrategy{Name: args[0], Strategy: raw})
	}
	return cmd
}

func (a *app) strategyEndCommand() *cobra.Command {
	var c commands.EndStrategy
	cmd := &cobra.Command{Use: "end NAME", Short: "Let no new plan use a strategy", Args: takes("NAME"), ValidArgsFunction: a.completeKind("strategy"), Example: `  catenary strategy end canary --reason "replaced by careful"`}
	w := a.writeFlags(cmd)
	cmd.Flags().StringVar(&c.Reason, "reason", "", "why, in a `sentence`")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c.Name = args[0]
		return a.write(cmd, w, "end strategy "+c.Name, c)
	}
	return cmd
}

// readStrategy reads a strategy file, or standard input for -. It gives usage errors that name file, line and field.
func (a *app) readStrategy(file string) (events.Strategy, error) {
	read := func() ([]byte, error) {
		if file == "-" {
			return io.ReadAll(io.LimitReader(a.Stdin, strategy.MaxFileBytes+1))
		}
		return os.ReadFile(file)
	}
	text, err := read()
	if err != nil {
		return events.Strategy{}, errors.Mark(errors.Wrap(err, "strategy"), errUsage)
	}
	s, err := strategy.Read(file, text)
	if err != nil {
		return s, errors.Mark(err, errUsage)
	}
	return s, nil
}

// completeKind offers the names of a kind's records that stand.
func (a *app) completeKind(singular string) cobra.CompletionFunc {
	return a.completeNames(kindOf(singular))
}
