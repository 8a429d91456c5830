package schedule

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"catenary/internal/failpoint"
)

// Kind is a kind of fault.
type Kind string

// The kinds of faults.
const (
	// Kill ends a process as SIGKILL does; it is started again at once.
	Kill Kind = "kill"
	// Stop holds a process for a while, as SIGSTOP does.
	Stop Kind = "stop"
	// Point starts a process that fails at a point of its program.
	Point Kind = "point"
	// Cut closes a process's connections and lets none through for a while.
	Cut Kind = "cut"
	// Mute holds back what a process sends for a while, Deaf what it is sent; the connection stands.
	Mute Kind = "mute"
	Deaf Kind = "deaf"
	// Slow delays what goes both ways for a while.
	Slow Kind = "slow"
	// Lost closes a process's connection just after it has sent something, so that the answer is lost.
	Lost Kind = "lost"
	// Clock sets a process's clock wrong for a while.
	Clock Kind = "clock"
	// Damage kills a process, harms its files and starts it again.
	Damage Kind = "damage"
	// Full fills the disk of the servers for a while.
	Full Kind = "full"
	// ReadOnly starts the servers over a disk that can't be written for a while.
	ReadOnly Kind = "read-only"
	// Poison is messages that no program of ours would send.
	Poison Kind = "poison"
	// Storm is many senders that want the same key at once.
	Storm Kind = "storm"
	// Apart cuts a server off from the others and from everybody for a while.
	Apart Kind = "apart"
	// Roll stops and starts one server after another.
	Roll Kind = "roll"
	// Leader kills the server that leads the event stream.
	Leader Kind = "leader"
	// Rebuild has a view built anew.
	Rebuild Kind = "rebuild"
)

// Harms are what can be done to files.
const (
	HarmAudit          = "audit"           // of the audit store: bits, a cut, nothing left, or yesterday's
	HarmBucket         = "bucket"          // of a bucket's stream
	HarmCopy           = "copy"            // of a bucket's copy
	HarmSnapshots      = "snapshots"       // of the writer's snapshots
	HarmIndex          = "index"           // of the server's index of the event stream
	HarmEvents         = "events"          // of the event stream itself: nobody may go on until it is put back
	HarmEventsEarlier  = "events-earlier"  // yesterday's event stream beside today's buckets
	HarmStore          = "store"           // of all that the server keeps, gone: a backup is restored
	HarmServer         = "server"          // of one of three servers
	HarmAgentForgotten = "agent-forgotten" // an agent's state, gone
)

// How files are harmed.
const (
	Flip   = "flip"
	Cutoff = "cut"
	Delete = "delete"
	Old    = "yesterday"
)

// Fault is one fault.
type Fault struct {
	At     time.Duration
	Kind   Kind
	Target string
	// For is how long it lasts.
	For time.Duration
	// Orders are what a point's process is told.
	Orders failpoint.Orders
	// Off is how wrong a clock is.
	Off time.Duration
	// Harm and How say what is done to files; View names a view.
	Harm, How, View string
}

// String gives a fault for a person.
func (f Fault) String() string {
	text := fmt.Sprintf("%6.2fs %-7s %s", f.At.Seconds(), f.Kind, f.Target)
	if f.For > 0 {
		text += fmt.Sprintf(" for %s", f.For)
	}
	if len(f.Orders) > 0 {
		text += " " + f.Orders.String()
	}
	if f.Off != 0 {
		text += fmt.Sprintf(" off by %s", f.Off)
	}
	if f.Harm != "" {
		text += fmt.Sprintf(" %s of %s", f.How, f.Harm)
	}
	if f.View != "" {
		text += " " + f.View
	}
	return text
}

// Shape is what there is to be struck.
type Shape struct {
	// Servers is 1 or 3.
	Servers int
	// Span is how long faults happen.
	Span time.Duration
	// Faults is how many there are.
	Faults int
	// Disk says that the server's disk is a small one that can be filled and set read-only.
	Disk bool
	// Views are those whose buckets can be built anew and harmed.
	Views []string
	// Only are the names of kinds and harms that alone are drawn; empty means all.
	Only []string
}

// Schedule is what happens in one run.
type Schedule struct {
	Seed   uint64
	Shape  Shape
	Faults []Fault
}

// String lists it for a person.
func (s Schedule) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "seed %d, %d servers, %s\n", s.Seed, s.Shape.Servers, s.Shape.Span)
	for _, f := range s.Faults {
		fmt.Fprintf(&b, "  %s\n", f)
	}
	return b.String()
}

// Names of processes.
const (
	Server    = "server"
	Projector = "projector"
	Clients   = "clients"
)

// Writers lists the writers.
func Writers() []string { return []string{"writer-1", "writer-2"} }

// Engines lists the engines.
func Engines() []string { return []string{"engine-1", "engine-2"} }

// Agents lists the agents.
func Agents() []string { return []string{"agent-1", "agent-2"} }

// Servers lists so many servers.
func Servers(n int) []string {
	if n == 1 {
		return []string{Server}
	}
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("%s-%d", Server, i+1)
	}
	return names
}

// Of draws the schedule of a seed.
func Of(seed uint64, shape Shape) Schedule {
	d := &draw{Rand: rand.New(rand.NewPCG(seed, uint64(shape.Servers))), shape: shape}
	s := Schedule{Seed: seed, Shape: shape}
	busy := time.Duration(0) // until when a fault lasts beside which there is no other
	for i := range shape.Faults {
		f := d.fault()
		for len(shape.Only) > 0 && !slices.Contains(shape.Only, string(f.Kind)) && !slices.Contains(shape.Only, f.Harm) {
			f = d.fault()
		}
		f.At = shape.Span * time.Duration(i) / time.Duration(shape.Faults)
		f.At += time.Duration(d.IntN(int(max(1, shape.Span/time.Duration(2*shape.Faults))))).Truncate(time.Millisecond)
		f.At = max(f.At, busy)
		f.For = min(f.For, max(0, shape.Span-f.At))
		if f.At > shape.Span {
			break
		}
		if f.Alone() {
			busy = f.At + f.For
		}
		s.Faults = append(s.Faults, f)
	}
	slices.SortStableFunc(s.Faults, func(a, b Fault) int { return cmp.Compare(a.At, b.At) })
	return s
}

// Alone says whether a fault is one that others wait for.
func (f Fault) Alone() bool {
	return f.Kind == Damage || f.Kind == Roll || f.Kind == Full || f.Kind == ReadOnly
}

// draw draws faults.
type draw struct {
	*rand.Rand
	shape Shape
}

func (d *draw) of(names []string) string { return names[d.IntN(len(names))] }

func (d *draw) span(least, most time.Duration) time.Duration {
	return (least + time.Duration(d.Int64N(int64(most-least)))).Truncate(time.Millisecond)
}

// parts are all processes but the servers.
func parts() []string {
	return slices.Concat(Writers(), []string{Projector}, Engines(), Agents())
}

// choice is a kind of fault and how often it is drawn among all.
type choice struct {
	weight int
	make   func() Fault
}

func (d *draw) fault() Fault {
	choices := []choice{
		{10, func() Fault { return Fault{Kind: Kill, Target: d.of(parts())} }},
		{3, func() Fault { return Fault{Kind: Kill, Target: d.of(Servers(d.shape.Servers))} }},
		{4, func() Fault {
			return Fault{Kind: Stop, Target: d.of(parts()), For: d.span(200*time.Millisecond, 3*time.Second)}
		}},
		{2, func() Fault {
			return Fault{Kind: Stop, Target: d.of(Servers(d.shape.Servers)), For: d.span(200*time.Millisecond, 2*time.Second)}
		}},
		{12, d.point},
		{5, func() Fault { return d.onLine(Cut, 100*time.Millisecond, 2*time.Second) }},
		{3, func() Fault { return d.onLine(Mute, 100*time.Millisecond, 2*time.Second) }},
		{3, func() Fault { return d.onLine(Deaf, 100*time.Millisecond, 2*time.Second) }},
		{2, func() Fault { return d.onLine(Slow, 200*time.Millisecond, 2*time.Second) }},
		{4, func() Fault { return d.onLine(Lost, 0, 1) }},
		{2, func() Fault {
			return Fault{Kind: Clock, Target: d.of(Writers()), Off: d.span(-20*time.Minute, 4*time.Minute), For: d.span(200*time.Millisecond, 2*time.Second)}
		}},
		{2, func() Fault { return Fault{Kind: Storm, Target: Clients} }},
		{2, func() Fault { return Fault{Kind: Poison, Target: Clients} }},
		{2, func() Fault { return Fault{Kind: Rebuild, Target: Projector, View: d.of(d.shape.Views)} }},
		{4, d.damage},
	}
	if d.shape.Disk {
		choices = append(choices,
			choice{2, func() Fault {
				return Fault{Kind: Full, Target: Server, For: d.span(300*time.Millisecond, time.Second)}
			}},
			choice{1, func() Fault {
				return Fault{Kind: ReadOnly, Target: Server, For: d.span(300*time.Millisecond, time.Second)}
			}},
		)
	}
	if d.shape.Servers > 1 {
		choices = append(choices,
			choice{5, func() Fault { return Fault{Kind: Leader, Target: Server} }},
			choice{4, func() Fault {
				return Fault{Kind: Apart, Target: d.of(Servers(d.shape.Servers)), For: d.span(500*time.Millisecond, 3*time.Second)}
			}},
			choice{1, func() Fault { return Fault{Kind: Roll, Target: Server, For: 4 * time.Second} }},
		)
	}
	total := 0
	for _, c := range choices {
		total += c.weight
	}
	n := d.IntN(total)
	for _, c := range choices {
		if n -= c.weight; n < 0 {
			return c.make()
		}
	}
	panic("weights that do not add up")
}

// onLine draws a fault of the line between a process and its server.
func (d *draw) onLine(kind Kind, least, most time.Duration) Fault {
	return Fault{Kind: kind, Target: d.of(append(parts(), Clients)), For: d.span(least, most)}
}

// point draws a fail point. Those of a rebuild come with one.
func (d *draw) point() Fault {
	all := failpoint.Points()
	p := all[d.IntN(len(all))]
	o := failpoint.Order{Name: p.Name, At: 1 + d.IntN(6)}
	actions := []failpoint.Action{failpoint.Kill, failpoint.Kill, failpoint.Stop, failpoint.Delay}
	if p.Fails {
		actions = append(actions, failpoint.Error, failpoint.Error)
	}
	o.Action = actions[d.IntN(len(actions))]
	if o.Action == failpoint.Delay {
		o.For = d.span(10*time.Millisecond, 1500*time.Millisecond)
	}
	f := Fault{Kind: Point, Orders: failpoint.Orders{o}, For: d.span(300*time.Millisecond, 3*time.Second)}
	switch p.Program {
	case "writer":
		f.Target = Writers()[0]
	case "projector":
		f.Target = Projector
	case "engine":
		f.Target = Engines()[0]
	case "agent":
		f.Target = d.of(Agents())
	}
	if strings.HasPrefix(string(p.Name), "rebuild-") {
		f.Orders[0].At = 1
		f.View = d.of(d.shape.Views)
	}
	return f
}

// damage draws harm to files.
func (d *draw) damage() Fault {
	f := Fault{Kind: Damage, Target: Projector, Harm: HarmAudit, How: d.of([]string{Flip, Cutoff, Delete, Old})}
	if d.shape.Servers > 1 {
		switch d.IntN(4) {
		case 0, 1:
			f.Target, f.Harm, f.How = d.of(Servers(d.shape.Servers)), HarmServer, d.of([]string{Flip, Delete})
		case 2:
			f.Target, f.Harm, f.How = d.of(Agents()), HarmAgentForgotten, Delete
		}
		return f
	}
	switch d.IntN(10) {
	case 0, 1:
	case 2, 3:
		f.Target, f.Harm, f.How, f.View = Server, HarmBucket, d.of([]string{Flip, Cutoff, Delete}), d.of(d.shape.Views)
	case 4:
		f.Target, f.Harm, f.How, f.View = Server, HarmCopy, d.of([]string{Flip, Cutoff, Delete}), d.of(d.shape.Views)
	case 5:
		f.Target, f.Harm, f.How = Server, HarmSnapshots, d.of([]string{Flip, Cutoff, Delete})
	case 6:
		f.Target, f.Harm, f.How = Server, HarmIndex, d.of([]string{Flip, Cutoff, Delete})
	case 7:
		f.Target, f.Harm, f.How = Server, HarmEvents, d.of([]string{Flip, Cutoff})
		if d.IntN(2) == 0 {
			f.Harm, f.How = HarmEventsEarlier, Old
		}
		f.For = time.Second
	case 8:
		f.Target, f.Harm, f.How = Server, HarmStore, Delete
	case 9:
		f.Target, f.Harm, f.How = d.of(Agents()), HarmAgentForgotten, Delete
	}
	return f
}
