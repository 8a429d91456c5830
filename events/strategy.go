package events

// StrategyFact is a fact about a strategy: how rollouts walk over the nodes.
//
//sumtype:decl
type StrategyFact interface{ isStrategyFact() }

// StrategyDeclared says what a strategy is from now on. Rollouts that were planned with an earlier one keep that.
type StrategyDeclared struct {
	Name string `json:"name"`
	// Strategy is the canonical JSON of a [Strategy], Digest its SHA-256 in hex.
	Strategy Raw    `json:"strategy"`
	Digest   string `json:"digest"`
}

// StrategyEnded says that a strategy is for no new plan.
type StrategyEnded struct {
	Reason string `json:"reason,omitempty"`
}

func (StrategyDeclared) isStrategyFact() {}
func (StrategyEnded) isStrategyFact()    {}

// Policies of a tier.
const (
	// OfflineWait leaves the step of a node that is away open, and goes on with the rest.
	OfflineWait = "wait"
	// OfflineSkip leaves a node that is away out.
	OfflineSkip = "skip"
	// OfflineFail counts a node that is away as failed.
	OfflineFail = "fail"

	// GateApplied lets a tier be left when its nodes report to run what they were told.
	GateApplied = "applied"
	// GateHealthy demands that they also report it healthy.
	GateHealthy = "healthy"

	// RollbackAutomatic goes back by itself when a tier fails.
	RollbackAutomatic = "automatic"
	// RollbackManual leaves that to a person.
	RollbackManual = "manual"
)

// Strategy says how a rollout walks. It is written as YAML, and stored as canonical JSON.
type Strategy struct {
	Description string `json:"description,omitempty"`
	// Tiers are walked one after another.
	Tiers []Tier `json:"tiers"`
	// Rollback is one of the Rollback constants.
	Rollback string `json:"rollback,omitempty"`
	// Edges make steps of one tier wait for others, besides what modules require.
	Edges []Edge `json:"edges,omitempty"`
}

// Tier is a part of the nodes, and the policy for it. A place belongs to the first tier that picks it.
type Tier struct {
	Name string `json:"name"`
	// After names tiers that are walked before this one, wherever they stand in the list.
	After    []string `json:"after,omitempty"`
	Selector Selector `json:"selector,omitzero"`
	// Concurrency is how many steps may be under way at once. Nothing means all.
	Concurrency Share `json:"concurrency,omitzero"`
	// FailureBudget is how many steps may fail before the rollout does. Nothing means none.
	FailureBudget Share `json:"failure-budget,omitzero"`
	// Bake is how long a tier must stay well before it is left, as a Go duration.
	Bake string `json:"bake,omitempty"`
	// Gate is one of the Gate constants; empty means applied.
	Gate string `json:"gate,omitempty"`
	// Approval demands that a person approves before the tier is entered.
	Approval bool `json:"approval,omitempty"`
	// Offline is one of the Offline constants; empty means wait.
	Offline string `json:"offline,omitempty"`
	// Retry is how often a failed step is tried again, Delay how long after it failed, as a Go duration.
	Retry int    `json:"retry,omitempty"`
	Delay string `json:"delay,omitempty"`
	// Timeout is how long a step may be under way before its outcome counts as unknown, as a Go duration.
	Timeout string `json:"timeout,omitempty"`
	// Limit bounds how fast steps begin.
	Limit *Limit `json:"limit,omitempty"`
	// Semaphores are id:count, across all rollouts: no more than count steps that name the id are under way at once. One
	// that begins with a colon is global, as in :42.
	Semaphores []string `json:"semaphores,omitempty"`
}

// Limit bounds how fast steps begin: this many a minute, and at most a burst at once.
type Limit struct {
	PerMinute int `json:"per-minute"`
	Burst     int `json:"burst,omitempty"`
}

// Edge makes the steps that To picks wait for those that From picks.
type Edge struct {
	From Place `json:"from"`
	To   Place `json:"to"`
	// Notify tells what waits when something has changed, also where nothing else is to be done.
	Notify bool `json:"notify,omitempty"`
}

// Place picks steps by module and node. When neither end of an edge names a node, it holds on each node by itself.
type Place struct {
	Module string `json:"module,omitempty"`
	Node   string `json:"node,omitempty"`
}
