package main

import (
	"github.com/spf13/cobra"

	"catenary/commands"
)

func (a *app) assignCommand() *cobra.Command {
	var ref referenceFlags
	var c commands.Assign
	var provisioning string
	cmd := &cobra.Command{
		Use: "assign NODE MODULE (--package NAME@VERSION | --artifact DIGEST)", Short: "Tell a node to run a module",
		Long: `Assign tells a node to run a module, and with it all that the module requires.

What shall run is a package, an artifact, or what a build published.`,
		Example: `  catenary assign n1 web --package web@1.20 --reason "the new start page"
  catenary assign n1 web --build acme/web/512`,
		GroupID: groupWrite, Args: takes("NODE", "MODULE"), ValidArgsFunction: a.completePair(),
	}
	w := a.writeFlags(cmd)
	flags := cmd.Flags()
	flags.StringVar(&ref.pkg, "package", "", "the package, as `NAME@VERSION`")
	flags.StringVar(&ref.artifact, "artifact", "", "the artifact's `digest`")
	flags.StringVar(&c.Build, "build", "", "the build it comes from, by `id`")
	flags.StringVar(&c.Commit, "commit", "", "the `commit` it was made of")
	flags.StringVar(&provisioning, "provisioning", "", "`JSON` for whoever brings it to the node")
	flags.StringVar(&c.Reason, "reason", "", "why, in a `sentence`")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		var err error
		if c.Reference, err = ref.reference(); err != nil {
			return err
		}
		if c.Reference.IsZero() && c.Build == "" {
			return usagef("what shall run? give --package NAME@VERSION, --artifact DIGEST or --build ID")
		}
		c.Node, c.Module = args[0], args[1]
		if provisioning != "" {
			c.Provisioning = []byte(provisioning)
		}
		return a.write(cmd, w, "assign "+c.Module+" to "+c.Node, c)
	}
	return cmd
}

func (a *app) unassignCommand() *cobra.Command {
	var c commands.Unassign
	cmd := &cobra.Command{
		Use: "unassign NODE MODULE", Short: "Tell a node to run a module no more",
		Long:    `Unassign tells a node to run a module no more, and ends what only it had pulled in. The record stays, with the time it ended.`,
		Example: `  catenary unassign n1 web --reason "moved to the cluster"`,
		GroupID: groupWrite, Args: takes("NODE", "MODULE"), ValidArgsFunction: a.completePair(),
	}
	w := a.writeFlags(cmd)
	cmd.Flags().StringVar(&c.Reason, "reason", "", "why, in a `sentence`")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c.Node, c.Module = args[0], args[1]
		return a.write(cmd, w, "unassign "+c.Module+" from "+c.Node, c)
	}
	return cmd
}

// completePair offers nodes, and then modules.
func (a *app) completePair() cobra.CompletionFunc {
	var node, module kind
	for _, k := range kinds() {
		switch k.singular {
		case "node":
			node = k
		case "module":
			module = k
		}
	}
	return func(cmd *cobra.Command, args []string, text string) ([]string, cobra.ShellCompDirective) {
		switch len(args) {
		case 0:
			return a.completeNames(node)(cmd, nil, text)
		case 1:
			return a.completeNames(module)(cmd, nil, text)
		default:
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
	}
}
