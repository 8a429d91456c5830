package desk

import (
	"maps"
	"slices"
	"sync"
	"time"

	"catenary/agent"
	"catenary/events"
)

// How a node is.
const (
	// On means that its agent checks in.
	On = "on"
	// Off means that nothing was heard of its agent for three times as long as it had announced.
	Off = "off"
	// Unsure means that nothing was heard, and that this desk has not listened for long enough to tell.
	Unsure = "unsure"
	// External means that somebody else manages the node: no agent is expected.
	External = "external"
)

const (
	// Missed is how many check-ins may be missing before a node counts as off.
	Missed = 3
	// ShortestEvery and LongestEvery bound what an agent may announce.
	ShortestEvery = 100 * time.Millisecond
	LongestEvery  = 5 * time.Minute
)

// Node is how a node is, as far as its agent has said.
type Node struct {
	Node string `json:"node"`
	// State is On, Off, Unsure or External.
	State     string            `json:"state"`
	ManagedBy string            `json:"managed-by,omitempty"`
	Labels    map[string]string `json:"labels,omitempty"`
	Retired   bool              `json:"retired,omitempty"`
	// Converged says that its agent is there, knows all that the node is told, and that all of it is so.
	Converged bool `json:"converged"`
	// Edition is what the chain says of the node now.
	Edition string `json:"edition,omitempty"`
	// Never says that nothing is known of an agent of it: it has not checked in since this desk began to listen, and no report is on record.
	Never bool `json:"never-heard,omitempty"`
	// Heard is when it checked in last.
	Heard   time.Time `json:"heard,omitzero"`
	Version string    `json:"version,omitempty"`
	// Rivals says that two agents check in for the node.
	Rivals bool          `json:"rivals,omitempty"`
	Status *agent.Status `json:"status,omitempty"`
}

// Presence knows when each agent was heard last. It is safe for use by many goroutines.
type Presence struct {
	now   func() time.Time
	since time.Time

	mu    sync.Mutex
	heard map[string]*voice
}

// voice is what was heard of a node.
type voice struct {
	at      time.Time
	run     string
	version string
	every   time.Duration
	status  agent.Status
	// former is the run that was heard before this one, and rivalled when it spoke up again.
	former   string
	rivalled time.Time
}

// NewPresence returns a presence that has heard nothing. The clock only ever measures spans.
func NewPresence(now func() time.Time) *Presence {
	return &Presence{now: now, since: now(), heard: map[string]*voice{}}
}

// Hear takes a check-in.
func (p *Presence) Hear(c agent.CheckIn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.now()
	v := p.heard[c.Node]
	if v == nil {
		v = &voice{run: c.Run}
		p.heard[c.Node] = v
	}
	if v.run != c.Run {
		if v.former == c.Run {
			v.rivalled = now
		}
		v.former = v.run
	}
	v.at, v.run, v.version, v.every, v.status = now, c.Run, c.Version, min(max(c.Every, ShortestEvery), LongestEvery), c.Status
}

// rivals says whether a run spoke up lately after another one had: one that took the place of another is heard alone from then on.
func (v *voice) rivals(now time.Time) bool {
	return !v.rivalled.IsZero() && now.Sub(v.rivalled) <= Missed*v.every
}

// of gives how a node is, beside what the index knows of it.
func (p *Presence) of(n Node) Node {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.now()
	v := p.heard[n.Node]
	if v != nil {
		status := v.status
		n.Never, n.Heard, n.Version, n.Status, n.Rivals = false, v.at.UTC(), v.version, &status, v.rivals(now)
	}
	switch {
	case v != nil && now.Sub(v.at) <= Missed*v.every:
		n.State = On
	case v != nil, now.Sub(p.since) > Missed*agent.DefaultEvery:
		n.State = Off
	default:
		n.State = Unsure
	}
	n.Converged = n.State == On && n.Status.Converged && n.Status.Edition == n.Edition && !n.Retired
	return n
}

// Desk is the index and the presence together.
type Desk struct {
	Index    *Index
	Presence *Presence
}

// Nodes gives how nodes are, in order, at most limit of them after a cursor, and the cursor of the next page; empty at the end. Those that the
// chain does not know are left out.
func (d Desk) Nodes(after string, limit int) (found []Node, next string) {
	for _, n := range d.Index.known(after) {
		if len(found) == limit {
			return found, found[limit-1].Node
		}
		found = append(found, d.seen(n))
	}
	return found, ""
}

// Node gives how a node is; false when the chain does not know it.
func (d Desk) Node(name string) (Node, bool) {
	n, ok := d.Index.one(name)
	if !ok {
		return Node{}, false
	}
	return d.seen(n), true
}

func (d Desk) seen(n Node) Node {
	managedBy := n.ManagedBy
	n = d.Presence.of(n)
	if managedBy != "" && managedBy != events.ManagedByAgent {
		n.State, n.Converged = External, false
	}
	return n
}

// known lists the nodes that the chain knows, after a name.
func (x *Index) known(after string) []Node {
	x.mu.Lock()
	defer x.mu.Unlock()
	var found []Node
	for _, name := range slices.Sorted(maps.Keys(x.nodes)) {
		if n := x.nodes[name]; n.known && name > after {
			found = append(found, x.describe(name, n))
		}
	}
	return found
}

func (x *Index) one(name string) (Node, bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	n, ok := x.nodes[name]
	if !ok || !n.known {
		return Node{}, false
	}
	return x.describe(name, n), true
}

func (x *Index) describe(name string, n *node) Node {
	return Node{Node: name, ManagedBy: n.managedBy, Labels: n.labels, Retired: n.retired, Never: !n.reported && n.managedBy != events.ManagedByExternal, Edition: x.edition(n)}
}
