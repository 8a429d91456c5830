package main

import (
	"github.com/spf13/cobra"

	"catenary/commands"
	"catenary/es"
	"catenary/events"
)

const trackHelp = `A track carries modules by a strategy: by itself when something is merged or published for them, or only when somebody asks. It is
the only source of plans that nobody asked for.`

func (a *app) trackCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "track", Short: "Say which modules are carried by which strategy", Long: trackHelp, GroupID: groupRollouts}
	declare := a.trackSpecCommand("declare", "Let a track carry modules", func(t events.TrackSpec) es.Payload { return commands.DeclareTrack{TrackSpec: t} })
	change := a.trackSpecCommand("change", "Replace all that is said of a track", func(t events.TrackSpec) es.Payload { return commands.ChangeTrack{TrackSpec: t} })
	return group(cmd, declare, change, a.trackEndCommand(), a.trackWhyCommand())
}

func (a *app) trackSpecCommand(verb, short string, payload func(events.TrackSpec) es.Payload) *cobra.Command {
	var t events.TrackSpec
	cmd := &cobra.Command{
		Use: verb + " NAME --module MODULE... --strategy NAME --on merge|publication|manual", Short: short, Args: takes("NAME"),
		Example: "  catenary track " + verb + " shops --module web --module api --strategy canary --on merge", ValidArgsFunction: a.completeKind("track"),
	}
	w := a.writeFlags(cmd)
	flags := cmd.Flags()
	flags.StringArrayVar(&t.Modules, "module", nil, "a `module` that it carries; once for each")
	flags.StringVar(&t.Strategy, "strategy", "", "the `name` of a declared strategy")
	flags.StringVar(&t.On, "on", "", "what makes it plan: merge, publication or manual")
	offer(cmd, "module", a.completeKind("module"))
	offer(cmd, "strategy", a.completeKind("strategy"))
	offer(cmd, "on", cobra.FixedCompletions([]string{events.OnMerge, events.OnPublication, events.OnManual}, cobra.ShellCompDirectiveNoFileComp))
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		t.Track = args[0]
		return a.write(cmd, w, verb+" track "+t.Track, payload(t))
	}
	return cmd
}

func (a *app) trackEndCommand() *cobra.Command {
	var c commands.EndTrack
	cmd := &cobra.Command{Use: "end NAME", Short: "Let a track plan no more", Args: takes("NAME"), ValidArgsFunction: a.completeKind("track"), Example: `  catenary track end shops --reason "the shops are closed"`}
	w := a.writeFlags(cmd)
	cmd.Flags().StringVar(&c.Reason, "reason", "", "why, in a `sentence`")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c.Track = args[0]
		return a.write(cmd, w, "end track "+c.Track, c)
	}
	return cmd
}
