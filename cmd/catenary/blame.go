package main

import (
	"context"
	"strings"
	"time"

	"github.com/cockroachdb/errors"
	"github.com/spf13/cobra"

	"catenary/audit"
)

const blameHelp = `Blame says where what a node runs comes from: who put it there, on whose behalf, when, why, by which rollout, command and
event, what was there before, and of which build and commit it is.

It answers what the node was told, or with --observed what it reported to run. When the module did not stand there, it says who
ended it.
` + questionHelp

func (a *app) blameCommand() *cobra.Command {
	var q audit.BlameQuestion
	var at time.Time
	cmd := &cobra.Command{
		Use: "blame NODE MODULE", Short: "Show who put a module on a node, and why", Long: blameHelp, GroupID: groupAsk,
		Args: takes("NODE", "MODULE"), ValidArgsFunction: a.completePlaced(1, 1),
		Example: `  catenary blame production shop
  catenary blame production shop --as-of "last tuesday 16:00"
  catenary blame production shop --observed -o json`,
	}
	output := formatFlag(cmd, formatTable)
	a.timeVar(cmd.Flags(), &at, "as-of", "what stood at this `time` (default now)")
	m := a.momentFlags(cmd.Flags())
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		q.Node, q.Module = args[0], args[1]
		q.Moment, q.Observed = audit.Moment{At: at, KnownAt: m.known}, m.observed
		return a.read(cmd.Context(), func(ctx context.Context, s *session) error {
			answer, err := s.queries.Blame(ctx, q)
			if err != nil {
				return s.near(ctx, errors.Wrapf(err, "blame %s %s", shellWord(q.Node), shellWord(q.Module)), placed, q.Node, q.Module)
			}
			if err := a.showBlame(s, *output, answer); err != nil {
				return err
			}
			return s.upTo(ctx, answer.Basis, answer.KnownAt)
		})
	}
	return cmd
}

func (a *app) showBlame(s *session, f format, b audit.BlameAnswer) error {
	if f.whole() {
		return a.printWhole(f, b)
	}
	p := a.newPrinter(f, "", "")
	if f == formatName {
		// The event is what can be looked at further: in the log, and in a proof.
		if err := p.add(line{name: number(b.Change.Sequence)}); err != nil {
			return err
		}
		return p.end()
	}
	p.table = newTable(nil)
	for _, row := range s.blameRows(b) {
		if row[1] == "" {
			continue
		}
		if err := p.add(line{cells: func() []string { return row[:] }}); err != nil {
			return err
		}
	}
	if err := p.end(); err != nil {
		return err
	}
	a.sayf("%s", printable(s.saidOf(b.Shows, b.Moment, b.Basis)))
	a.sayMissing(b.Basis)
	return nil
}

// blameRows are the lines of an answer for people; those without a second cell are left out.
func (s *session) blameRows(b audit.BlameAnswer) [][2]string {
	is := map[string]string{audit.ShowsTold: "told", audit.ShowsObserved: "observed"}[b.Shows]
	rows := [][2]string{{"node", b.Node}, {"module", b.Module}, {is, "nothing"}}
	if b.Now != nil {
		rows[2][1] = runs(b.Now)
		rows = append(rows, [2]string{"since", showTime(b.Now.Since, s.zone)}, [2]string{"required by", strings.Join(b.Now.RequiredBy, ", ")})
	}
	rows = append(rows, s.deedRows(b.Change)...)
	if b.Touched != nil {
		rows = append(rows, [2]string{"said again", showTime(b.Touched.Effective, s.zone) + " by " + who(*b.Touched) + ", event " + number(b.Touched.Sequence)})
	}
	rows = append(rows, [2]string{"before", "nothing"})
	if b.Before != nil {
		rows[len(rows)-1][1] = runs(b.Before) + ", since " + showTime(b.Before.Since, s.zone)
	}
	if b.Published != nil {
		published := showTime(b.Published.At, s.zone)
		if b.Published.Vetoed {
			published += " (vetoed)"
		}
		rows = append(rows, [2]string{"published", published})
	}
	if b.Build != nil {
		rows = append(rows, [2]string{"build", b.Build.ID + " at " + showTime(b.Build.At, s.zone)})
	}
	if b.Commit != nil {
		rows = append(rows, [2]string{"commit", s.tracedCommit(*b.Commit)})
	} else if b.Now != nil && b.Now.Commit != "" {
		rows = append(rows, [2]string{"commit", b.Now.Commit})
	}
	return rows
}

// deedRows say who did something, when and why.
func (s *session) deedRows(d audit.Deed) [][2]string {
	when := showTime(d.Effective, s.zone)
	if !d.Effective.Equal(d.Recorded) {
		when += ", recorded " + showTime(d.Recorded, s.zone)
	}
	if d.Backfill {
		when += " (backfill)"
	}
	event := number(d.Sequence) + " " + d.Type
	if d.Event != "" {
		event += " " + d.Event
	}
	return [][2]string{
		{"by", who(d)}, {"when", when}, {"why", d.Reason}, {"rollout", d.Rollout}, {"command", d.Command},
		{"caused by", d.Causation}, {"correlation", d.Correlation}, {"event", event},
	}
}

// who says who did something, and on whose behalf.
func who(d audit.Deed) string {
	by := d.Actor.String()
	if d.OnBehalfOf != nil {
		by += " on behalf of " + d.OnBehalfOf.String()
	}
	return by
}

func (s *session) tracedCommit(c audit.TracedCommit) string {
	said := c.Commit + " of " + c.Repository
	if c.Author != nil {
		said += " by " + c.Author.String()
	}
	if !c.Merged.IsZero() {
		said += ", merged " + showTime(c.Merged, s.zone)
	}
	return said
}
