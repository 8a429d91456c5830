package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/cockroachdb/errors"
	"github.com/spf13/cobra"

	"catenary/internal/cluster"
	"catenary/internal/diagnosis"
	"catenary/internal/health"
	"catenary/internal/natsconn"
	"catenary/internal/topology"
)

const clusterCheckHelp = `Check asks all servers how they are and what they hold, and names each stream, bucket and copy with the servers that hold it: who leads, who is off, who is
behind, what has no replica although it could have one, and what would stop with the next loss. Each finding comes with what to do. It needs a connection as any
person has, and no process of the chain.

Of one server that stands alone it says what that means.

It ends with 0 for OK, 1 for WARNING, 2 for CRITICAL and 3 for UNKNOWN, as catenary check does.`

// clusterChecked is what a check of the cluster comes to.
type clusterChecked struct {
	Status string `json:"status"`
	Exit   int    `json:"exit"`
	// Findings are the worst first.
	Findings []diagnosis.Problem `json:"findings"`
	cluster.View
}

func (a *app) clusterCommand() *cobra.Command {
	return group(&cobra.Command{Use: "cluster", Short: "See how the servers are, and what each holds", GroupID: groupRun}, a.clusterCheckCommand(), a.clusterWaitCommand())
}

const clusterWaitHelp = `Wait waits until every server answers and each stream is on all servers that are to hold it: only then the next one may be stopped, as when all are restarted one after
another. It waits as long as --timeout says, also for a first server that
answers, and ends with 9 after that, or with 10 when none answers.`

// clusterPoll is how often the servers are asked while one is waited for.
const clusterPoll = 500 * time.Millisecond

func (a *app) clusterWaitCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "wait", Short: "Wait until the next server may be stopped", Long: clusterWaitHelp, Args: cobra.NoArgs,
		Example: "  catenary cluster wait\n  catenary cluster wait --timeout 5m",
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return a.waitForCluster(cmd.Context()) }
	return cmd
}

// waitForCluster asks until all servers hold what they are to hold.
func (a *app) waitForCluster(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, a.timeout)
	defer cancel()
	s, err := a.dialFirst(ctx, a.quietBus())
	if err != nil {
		return err
	}
	defer s.conn.Close()
	asking, forbid := s.conn.WithDenial(ctx)
	defer forbid()
	tick := time.NewTicker(clusterPoll)
	defer tick.Stop()
	lacking := "nobody has said how the servers are"
	for {
		view, err := cluster.Ask(asking, s.conn.Conn)
		switch {
		case errors.Is(err, cluster.ErrSilent):
			return errors.WithHint(err, hintSilent)
		case err == nil:
			if lacking = view.Lacking(); lacking == "" {
				a.sayf("%d servers hold all that they are to hold", len(view.Servers))
				return nil
			}
		case errors.Is(context.Cause(asking), natsconn.ErrDenied):
			return context.Cause(asking)
		case ctx.Err() == nil:
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return errors.WithHint(errors.Wrap(ctx.Err(), lacking), "catenary cluster check says what to do")
		}
	}
}

// dialFirst connects to the first server that is there: all of them may be starting. It gives what was wrong last when the context ends.
func (a *app) dialFirst(ctx context.Context, config natsconn.Config) (*session, error) {
	tick := time.NewTicker(clusterPoll)
	defer tick.Stop()
	var unreached error
	for {
		s, err := a.dial(ctx, config)
		switch {
		case errors.Is(err, natsconn.ErrUnreachable):
			unreached = err
		case err != nil && ctx.Err() != nil && unreached != nil:
			return nil, unreached
		default:
			return s, err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil, unreached
		}
	}
}

func (a *app) clusterCheckCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "check", Short: "Say what is not replicated, behind or unsafe", Long: clusterCheckHelp,
		Example: "  catenary cluster check\n  catenary cluster check -o nagios\n  catenary cluster check -o json",
	}
	output := formatFlag(cmd, formatText, formatText, formatJSON, formatYAML, formatNagios)
	a.answersUnknown(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		s, err := a.dialBriefly(cmd.Context())
		switch {
		case errors.IsAny(err, natsconn.ErrConfig, natsconn.ErrDenied):
			return a.unknown(err)
		case errors.Is(err, natsconn.ErrUnreachable):
			return a.showClusterCheck(clusterChecked{Findings: diagnosis.Unreached(err)}, *output)
		case err != nil:
			return a.unknown(err)
		}
		defer s.conn.Close()
		asking, forbid := s.conn.WithDenial(cmd.Context())
		defer forbid()
		view, err := cluster.Ask(asking, s.conn.Conn)
		if err != nil {
			return a.unknown(errors.WithHint(err, hintSilent))
		}
		return a.showClusterCheck(clusterChecked{View: view, Findings: diagnosis.Cluster(view)}, *output)
	}
	return cmd
}

const hintSilent = "write the servers' configuration again with catenary configure, which lets people ask them, and have them read it"

func (a *app) showClusterCheck(c clusterChecked, output format) error {
	state := health.OK
	for _, f := range c.Findings {
		state = state.Worse(f.State)
	}
	c.Status, c.Exit = exitNames()[state], checkCode(state)
	var err error
	switch output {
	case formatNagios:
		_, err = a.Stdout.Write([]byte(c.nagios()))
	case formatText:
		err = a.showCluster(c)
	default:
		var body []byte
		if body, err = json.Marshal(c); err == nil {
			err = a.printOne(output, nil, line{name: "cluster", json: body})
		}
	}
	if err != nil {
		return errors.Wrap(err, "write the output")
	}
	return checkedWith(c.Exit)
}

// showCluster shows two tables, and then what there is to say.
func (a *app) showCluster(c clusterChecked) error {
	if len(c.Servers) > 0 {
		p := a.newPrinter(formatTable, "SERVER", "VERSION", "SYNC", "STATE")
		for _, s := range c.Servers {
			if err := p.add(line{shade: shadeIf(s.Off || !s.JetStream), cells: func() []string { return serverCells(c.View, s) }}); err != nil {
				return err
			}
		}
		if err := p.end(); err != nil {
			return err
		}
	}
	if len(c.Streams) > 0 {
		p := a.newPrinter(formatTable, "ACCOUNT", "STREAM", "REPLICAS", "LEADER", "PROBLEM")
		p.text("\n")
		for _, s := range c.Streams {
			problem := streamProblem(s)
			if err := p.add(line{shade: shadeIf(problem != ""), cells: func() []string {
				return []string{s.Account, s.Name, fmt.Sprintf("%d/%d", s.There, s.Wanted), s.Leader, problem}
			}}); err != nil {
				return err
			}
		}
		if err := p.end(); err != nil {
			return err
		}
	}
	zone, err := a.location()
	if err != nil {
		return err
	}
	var text strings.Builder
	if len(c.Servers) > 0 {
		text.WriteByte('\n')
	}
	for _, f := range c.Findings {
		a.writeProblem(&text, f, zone)
	}
	_, err = a.Stdout.Write([]byte(text.String()))
	return err
}

func shadeIf(bad bool) colour {
	if bad {
		return yellow
	}
	return ""
}

func serverCells(v cluster.View, s cluster.Server) []string {
	switch {
	case s.Off:
		return []string{s.Name, "", "", "off"}
	case !s.JetStream:
		return []string{s.Name, s.Version, "", "without JetStream"}
	}
	sync, state := "always", "on"
	if !s.SyncAlways {
		sync = fmt.Sprintf("every %.0f s", s.SyncSeconds)
	}
	if v.Leader == s.Name {
		state = "on, leads the cluster"
	}
	return []string{s.Name, s.Version, sync, state}
}

// streamProblem says what is wrong with a stream, in a few words.
func streamProblem(s cluster.Stream) string {
	var said []string
	if s.Leader == "" {
		said = append(said, "no leader")
	}
	for _, p := range s.Peers {
		switch {
		case p.Off:
			said = append(said, p.Server+" is off")
		case p.Joining:
			said = append(said, p.Server+" is joining")
		case p.Behind():
			said = append(said, fmt.Sprintf("%s is behind by %d", p.Server, p.Lag))
		}
	}
	switch m := s.Mirror; {
	case m == nil:
	case m.Problem != "":
		said = append(said, m.Problem)
	case !m.Following:
		said = append(said, "does not follow its bucket")
	case m.Lag > 0:
		said = append(said, fmt.Sprintf("%d values to come", m.Lag))
	}
	return strings.Join(said, ", ")
}

// nagios writes the check in a line with figures, and a line for each further finding.
func (c clusterChecked) nagios() string {
	bad := slices.DeleteFunc(slices.Clone(c.Findings), func(p diagnosis.Problem) bool { return p.State == health.OK })
	off, lacking, without := 0, 0, 0
	for _, s := range c.Servers {
		if s.Off {
			off++
		}
	}
	for _, s := range c.Streams {
		switch {
		case s.Leader == "":
			without++
		case s.There < max(s.Wanted, min(topology.ReplicasOf(c.Size), 2)):
			lacking++
		}
	}
	return nagios("CATENARY CLUSTER", c.Status, bad, fmt.Sprintf("%d servers hold %d streams", len(c.Servers), len(c.Streams)), []string{
		fmt.Sprintf("servers=%d;;;0", len(c.Servers)), fmt.Sprintf("off=%d;;;0", off), fmt.Sprintf("streams=%d;;;0", len(c.Streams)),
		fmt.Sprintf("lacking=%d;;;0", lacking), fmt.Sprintf("leaderless=%d;;;0", without),
	})
}
