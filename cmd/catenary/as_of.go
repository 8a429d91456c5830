package main

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"catenary/audit"
	"catenary/es"
)

const asOfHelp = `As-of shows what stood at a moment: every assignment of the whole chain, or of one node or module.

It answers what nodes were told, or with --observed what they reported to run. With --known-at it leaves out what was recorded
later, so that it says what anybody could have known then.
` + questionHelp + ` It may be several words without quotes.`

func (a *app) asOfCommand() *cobra.Command {
	var q audit.AsOfQuestion
	cmd := &cobra.Command{
		Use: "as-of TIME", Short: "Show what stood at a moment", Long: asOfHelp, GroupID: groupAsk,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usagef("%s takes TIME, such as now or yesterday 16:00", cmd.CommandPath())
			}
			return nil
		},
		Example: `  catenary as-of last tuesday 16:00 --node production
  catenary as-of 2026-08-01 --zone Europe/London -o json
  catenary as-of 2h ago --observed
  catenary as-of 2026-08-01 --known-at 2026-08-01`,
	}
	output := formatFlag(cmd, formatTable)
	flags := cmd.Flags()
	m := a.momentFlags(flags)
	flags.StringVar(&q.Node, "node", "", "only of this `node`")
	flags.StringVar(&q.Module, "module", "", "only of this `module`")
	pageFlags(flags, &q.Page)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		at, err := a.parseTime(strings.Join(args, " "))
		if err != nil {
			return err
		}
		q.Moment, q.Observed = audit.Moment{At: at, KnownAt: m.known}, m.observed
		return a.read(cmd.Context(), func(ctx context.Context, s *session) error {
			answer, err := s.asOf(ctx, q)
			if err == nil && len(answer.Assignments) == 0 {
				err = s.mustKnow(ctx, []string{q.Node}, q.Module)
			}
			if err != nil {
				return err
			}
			if err := a.showAsOf(s, *output, answer); err != nil {
				return err
			}
			return s.upTo(ctx, answer.Basis, answer.KnownAt)
		})
	}
	return cmd
}

// asOf gives the whole answer, or the page that is asked for.
func (s *session) asOf(ctx context.Context, q audit.AsOfQuestion) (audit.AsOfAnswer, error) {
	answer, err := s.queries.AsOf(ctx, q)
	for whole := q.Limit == 0; err == nil && whole && answer.Next != ""; {
		// The same moment, whatever the clock says by now.
		q.Moment, q.Cursor = answer.Moment, answer.Next
		var page audit.AsOfAnswer
		if page, err = s.queries.AsOf(ctx, q); err == nil {
			answer.Assignments, answer.Next = append(answer.Assignments, page.Assignments...), page.Next
		}
	}
	return answer, err
}

func (a *app) showAsOf(s *session, f format, answer audit.AsOfAnswer) error {
	if f.whole() {
		if err := a.printWhole(f, answer); err != nil {
			return err
		}
		a.sayMore(answer.Next)
		return nil
	}
	columns := []string{"NODE", "MODULE", "TOLD", "SINCE", "COMMIT", "REQUIRED BY", "EVENT"}
	if answer.Shows == audit.ShowsObserved {
		columns = []string{"NODE", "MODULE", "OBSERVED", "SINCE", "REPORTED", "HEALTH", "EVENT"}
	}
	p := a.newPrinter(f, columns...)
	for _, stood := range answer.Assignments {
		if err := p.add(line{name: es.Key(stood.Node, stood.Module), cells: func() []string {
			cells := []string{stood.Node, stood.Module, runs(&stood), showTime(stood.Since, s.zone)}
			if answer.Shows == audit.ShowsObserved {
				cells = append(cells, showTime(stood.Reported, s.zone), showHealth(stood))
			} else {
				cells = append(cells, shortCommit(stood.Commit), strings.Join(stood.RequiredBy, ", "))
			}
			return append(cells, number(stood.Sequence))
		}}); err != nil {
			return err
		}
	}
	if err := p.end(); err != nil {
		return err
	}
	if f == formatTable {
		a.sayf("%s: %s", printable(s.saidOf(answer.Shows, answer.Moment, answer.Basis)), count(len(answer.Assignments)))
	}
	a.sayMissing(answer.Basis)
	a.sayMore(answer.Next)
	return nil
}

// showHealth says in words what a node reported beside what it runs.
func showHealth(s audit.Standing) string {
	var words []string
	if s.Healthy != nil {
		words = append(words, map[bool]string{true: "healthy", false: "unhealthy"}[*s.Healthy])
	}
	if s.Drift != "" {
		words = append(words, "drift: "+s.Drift)
	}
	return strings.Join(words, ", ")
}
