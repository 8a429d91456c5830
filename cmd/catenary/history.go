package main

import (
	"context"
	"strconv"

	"github.com/spf13/cobra"
)

const historyHelp = `History shows every value a record ever had, oldest first, with the event it came from, its two times and who did it.

Recorded is when the chain was told, effective when it became true.`

func (a *app) historyCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "history", Short: "Show every value a record ever had", Long: historyHelp, GroupID: groupRead,
		Example: "  catenary history assignment n1 web",
	}
	var subs []*cobra.Command
	for _, k := range kinds() {
		subs = append(subs, a.historyOfCommand(k))
	}
	return group(cmd, subs...)
}

func (a *app) historyOfCommand(k kind) *cobra.Command {
	cmd := &cobra.Command{
		Use: k.singular + " " + k.names, Short: "Show every value of one " + k.singular, ValidArgsFunction: a.completeNames(k),
		Args: func(_ *cobra.Command, args []string) error {
			_, err := k.parse(args)
			return err
		},
	}
	output := formatFlag(cmd, formatTable)
	atLeast := atLeastFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		names, err := k.parse(args)
		if err != nil {
			return err
		}
		return a.readRecords(cmd.Context(), k, names, *atLeast, func(ctx context.Context, s *session) error {
			changes, err := k.history(ctx, s, names)
			if err != nil {
				return s.near(ctx, err, k.beside, names...)
			}
			p := a.newPrinter(*output, append([]string{"SEQUENCE", "EFFECTIVE", "RECORDED", "BY", "ON BEHALF OF"}, k.columns...)...)
			for _, c := range changes {
				if err := p.add(line{name: strconv.FormatUint(c.sequence, 10), json: c.json, shade: c.record.shade, cells: func() []string {
					return append([]string{
						strconv.FormatUint(c.sequence, 10), showTime(c.effective, s.zone), showTime(c.recorded, s.zone), c.actor, c.onBehalfOf,
					}, c.record.cells()...)
				}}); err != nil {
					return err
				}
			}
			return p.end()
		})
	}
	return cmd
}
