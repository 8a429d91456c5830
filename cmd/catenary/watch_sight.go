package main

import (
	"fmt"
	"strings"
	"time"

	"catenary/chain"
)

// sight is what is seen of the fleet and its rollouts at a moment.
type sight struct {
	At     time.Time `json:"at"`
	Server string    `json:"server,omitempty"`
	// Event is the newest event of the chain, when it was asked.
	Event uint64 `json:"event,omitempty"`
	// Behind says why it may be that not all up to that event is shown; it is empty when all is.
	Behind string `json:"behind,omitempty"`
	// NoEngine says why no engine says what rollouts wait for.
	NoEngine string `json:"no-engine,omitempty"`
	Nodes    struct {
		All      int `json:"all"`
		External int `json:"external"`
	} `json:"nodes"`
	// Assignments counts those that stand, by how they are.
	Assignments map[string]int `json:"assignments"`
	// Rollouts are those that are not final, oldest first, and behind them the last that have ended.
	Rollouts []rolloutSight `json:"rollouts"`
	// Trouble names places that do not run as told, the first of so many.
	Trouble      []trouble `json:"trouble,omitempty"`
	TroubleCount int       `json:"trouble-count,omitempty"`
	// Steps have changed since the look before.
	Steps []chain.Step `json:"steps,omitempty"`
}

// rolloutSight is a rollout, and what it waits for.
type rolloutSight struct {
	ID       string   `json:"id"`
	State    string   `json:"state"`
	Reason   string   `json:"reason,omitempty"`
	Why      string   `json:"why,omitempty"`
	Track    string   `json:"track,omitempty"`
	Reverts  string   `json:"reverts,omitempty"`
	Reverted string   `json:"reverted-by,omitempty"`
	Carries  []string `json:"carries,omitempty"`
	// Tiers say how far each tier is.
	Tiers []tierSight `json:"tiers,omitempty"`
	// Waits are the reasons for which it does not move, each with its number of steps.
	Waits []waits   `json:"waits,omitempty"`
	Ended time.Time `json:"ended,omitzero"`

	stands bool
}

// tierSight says how far a tier is.
type tierSight struct {
	Name    string       `json:"name"`
	Entered bool         `json:"entered"`
	Counts  chain.Counts `json:"counts"`
	says    string
}

// trouble is a place that needs a look.
type trouble struct {
	Node   string `json:"node"`
	Module string `json:"module"`
	// State is one of the place constants.
	State string `json:"state"`
	Told  string `json:"told"`
	Runs  string `json:"runs,omitempty"`
	// Says is what the node said of it.
	Says string    `json:"says,omitempty"`
	At   time.Time `json:"at,omitzero"`
}

// String says it in a line.
func (t trouble) String() string {
	text := fmt.Sprintf("%s %s: %s, told %s", t.Node, t.Module, strings.ReplaceAll(t.State, "-", " "), t.Told)
	if t.Runs != t.Told {
		text += ", runs " + t.Runs
	}
	if t.Says != "" {
		text += ": " + t.Says
	}
	return text
}

func sightOf(r chain.Rollout) rolloutSight {
	g := rolloutSight{
		ID: r.ID, State: r.State, Reason: r.Reason, Why: r.Why, Track: r.Track, Reverts: r.Reverts, Reverted: r.RevertedBy, Ended: r.Times.Ended, stands: r.Stands(),
	}
	for _, b := range r.Builds {
		g.Carries = append(g.Carries, showVersion(&b.Version))
	}
	for _, t := range r.Tiers {
		g.Tiers = append(g.Tiers, tierSight{Name: t.Name, Entered: !t.Entered.IsZero(), Counts: t.Counts, says: tierLine(t)})
	}
	return g
}

// out is what is still shown when nothing can be seen: what was seen before, which may be so no more.
func (s sight) out(now time.Time, err error) sight {
	s.Steps = nil
	since := s.At
	if since.IsZero() {
		since = now
	}
	s.Behind = fmt.Sprintf("nothing can be read since %s: %s", since.Format("15:04:05Z07:00"), err.Error())
	return s
}

// fleet says how the fleet is.
func (s sight) fleet() string {
	all := 0
	for _, n := range s.Assignments {
		all += n
	}
	text := counted(s.Nodes.All, "node")
	if s.Nodes.External > 0 {
		text += fmt.Sprintf(" (%s managed by others)", count(s.Nodes.External))
	}
	text += ", " + counted(all, "assignment")
	sep := ": "
	for _, state := range []string{placeAsTold, placeUnhealthy, placeDrifted, placeElse, placeUnreported} {
		if n := s.Assignments[state]; n > 0 {
			text += sep + count(n) + " " + strings.ReplaceAll(state, "-", " ")
			sep = ", "
		}
	}
	return text
}

// headline says what a rollout carries, and how it is.
func (g rolloutSight) headline() string {
	text := "rollout " + g.ID + ": " + g.State
	if n := len(g.Carries); n > 0 {
		const most = 3
		text += ", carries " + strings.Join(g.Carries[:min(n, most)], ", ")
		if n > most {
			text += fmt.Sprintf(" and %d more", n-most)
		}
	}
	for _, fact := range [][2]string{{", takes back ", g.Reverts}, {", taken back by ", g.Reverted}, {": ", g.Why}} {
		if fact[1] != "" {
			text += fact[0] + fact[1]
		}
	}
	if g.Why == "" && g.Reason != "" {
		text += ": " + g.Reason
	}
	return text
}
