package diagnosis

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"catenary/agent/desk"
	"catenary/internal/health"
)

const (
	// skewWarns is from how far apart clocks are named: what was recorded when is read by people, to the second.
	skewWarns = 2 * time.Second
	// skewFails is from where commands are refused that carry an id or a time of the other clock.
	skewFails = 5 * time.Minute
	// namedNodes bounds how many nodes a problem names.
	namedNodes = 5
	// scarceBytes is the free part of a disk below which it is named: a busy chain writes so much in an hour.
	scarceBytes = 1 << 30
)

// Diagnose says what is wrong.
func Diagnose(e Evidence) Diagnosis {
	d := &Diagnosis{State: health.OK, Problems: []Problem{}}
	d.store(e)
	if d.server(e) {
		d.servers(e)
		d.processes(e)
		d.missing(e)
		d.copies(e)
		d.clocks(e)
		d.versions(e)
		d.nodes(e)
		d.measure(e)
	}
	slices.SortStableFunc(d.Problems, func(a, b Problem) int { return cmp.Compare(rank(a.State), rank(b.State)) })
	return *d
}

// rank puts the worst first.
func rank(s health.State) int {
	return map[health.State]int{health.Fail: 0, health.Warn: 1, health.OK: 2}[s]
}

func (d *Diagnosis) add(p Problem) {
	if p.State == health.OK {
		d.Well = append(d.Well, p)
		return
	}
	d.State = d.State.Worse(p.State)
	d.Problems = append(d.Problems, p)
}

// store judges a store directory on its own: that works when nothing runs.
func (d *Diagnosis) store(e Evidence) {
	switch s := e.Store; {
	case s == nil:
	case s.Problem != nil:
		d.add(Problem{About: "store", State: health.Fail, Code: health.Missing, What: s.Problem.Error(), Next: "give the directory that the server keeps its store in, with --store"})
	case s.Free < scarceBytes:
		d.add(Problem{
			About: "disk", State: health.Warn, Code: health.Scarce, What: fmt.Sprintf("%d bytes are free below %s", s.Free, s.Dir),
			Next: "free some of the disk, or move the store to a larger one, before the server has to refuse",
		})
	default:
		d.add(Problem{About: "disk", State: health.OK, What: fmt.Sprintf("%d bytes are free below %s", s.Free, s.Dir)})
	}
}

// server says whether there is a bus to ask on.
func (d *Diagnosis) server(e Evidence) bool {
	switch {
	case e.Denied:
		d.add(Problem{
			About: "server", State: health.Fail, What: e.Unreached.Error(),
			Next: "ask with credentials of somebody who may: --creds, --context, or NATS_USER and NATS_PASSWORD",
		})
	case e.Unreached != nil:
		for _, p := range Unreached(e.Unreached) {
			d.add(p)
		}
	default:
		d.add(Problem{About: "server", State: health.OK, What: "it answers at " + e.Server})
		return true
	}
	return false
}

// servers takes over what the servers come to.
func (d *Diagnosis) servers(e Evidence) {
	switch {
	case e.Servers != nil:
		for _, p := range Cluster(*e.Servers) {
			if p.Code == health.Volatile {
				// Who runs a chain so has chosen it, and need not be told all the time.
				p.State, p.Next = health.OK, ""
			}
			d.add(p)
		}
	case e.ServersError != nil:
		d.add(Problem{
			About: "servers", State: health.Warn, Code: health.Missing, What: "the servers do not say how they are: " + e.ServersError.Error(),
			Next: "write their configuration again with catenary configure, which lets people ask them, and have them read it",
		})
	}
}

// name tells processes of one kind apart.
func name(r health.Heard) string {
	return fmt.Sprintf("%s (%s, process %d)", r.Program, r.Host, r.PID)
}

// processes takes over what the processes say of themselves.
func (d *Diagnosis) processes(e Evidence) {
	for _, r := range e.Reports {
		for _, c := range r.Checks {
			d.add(Problem{About: name(r) + ": " + c.Name, State: c.State, Code: c.Code, What: c.Reason, Next: c.Next, Since: c.Since})
		}
	}
}

// having gives the reports that have a check.
func (e Evidence) having(check string) []health.Heard {
	return slices.DeleteFunc(slices.Clone(e.Reports), func(r health.Heard) bool {
		_, ok := r.Check(check)
		return !ok
	})
}

// missing names who is not there.
func (d *Diagnosis) missing(e Evidence) {
	absent := func(about string, state health.State, what, next string) {
		d.add(Problem{About: about, State: state, Code: health.Missing, What: what, Next: next})
	}
	writers := e.having(health.CheckWriter)
	active := 0
	for _, r := range writers {
		c, _ := r.Check(health.CheckWriter)
		if _, ok := c.Measure(health.Active); ok {
			active++
		}
	}
	switch {
	case len(writers) == 0:
		absent("writer", health.Fail, "no writer answers: no command is taken", "start one (writer --config FILE, or catenary up); if one runs, it is stopped or cut off: look into its log")
	case active == 0:
		absent("writer", health.Fail, fmt.Sprintf("none of %d writers takes commands", len(writers)), "wait a few seconds for one to take over; then look into their logs")
	case active > 1:
		d.add(Problem{
			About: "writer", State: health.Warn, Code: health.Fenced, What: fmt.Sprintf("%d writers take commands at once: nothing is lost by it, and each has to decide again what the other was faster with", active),
			Next: "wait a few seconds; if it stays so, stop all but one",
		})
	}
	if len(e.having(health.CheckProjector)) == 0 {
		what := "no projector answers: what people read does not go on"
		if behind, ok := e.behindByCopies(); ok {
			what += fmt.Sprintf("; it is behind by at most %d events", behind)
		}
		absent("projector", health.Fail, what, "start one (projector --config FILE, or catenary up); if one runs, it is stopped or cut off: look into its log")
	}
	if len(e.having(health.CheckEngine)) == 0 {
		absent("engine", health.Warn, "no engine answers: rollouts do not walk", "start one (engine --config FILE, or catenary up), unless rollouts are walked by hand")
	}
}

// behindByCopies is how far behind the newest value of all copies is.
func (e Evidence) behindByCopies() (uint64, bool) {
	var newest uint64
	for _, c := range e.Copies {
		newest = max(newest, c.Event)
	}
	return e.Tail - min(e.Tail, newest), e.Tail > 0
}

// copies names what people can't read.
func (d *Diagnosis) copies(e Evidence) {
	var bad []string
	why := ""
	for _, c := range e.Copies {
		if c.Problem != "" {
			bad, why = append(bad, c.View), c.Problem
		}
	}
	if len(bad) > 0 {
		d.add(Problem{
			About: "copies", State: health.Fail, Code: health.Missing, What: fmt.Sprintf("%s can't be read here: %s", list(bad), why),
			Next: "start a projector with mirrors-nkey, which makes the copies and keeps them",
		})
	}
}

// clocks names processes whose clock differs from this machine's.
func (d *Diagnosis) clocks(e Evidence) {
	for _, r := range e.Reports {
		ahead, doubt := r.Skew()
		off := max(ahead.Abs()-doubt, 0)
		if off < skewWarns {
			continue
		}
		state, way := health.Warn, "ahead of"
		if off >= skewFails {
			state = health.Fail
		}
		if ahead < 0 {
			way = "behind"
		}
		d.add(Problem{
			About: name(r) + ": clock", State: state, Code: health.Skewed, What: fmt.Sprintf("it is %s %s the clock here", off.Round(time.Second), way),
			Next: "have both machines keep time (chronyd, systemd-timesyncd)",
		})
	}
}

// versions names programs of different versions.
func (d *Diagnosis) versions(e Evidence) {
	found := map[string][]string{}
	for _, r := range e.Reports {
		found[r.Version] = append(found[r.Version], r.Program)
	}
	if e.Version != "" && len(e.Reports) > 0 {
		found[e.Version] = append(found[e.Version], "this tool")
	}
	if len(found) < 2 {
		return
	}
	var parts []string
	for version, programs := range found {
		slices.Sort(programs)
		parts = append(parts, version+": "+strings.Join(slices.Compact(programs), ", "))
	}
	slices.Sort(parts)
	d.add(Problem{
		About: "versions", State: health.Warn, Code: health.Mixed, What: "programs of several versions run: " + strings.Join(parts, "; "),
		Next: "bring all to the newest one, the projectors first",
	})
}

// nodes names agents that are silent, or could not do what they are told.
func (d *Diagnosis) nodes(e Evidence) {
	if e.NodesError != nil {
		d.add(Problem{
			About: "nodes", State: health.Warn, Code: health.Missing, What: "how nodes are is not known: " + e.NodesError.Error(), Next: "start a projector: agents check in at it",
		})
		return
	}
	var off, undone, rivals []string
	why := ""
	for _, n := range e.Nodes {
		switch {
		case n.Retired || n.State == desk.External:
		case n.Rivals:
			rivals = append(rivals, n.Node)
		case n.State == desk.Off:
			off = append(off, n.Node)
		case n.Status != nil && len(n.Status.Failed) > 0:
			undone = append(undone, n.Node)
			why, _, _ = strings.Cut(n.Status.Failed[0].Module+": "+n.Status.Failed[0].Reason, "\n")
		case n.Status != nil && len(n.Status.Unhealthy) > 0:
			undone, why = append(undone, n.Node), n.Status.Unhealthy[0]+" is not healthy"
		case n.Status != nil && len(n.Status.Drifted) > 0:
			undone, why = append(undone, n.Node), n.Status.Drifted[0]+" is not what was applied"
		}
	}
	if len(off) > 0 {
		d.add(Problem{About: "nodes", State: health.Warn, Code: health.Off, What: "no agent is heard of " + list(off), Next: "see whether the machine and its agent run, and reach the bus; retire a node that is gone"})
	}
	if len(undone) > 0 {
		d.add(Problem{About: "nodes", State: health.Warn, Code: health.Undone, What: fmt.Sprintf("not all is as told on %s (%s)", list(undone), why), Next: "catenary node show NODE, and catenary logs NODE MODULE"})
	}
	if len(rivals) > 0 {
		d.add(Problem{About: "nodes", State: health.Fail, Code: health.Fenced, What: "two agents check in for " + list(rivals), Next: "stop one of them: both act on what the node is told"})
	}
}

// list names the first few, and counts the rest.
func list(names []string) string {
	if len(names) <= namedNodes {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:namedNodes], ", "), len(names)-namedNodes)
}
