package main

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"catenary/audit"
)

const reportHelp = `Report counts over a span of time.

  deliveries  what nodes were told: started, changed and ended
  rollbacks   changes to a lower version, and others back to something that stood there before
  drift       what differs between nodes, and between what a node was told and what it runs
  lead-time   how long it took from a commit until a node was told
`

// reportKind is a report as the tool shows it.
type reportKind struct {
	name, short string
	columns     []string
	lines       func(*session, audit.ReportAnswer) []line
	// total says the sum of the lines in words.
	total func(audit.ReportAnswer) string
	// byNodes is set for the report that compares nodes, and is counted by nothing else.
	byNodes bool
}

func (a *app) reportCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "report", Short: "Count deliveries, rollbacks and drift, and measure lead times", Long: reportHelp + questionHelp, GroupID: groupAsk,
		Example: `  catenary report deliveries --by week --since 90d
  catenary report rollbacks --by node --since 2026-05-01 --until 2026-08-01
  catenary report drift --node staging --node production
  catenary report lead-time --by module -o json`,
	}
	var subs []*cobra.Command
	for _, k := range reportKinds() {
		subs = append(subs, a.reportOfCommand(k))
	}
	return group(cmd, subs...)
}

func (a *app) reportOfCommand(k reportKind) *cobra.Command {
	q := audit.ReportQuestion{Report: k.name}
	cmd := &cobra.Command{Use: k.name, Short: k.short, Args: cobra.NoArgs}
	output := formatFlag(cmd, formatTable)
	flags := cmd.Flags()
	if k.byNodes {
		a.timeVar(flags, &q.Until, "as-of", "as it stood at this `time` (default now)")
		flags.StringArrayVar(&q.Nodes, "node", nil, "a `node` to compare; given again, every two of them (default all)")
	} else {
		ways := []string{audit.ByNode, audit.ByModule, audit.ByWeek}
		flags.StringVar(&q.By, "by", audit.ByNode, "what to count by: "+strings.Join(ways, ", "))
		a.timeVar(flags, &q.Since, "since", "from this `time` on (default all)")
		a.timeVar(flags, &q.Until, "until", "up to this `time` (default now)")
		flags.StringArrayVar(&q.Nodes, "node", nil, "only of this `node`; may be given again")
	}
	flags.StringVar(&q.Module, "module", "", "only of this `module`")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return a.read(cmd.Context(), func(ctx context.Context, s *session) error {
			q.Zone = zoneName(s.zone)
			answer, err := s.queries.Report(ctx, q)
			if err == nil && countsNothing(answer) {
				err = s.mustKnow(ctx, q.Nodes, q.Module)
			}
			if err != nil {
				return err
			}
			if err := a.showReport(s, *output, k, answer); err != nil {
				return err
			}
			return s.upTo(ctx, answer.Basis, time.Time{})
		})
	}
	return cmd
}

// countsNothing says whether there was nothing to count.
func countsNothing(r audit.ReportAnswer) bool {
	for _, d := range r.Drift {
		if len(d.Modules)+d.Alike > 0 {
			return false
		}
	}
	return len(r.Deliveries)+len(r.Rollbacks)+len(r.LeadTimes) == 0
}

// zoneName names a zone for others; the machine's own has no name that they know.
func zoneName(zone *time.Location) string {
	if zone == time.Local {
		return ""
	}
	return zone.String()
}

func (a *app) showReport(s *session, f format, k reportKind, answer audit.ReportAnswer) error {
	if f.whole() {
		return a.printWhole(f, answer)
	}
	columns := append([]string{}, k.columns...)
	if !k.byNodes {
		columns[0] = strings.ToUpper(answer.By)
	}
	p := a.newPrinter(f, columns...)
	for _, l := range k.lines(s, answer) {
		if err := p.add(l); err != nil {
			return err
		}
	}
	if err := p.end(); err != nil {
		return err
	}
	if f == formatTable {
		shows := audit.ShowsTold + ", "
		if k.byNodes {
			shows = "" // each line says what it compares
		}
		a.sayf("%s%s (%sevent %d)", k.total(answer), printable(s.spanOf(k, answer)), shows, answer.Through)
	}
	a.sayMissing(answer.Basis)
	return nil
}

// spanOf says in words which time a report is about.
func (s *session) spanOf(k reportKind, answer audit.ReportAnswer) string {
	said := ""
	if !answer.Since.IsZero() {
		said = " since " + showTime(answer.Since, s.zone)
	}
	switch {
	case answer.Until.IsZero():
	case k.byNodes:
		said = " at " + showTime(answer.Until, s.zone)
	default:
		said += " until " + showTime(answer.Until, s.zone)
	}
	return said
}

func reportKinds() []reportKind {
	return []reportKind{
		{
			name: audit.ReportDeliveries, short: "Count what nodes were told", columns: []string{"", "STARTED", "CHANGED", "ENDED"},
			lines: func(_ *session, r audit.ReportAnswer) []line {
				return linesOf(r.Deliveries, func(c audit.DeliveryCount) []string {
					return []string{c.Of, count(c.Started), count(c.Changed), count(c.Ended)}
				})
			},
			total: func(r audit.ReportAnswer) string {
				var all audit.DeliveryCount
				for _, c := range r.Deliveries {
					all.Started, all.Changed, all.Ended = all.Started+c.Started, all.Changed+c.Changed, all.Ended+c.Ended
				}
				return count(all.Started) + " started, " + count(all.Changed) + " changed, " + count(all.Ended) + " ended"
			},
		},
		{
			name: audit.ReportRollbacks, short: "Count changes back", columns: []string{"", "LOWER", "RETURNED"},
			lines: func(_ *session, r audit.ReportAnswer) []line {
				return linesOf(r.Rollbacks, func(c audit.RollbackCount) []string { return []string{c.Of, count(c.Lower), count(c.Returned)} })
			},
			total: func(r audit.ReportAnswer) string {
				var all audit.RollbackCount
				for _, c := range r.Rollbacks {
					all.Lower, all.Returned = all.Lower+c.Lower, all.Returned+c.Returned
				}
				return count(all.Lower) + " to a lower version, " + count(all.Returned) + " others back to what stood before"
			},
		},
		{
			name: audit.ReportDrift, short: "Show what differs between nodes", byNodes: true,
			columns: []string{"FROM", "TO", "DIFFER", "ALIKE", "SINGLE", "MODULES"},
			lines: func(_ *session, r audit.ReportAnswer) []line {
				return linesOf(r.Drift, func(c audit.DriftCount) []string {
					from, to := c.From, c.To
					if c.Observed {
						from, to = from+" (told)", to+" (observed)"
					}
					return []string{from, to, count(len(c.Modules)), count(c.Alike), count(c.Single), strings.Join(c.Modules, ", ")}
				})
			},
			total: func(r audit.ReportAnswer) string { return count(len(r.Drift)) + " compared" },
		},
		{
			name: audit.ReportLeadTime, short: "Measure how long deliveries took",
			columns: []string{"", "DELIVERIES", "FROM COMMIT", "MEDIAN", "90%", "LONGEST"},
			lines: func(_ *session, r audit.ReportAnswer) []line {
				return linesOf(r.LeadTimes, func(c audit.LeadTime) []string {
					return []string{c.Of, count(c.Deliveries), count(c.FromCommit), showSpan(c.Median), showSpan(c.P90), showSpan(c.Longest)}
				})
			},
			total: func(r audit.ReportAnswer) string {
				all := 0
				for _, c := range r.LeadTimes {
					all += c.Deliveries
				}
				return count(all) + " deliveries"
			},
		},
	}
}

// linesOf makes lines whose name is their first cell.
func linesOf[T any](rows []T, cells func(T) []string) []line {
	lines := make([]line, len(rows))
	for i, r := range rows {
		made := cells(r)
		lines[i] = line{name: made[0], cells: func() []string { return made }}
	}
	return lines
}

// showSpan gives a span in its two largest units: lead times are long, and their seconds say nothing.
func showSpan(d audit.Duration) string {
	units := []struct {
		name   string
		length time.Duration
	}{{"d", 24 * time.Hour}, {"h", time.Hour}, {"m", time.Minute}, {"s", time.Second}}
	left := time.Duration(d)
	for i, u := range units {
		if left < u.length {
			continue
		}
		text := count(int(left/u.length)) + u.name
		if i+1 < len(units) && left%u.length >= units[i+1].length {
			text += strconv.Itoa(int(left%u.length/units[i+1].length)) + units[i+1].name
		}
		return text
	}
	return left.Round(time.Millisecond).String()
}
