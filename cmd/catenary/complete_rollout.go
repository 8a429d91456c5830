package main

import (
	"context"
	"slices"

	"github.com/spf13/cobra"
)

// offer has a shell offer values for a flag.
func offer(cmd *cobra.Command, flag string, with cobra.CompletionFunc) {
	if err := cmd.RegisterFlagCompletionFunc(flag, with); err != nil {
		panic(err) // the flag is defined where it is offered for
	}
}

// completeStrategy offers declared strategies, and files besides.
func (a *app) completeStrategy() cobra.CompletionFunc {
	names := a.completeKind("strategy")
	return func(cmd *cobra.Command, _ []string, word string) ([]string, cobra.ShellCompDirective) {
		found, _ := names(cmd, nil, word)
		return found, cobra.ShellCompDirectiveDefault
	}
}

// completeStep offers a rollout, then a node that has a step of it, then the modules of its steps there.
func (a *app) completeStep() cobra.CompletionFunc {
	rollouts := a.completeKind("rollout")
	return func(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
		if len(args) == 0 {
			return rollouts(cmd, args, word)
		}
		ctx, cancel := context.WithTimeout(cmd.Context(), completionPatience)
		defer cancel()
		var found []string
		err := a.read(ctx, func(ctx context.Context, s *session) error {
			whole, err := s.reader.Rollout(ctx, args[0])
			for _, step := range whole.All {
				switch {
				case len(args) == 1:
					found = append(found, step.Node)
				case len(args) == 2 && step.Node == args[1]:
					found = append(found, step.Module)
				}
			}
			return err
		})
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp // a bus that is away leaves a shell alone
		}
		slices.Sort(found)
		return slices.Compact(found), cobra.ShellCompDirectiveNoFileComp
	}
}
