package plan

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"catenary/chain"
	"catenary/commands"
	"catenary/events"
)

// Request is what a plan shall lead to. Exactly one of Targets, Restore and Reverts is given.
type Request struct {
	ID string
	// Strategy is how to walk, StrategyName what it is called, if it has a name.
	Strategy     events.Strategy
	StrategyName string
	Reason       string
	Track        string
	Supersedes   []string
	// Targets are what modules shall be at, wherever they stand.
	Targets []events.Target
	// Onto are nodes that the targets come to as well where they do not stand. Everywhere adds all that an agent manages and a tier picks.
	Onto       []string
	Everywhere bool
	// Restore is what shall stand as it stood once.
	Restore *Restore
	// Reverts is the rollout that shall be taken back, Undo what it has changed.
	Reverts string
	Undo    []chain.Changed
	// Now is the moment at which freezes are judged.
	Now time.Time
	// AllowMissing plans for what is not recorded as published.
	AllowMissing bool
}

// Restore is what stood at a moment.
type Restore struct {
	At time.Time
	// Told is what stood then. Scope says which places are taken back; others are left as they are.
	Told  map[events.StepName]events.Version
	Scope func(events.StepName) bool
}

// Plan is what is to be done. The zero value is nothing.
type Plan struct {
	ID    string          `json:"id"`
	Head  events.PlanHead `json:"head"`
	Tiers []Tier          `json:"tiers"`
	// Steps are in the order they are written down.
	Steps []events.PlannedStep `json:"steps"`
	// Right counts the places that are right already.
	Right int `json:"right"`
	// Ends counts the steps that end what stands.
	Ends    int       `json:"ends,omitempty"`
	LeftOut []LeftOut `json:"left-out,omitempty"`
	Missing []Missing `json:"missing,omitempty"`
	// Since are the commits that are new to a place, newest first.
	Since []chain.Commit `json:"since,omitempty"`
}

// Tier counts the steps of a tier.
type Tier struct {
	Name  string `json:"name"`
	Steps int    `json:"steps"`
}

// Reasons why a change is left out. They are stable.
const (
	LeftExternal      = "node-external"
	LeftFrozen        = events.HoldFrozen
	LeftModuleEnded   = "module-ended"
	LeftMovedOn       = "moved-on"
	LeftNoTier        = "no-tier"
	LeftNodeRetired   = "node-retired"
	LeftVetoed        = events.HoldVetoed
	LeftUnknownModule = "unknown-module"
	LeftUnknownNode   = "unknown-node"
)

// LeftOut is a change that the plan does not make.
type LeftOut struct {
	events.StepName
	Before *events.Version `json:"before,omitempty"`
	After  *events.Version `json:"after,omitempty"`
	// Reason is one of the Left constants, Why says it in words.
	Reason string `json:"reason"`
	Why    string `json:"why"`
	// Until is when that ends, if it is known.
	Until time.Time `json:"until,omitzero"`
}

// Held says whether some change is left out only for a time: a freeze ends and a veto is lifted.
func (p Plan) Held() bool {
	return slices.ContainsFunc(p.LeftOut, func(l LeftOut) bool { return l.Reason == LeftFrozen || l.Reason == LeftVetoed })
}

// Missing is something that shall run and is not recorded as published.
type Missing struct {
	Module string `json:"module"`
	events.Version
	// Places is how many would run it.
	Places int `json:"places"`
}

// MissingError says that a plan would run what is not recorded as published.
type MissingError struct{ Missing []Missing }

// Error names the first of them.
func (e *MissingError) Error() string {
	const most = 5
	var names []string
	for _, m := range e.Missing[:min(most, len(e.Missing))] {
		names = append(names, fmt.Sprintf("%s of %s, on %s", m.Version, m.Module, nodes(m.Places)))
	}
	s := "not recorded as published: " + strings.Join(names, ", ")
	if rest := len(e.Missing) - most; rest > 0 {
		s += fmt.Sprintf(" and %d more", rest)
	}
	return s
}

func nodes(n int) string {
	if n == 1 {
		return "1 node"
	}
	return fmt.Sprintf("%d nodes", n)
}

// CircleError says that steps wait for each other.
type CircleError struct {
	Tier string
	// Steps are those of the circle; each waits for the next, and the last for the first.
	Steps []events.StepName
}

// Error names the circle.
func (e *CircleError) Error() string {
	var names []string
	for _, n := range append(append([]events.StepName{}, e.Steps...), e.Steps[0]) {
		names = append(names, n.String())
	}
	return fmt.Sprintf("steps of tier %s wait for each other in a circle: %s", e.Tier, strings.Join(names, " after "))
}

// EdgeError says that an edge of the strategy can't hold.
type EdgeError struct {
	// Place is that of the edge in the strategy, as in edges[2].
	Place string
	Why   string
}

// Error gives the edge, and why.
func (e *EdgeError) Error() string { return e.Place + ": " + e.Why }

// CommitsError says that a plan would carry two commits of one repository.
type CommitsError struct{ Repository, One, Other string }

// Error names the repository and both commits.
func (e *CommitsError) Error() string {
	return fmt.Sprintf("a rollout carries one commit of a repository, and this one would carry %s and %s of %s: plan two", e.One, e.Other, e.Repository)
}

// TooManyError says that a plan is too large to be recorded.
type TooManyError struct{ Steps int }

// Error gives size and limit.
func (e *TooManyError) Error() string {
	return fmt.Sprintf("the plan has %d steps: the limit is %d; plan for fewer nodes at once", e.Steps, commands.MaxPlanSteps)
}
