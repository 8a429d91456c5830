package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/cockroachdb/errors"
	"github.com/spf13/cobra"

	"catenary/agent"
	"catenary/agent/desk"
	"catenary/chain"
	"catenary/es"
)

const nodeHelp = `Node tells how the agents of nodes are: who is there, who has brought about all that the node is told, and why not.

What nodes are told, and what they reported, is in the chain: see get nodes and get assignments.`

func (a *app) nodeCommand() *cobra.Command {
	return group(&cobra.Command{Use: "node", Short: "See how nodes are", Long: nodeHelp, GroupID: groupRead},
		a.nodeListCommand(), a.nodeShowCommand(), a.nodeWaitCommand(), a.nodeCheckInCommand())
}

func nodeColumns() []string {
	return []string{"NODE", "STATE", "CONVERGED", "HEARD", "AT", "PROBLEM"}
}

func (a *app) nodeLine(s *session, n desk.Node) (line, error) {
	body, err := json.Marshal(n)
	return line{name: n.Node, json: body, cells: func() []string {
		heard := ""
		if !n.Heard.IsZero() {
			heard = showTime(n.Heard, s.zone)
		}
		return []string{n.Node, n.State, yesNo(n.Converged), heard, nodeDoing(n), nodeProblem(n)}
	}}, errors.Wrapf(err, "encode node %s", n.Node)
}

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

// nodeDoing says what the agent is at.
func nodeDoing(n desk.Node) string {
	if n.Status == nil || n.Status.Doing == nil {
		return ""
	}
	return fmt.Sprintf("%s %s", n.Status.Doing.Deed, n.Status.Doing.Module)
}

// nodeProblem says why a node has not converged, in a few words; empty when it has, or is about to.
func nodeProblem(n desk.Node) string {
	if n.State == desk.External {
		return ""
	}
	switch {
	case n.State == desk.Off && n.Never:
		return "its agent was never seen"
	case n.State == desk.Off:
		return "its agent is silent"
	case n.State == desk.Unsure:
		return "not heard yet"
	}
	s := n.Status
	var said []string
	if n.Rivals {
		said = append(said, "two agents check in for it")
	}
	if s.Held != "" {
		said = append(said, s.Held)
	}
	for _, f := range s.Failed {
		first, _, _ := strings.Cut(f.Reason, "\n")
		said = append(said, f.Module+" failed: "+first)
	}
	for _, w := range s.Waiting {
		if w.For != "" {
			said = append(said, w.Module+" waits for "+w.For)
		}
	}
	for what, modules := range map[string][]string{"drifted": s.Drifted, "unhealthy": s.Unhealthy} {
		if len(modules) > 0 {
			said = append(said, what+": "+strings.Join(modules, ", "))
		}
	}
	slices.Sort(said)
	return strings.Join(said, "; ")
}

func (a *app) nodeListCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "ls", Short: "List nodes with how they are", Args: cobra.NoArgs}
	output := formatFlag(cmd, formatTable)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return a.read(cmd.Context(), func(ctx context.Context, s *session) error {
			nodes, err := s.desk().Nodes(ctx)
			if err != nil {
				return err
			}
			p := a.newPrinter(*output, nodeColumns()...)
			for _, n := range nodes {
				if n.Retired {
					continue
				}
				l, err := a.nodeLine(s, n)
				if err == nil {
					err = p.add(l)
				}
				if err != nil {
					return err
				}
			}
			return p.end()
		})
	}
	return cmd
}

func (a *app) nodeShowCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "show NODE", Short: "Show how a node is", Args: takes("NODE"), ValidArgsFunction: a.completeKind("node")}
	output := formatFlag(cmd, formatTable, formatTable, formatJSON, formatYAML)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return a.read(cmd.Context(), func(ctx context.Context, s *session) error {
			n, err := s.desk().Node(ctx, args[0])
			if err != nil {
				return s.near(ctx, err, func(k kind) bool { return k.singular == chain.Nodes.Name() }, args[0])
			}
			if *output == formatTable {
				return a.showNode(s, n)
			}
			l, err := a.nodeLine(s, n)
			if err != nil {
				return err
			}
			return a.printOne(*output, nodeColumns(), l)
		})
	}
	return cmd
}

func (a *app) showNode(s *session, n desk.Node) error {
	t := tree{app: a}
	t.linef("node %s is %s", n.Node, n.State)
	switch {
	case n.State == desk.Off && n.Never:
		t.linef("  its agent was never seen: start one on the node, with --node %s", shellWord(n.Node))
	case !n.Heard.IsZero():
		t.linef("  heard %s", showTime(n.Heard, s.zone))
	}
	if n.State != desk.External {
		t.linef("  converged: %s", yesNo(n.Converged))
	}
	if st := n.Status; st != nil {
		t.linef("  agent %s, drivers %s", n.Version, cmp.Or(strings.Join(st.Drivers, ", "), "none"))
		if st.Held != "" {
			t.linef("  it does nothing: %s", st.Held)
		}
		if d := st.Doing; d != nil {
			t.linef("  is at: %s %s, told by event %d, try %d", d.Deed, d.Module, d.Source, d.Attempt)
		}
		t.list("failed", len(st.Failed), func(i int) string {
			f := st.Failed[i]
			return fmt.Sprintf("%s, told by event %d: %s", f.Module, f.Source, strings.ReplaceAll(f.Reason, "\n", "\n      "))
		})
		t.list("waits", len(st.Waiting), func(i int) string {
			w := st.Waiting[i]
			if w.For == "" {
				return w.Module + " is tried again later"
			}
			return w.Module + " waits for " + w.For
		})
		t.list("drifted", len(st.Drifted), func(i int) string { return st.Drifted[i] })
		t.list("unhealthy", len(st.Unhealthy), func(i int) string { return st.Unhealthy[i] })
		if st.Unsent > 0 {
			t.linef("  reports not sent yet: %d", st.Unsent)
		}
		if last := st.LastStale; last != nil {
			t.linef("  refused %s as stale; the last: %s told by event %d, when event %d was known", counted(int(st.Stale), "instruction"), last.Module, last.Source, last.Known)
		}
	}
	if n.Rivals {
		t.linef("  two agents check in for it: stop one of them")
	}
	return t.print()
}

// waitPace is how often a wait looks again.
const waitPace = 200 * time.Millisecond

func (a *app) nodeWaitCommand() *cobra.Command {
	return &cobra.Command{
		Use: "wait-converged [NODE...]", Short: "Wait until nodes are as they are told", ValidArgsFunction: a.completeKind("node"),
		Long: `Wait-converged waits until the nodes, or all that agents manage, have brought about all they are told. When --timeout is over first it names
those that have not, with the reason, and ends with exit code 9: a node whose agent is off has not converged.`,
		Example: "  catenary node wait-converged --timeout 5m\n  catenary node wait-converged n1 n2",
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withBus(cmd.Context(), slog.New(slog.DiscardHandler), func(ctx context.Context, s *session) error {
				return a.waitConverged(ctx, s, args)
			})
		},
	}
}

func (a *app) waitConverged(ctx context.Context, s *session, names []string) error {
	waiting, cancel := context.WithTimeout(ctx, a.timeout)
	defer cancel()
	tick := time.NewTicker(waitPace)
	defer tick.Stop()
	var late []string
	for {
		nodes, err := s.desk().Nodes(waiting)
		switch {
		case err != nil && waiting.Err() != nil && ctx.Err() == nil:
			return a.notConverged(late, err)
		case errors.Is(err, agent.ErrNoDesk):
			late = []string{err.Error()} // a projector that starts may answer in a moment
		case err != nil:
			return err
		default:
			if late, err = unconverged(nodes, names); err != nil || len(late) == 0 {
				return err
			}
		}
		select {
		case <-tick.C:
		case <-waiting.Done():
			return a.notConverged(late, waiting.Err())
		}
	}
}

// notConverged is the error of a wait whose time is over. The cause is told only where nothing better is known.
func (a *app) notConverged(late []string, cause error) error {
	const most = 10
	if len(late) == 0 {
		late = []string{cause.Error()}
	}
	text := strings.Join(late[:min(len(late), most)], "; ")
	if len(late) > most {
		text += fmt.Sprintf("; and %d more", len(late)-most)
	}
	return errors.Mark(errors.Newf("not converged after %v: %s", a.timeout, text), context.DeadlineExceeded)
}

// unconverged lists the nodes that have not converged, each with the reason. Without names they are all that agents manage.
func unconverged(nodes []desk.Node, names []string) (late []string, err error) {
	byName := map[string]desk.Node{}
	for _, n := range nodes {
		byName[n.Node] = n
		if len(names) == 0 && !n.Retired && n.State != desk.External && !n.Converged {
			late = append(late, lateNode(n))
		}
	}
	for _, name := range names {
		n, ok := byName[name]
		switch {
		case !ok:
			return nil, errors.Mark(errors.WithHint(errors.Newf("there is no node %q", name), "get nodes lists what there is"), es.ErrNotFound)
		case n.State == desk.External:
			return nil, errors.Mark(errors.Newf("somebody else manages node %s: no agent reports what runs there", name), errRefused)
		case !n.Converged:
			late = append(late, lateNode(n))
		}
	}
	return late, nil
}

func lateNode(n desk.Node) string {
	return n.Node + ": " + cmp.Or(nodeProblem(n), nodeDoing(n), "on its way")
}
