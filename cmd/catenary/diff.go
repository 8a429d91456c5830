package main

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/cockroachdb/errors"
	"github.com/spf13/cobra"

	"catenary/audit"
	"catenary/es"
)

const diffHelp = `Diff shows what differs between two moments, or between two nodes at one moment: what started, ended and changed from the
first to the second.

Two times are taken for moments; anything else for nodes. With --as-of they are always nodes, so that --as-of now settles it
for nodes that are called like times.

The exit code is 0 when nothing differs, 1 when something does, and 11 when they could not be compared.
` + questionHelp

// errStatesDiffer says that two states were compared and differ. It is no failure, and nothing is said of it.
var errStatesDiffer = errors.New("they differ")

// errNotCompared marks why two states could not be compared: the exit code of any other failure would say that they differ.
var errNotCompared = errors.New("not compared")

func (a *app) diffCommand() *cobra.Command {
	var q audit.DiffQuestion
	var at time.Time
	var node string
	cmd := &cobra.Command{
		Use: "diff {TIME1 TIME2 | NODE1 NODE2}", Short: "Show what differs between two moments or two nodes", Long: diffHelp, GroupID: groupAsk,
		Args: takes("TIME1 TIME2", "or NODE1 NODE2"), ValidArgsFunction: a.completePlaced(2, 0),
		Example: `  catenary diff yesterday now
  catenary diff "last friday 18:00" "monday 8:00" --node production
  catenary diff staging production
  catenary diff staging production --as-of 2026-08-01`,
	}
	output := formatFlag(cmd, formatTable)
	flags := cmd.Flags()
	a.timeVar(flags, &at, "as-of", "compare two nodes as they were at this `time` (default now)")
	m := a.momentFlags(flags)
	flags.StringVar(&node, "node", "", "between two moments, only of this `node`")
	flags.StringVar(&q.Module, "module", "", "only of this `module`")
	pageFlags(flags, &q.Page)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		var err error
		if q.From, q.To, err = a.sides(args[0], args[1], node, at, flags.Changed("as-of")); err != nil {
			return err
		}
		for _, side := range []*audit.Side{&q.From, &q.To} {
			side.KnownAt, side.Observed = m.known, m.observed
		}
		err = a.read(cmd.Context(), func(ctx context.Context, s *session) error {
			answer, err := s.diff(ctx, q)
			if nodes := emptySides(answer); err == nil && len(nodes) > 0 {
				module := q.Module
				if len(nodes) == 1 {
					module = "" // the other one has it
				}
				err = s.mustKnow(ctx, nodes, module)
			}
			if err != nil {
				return err
			}
			err = a.showDiff(s, *output, answer)
			if err == nil || errors.Is(err, errStatesDiffer) {
				// What differs may be out of date, and so may what does not.
				err = cmp.Or(s.upTo(ctx, answer.Basis, answer.To.KnownAt), err)
			}
			return err
		})
		if err != nil && !errors.IsAny(err, errStatesDiffer, errStale) {
			err = errors.Mark(err, errNotCompared)
		}
		return err
	}
	return cmd
}

// sides says what is compared with what. It gives usage errors.
func (a *app) sides(one, two, node string, at time.Time, asOf bool) (from, to audit.Side, err error) {
	first, firstErr := a.parseTime(one)
	second, secondErr := a.parseTime(two)
	switch {
	case asOf || firstErr != nil && secondErr != nil:
		if node != "" {
			return from, to, usagef("--node is for two moments, and two nodes are given")
		}
		from, to = audit.Side{Node: one}, audit.Side{Node: two}
		from.At, to.At = at, at
		return from, to, nil
	case firstErr != nil, secondErr != nil:
		err := errors.CombineErrors(firstErr, secondErr)
		return from, to, errors.WithHint(err, "the other one is a time: give two times, or two nodes; with --as-of now both are nodes")
	}
	from, to = audit.Side{Node: node}, audit.Side{Node: node}
	from.At, to.At = first, second
	return from, to, nil
}

// emptySides gives the nodes that have nothing at all.
func emptySides(d audit.DiffAnswer) []string {
	var nodes []string
	if d.Ended+d.Changed+d.Same == 0 {
		nodes = append(nodes, d.From.Node)
	}
	if d.Started+d.Changed+d.Same == 0 {
		nodes = append(nodes, d.To.Node)
	}
	return nodes
}

// diff gives the whole answer, or the page that is asked for.
func (s *session) diff(ctx context.Context, q audit.DiffQuestion) (audit.DiffAnswer, error) {
	answer, err := s.queries.Diff(ctx, q)
	for whole := q.Limit == 0; err == nil && whole && answer.Next != ""; {
		q.From.Moment, q.To.Moment, q.Cursor = answer.From.Moment, answer.To.Moment, answer.Next
		var page audit.DiffAnswer
		if page, err = s.queries.Diff(ctx, q); err == nil {
			answer.Differences, answer.Next = append(answer.Differences, page.Differences...), page.Next
		}
	}
	return answer, err
}

// showDiff shows the differences. It gives errStatesDiffer when there are any.
func (a *app) showDiff(s *session, f format, answer audit.DiffAnswer) error {
	nodes := answer.From.Node != "" && answer.From.Node != answer.To.Node
	if f.whole() {
		if err := a.printWhole(f, answer); err != nil {
			return err
		}
	} else {
		columns := []string{"WHAT", "NODE", "MODULE", "BEFORE", "AFTER", "SINCE", "EVENT"}
		if nodes {
			columns = []string{"WHAT", "MODULE", strings.ToUpper(answer.From.Node), strings.ToUpper(answer.To.Node)}
		}
		p := a.newPrinter(f, columns...)
		for _, d := range answer.Differences {
			if err := p.add(a.difference(s, d, answer, nodes)); err != nil {
				return err
			}
		}
		if err := p.end(); err != nil {
			return err
		}
	}
	if f == formatTable {
		a.sayf("%s", printable(s.compared(answer, nodes)))
	}
	a.sayMissing(answer.Basis)
	a.sayMore(answer.Next)
	if answer.Differs() {
		return errStatesDiffer
	}
	return nil
}

// compared says in words what was compared, and how it differs.
func (s *session) compared(d audit.DiffAnswer, nodes bool) string {
	if nodes {
		return fmt.Sprintf("%s and %s: %s differ, %s are only on %s and %s only on %s, %s are the same (event %d)", s.side(d.From), s.side(d.To),
			count(d.Changed), count(d.Ended), d.From.Node, count(d.Started), d.To.Node, count(d.Same), d.Through)
	}
	return fmt.Sprintf("%s to %s: %s started, %s ended, %s changed, %s the same (event %d)", s.side(d.From), s.side(d.To),
		count(d.Started), count(d.Ended), count(d.Changed), count(d.Same), d.Through)
}

// side says in words what was compared.
func (s *session) side(d audit.DiffSide) string {
	said := map[string]string{audit.ShowsTold: "told", audit.ShowsObserved: "observed"}[d.Shows] + " at " + showTime(d.At, s.zone)
	if d.Node != "" {
		said = d.Node + ", " + said
	}
	if !d.KnownAt.IsZero() {
		said += " as known at " + showTime(d.KnownAt, s.zone)
	}
	return said
}

func (a *app) difference(s *session, d audit.Difference, answer audit.DiffAnswer, nodes bool) line {
	names := []string{d.Node, d.Module}
	what := d.Kind
	if nodes {
		names = names[1:]
		// Nothing started or ended: one of the two has it and the other has not.
		what = map[string]string{audit.DiffStarted: "only " + answer.To.Node, audit.DiffEnded: "only " + answer.From.Node, audit.DiffChanged: "differs"}[d.Kind]
	} else if d.Node == "" {
		names[0] = answer.From.Node
	}
	shade := map[string]colour{audit.DiffStarted: green, audit.DiffEnded: red, audit.DiffChanged: yellow}[d.Kind]
	return line{name: es.Key(names...), shade: shade, cells: func() []string {
		cells := append(append([]string{what}, names...), runs(d.Before), runs(d.After))
		if nodes {
			return cells
		}
		since, event := "", ""
		if d.After != nil {
			since, event = showTime(d.After.Since, s.zone), number(d.After.Sequence)
		}
		return append(cells, since, event)
	}}
}
