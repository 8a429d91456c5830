package chain

import (
	"time"

	"catenary/events"
)

// Merge is a record of chain-merges.
type Merge struct {
	Repository string    `json:"repository"`
	Branch     string    `json:"branch"`
	Commit     string    `json:"commit"`
	Merged     time.Time `json:"merged,omitzero"`
	Heard      time.Time `json:"heard,omitzero"`
	// Event is what told us of it, byte for byte.
	Event events.Raw `json:"event,omitempty"`
	Alone bool       `json:"alone,omitempty"`
	// Waiting is why it waits; it is empty once it does not.
	Waiting string `json:"waiting,omitempty"`
	// Placed is when its rollout had brought it where it belongs.
	Placed time.Time `json:"placed,omitzero"`
	// Rollout is the one that took it last.
	Rollout string `json:"rollout,omitempty"`
}

// Stands says whether the merge waits.
func (m Merge) Stands() bool { return m.Waiting != "" }

// Track is a record of chain-tracks.
type Track struct {
	Track    string    `json:"track"`
	Modules  []string  `json:"modules,omitempty"`
	Strategy string    `json:"strategy,omitempty"`
	On       string    `json:"on,omitempty"`
	Declared time.Time `json:"declared,omitzero"`
	Ended    time.Time `json:"ended,omitzero"`
}

// Stands says whether the track plans.
func (t Track) Stands() bool { return t.Ended.IsZero() }

// Strategy is a record of chain-strategies.
type Strategy struct {
	Name string `json:"name"`
	// Digest is the SHA-256 of Strategy, which is canonical JSON.
	Digest   string     `json:"digest,omitempty"`
	Strategy events.Raw `json:"strategy,omitempty"`
	Declared time.Time  `json:"declared,omitzero"`
	Ended    time.Time  `json:"ended,omitzero"`
}

// Stands says whether the strategy is for new plans.
func (s Strategy) Stands() bool { return s.Ended.IsZero() }

// States of a rollout.
const (
	RolloutPlanning        = "planning"
	RolloutPlanned         = "planned"
	RolloutWaitingApproval = "waiting-approval"
	RolloutRunning         = "running"
	RolloutPaused          = "paused"
	RolloutFinished        = "finished"
	RolloutFailed          = "failed"
	RolloutAborted         = "aborted"
	RolloutSuperseded      = "superseded"
)

// Rollout is a record of chain-rollouts. Its steps have records of their own; [Reader.Rollout] gives both.
type Rollout struct {
	ID string `json:"id"`
	// State is one of the Rollout constants.
	State  string `json:"state"`
	Reason string `json:"reason,omitempty"`
	// Why says why it failed, was aborted or superseded.
	Why     string        `json:"why,omitempty"`
	Commits []FixedCommit `json:"commits,omitempty"`
	Tiers   []Tier        `json:"tiers,omitempty"`
	// Builds is what it carries each module to.
	Builds []events.Target `json:"builds,omitempty"`
	// Changed is the number of its steps, Ends how many of them end what stands.
	Changed int `json:"changed,omitempty"`
	Ends    int `json:"ends,omitempty"`
	// Digest is that of all its steps, once the plan is closed.
	Digest string `json:"digest,omitempty"`
	// Reverts is the rollout that it takes back, RevertedBy the one that takes it back.
	Reverts        string   `json:"reverts,omitempty"`
	RevertedBy     string   `json:"reverted-by,omitempty"`
	Supersedes     []string `json:"supersedes,omitempty"`
	SupersededBy   string   `json:"superseded-by,omitempty"`
	Track          string   `json:"track,omitempty"`
	Strategy       string   `json:"strategy,omitempty"`
	StrategyDigest string   `json:"strategy-digest,omitempty"`
	Rollback       string   `json:"rollback,omitempty"`
	// Blocked is why nothing moves; it is empty once something has moved.
	Blocked []Hold `json:"blocked,omitempty"`
	Times   Times  `json:"times,omitzero"`
}

// Stands says whether the rollout is not final.
func (r Rollout) Stands() bool {
	switch r.State {
	case RolloutFinished, RolloutFailed, RolloutAborted, RolloutSuperseded:
		return false
	}
	return true
}

// Times say when a rollout came how far. Restores is the moment it takes the fleet back to.
type Times struct {
	Restores time.Time `json:"restores,omitzero"`
	Planned  time.Time `json:"planned,omitzero"`
	Started  time.Time `json:"started,omitzero"`
	Paused   time.Time `json:"paused,omitzero"`
	Ended    time.Time `json:"ended,omitzero"`
}

// FixedCommit is the commit of a repository that a rollout carries.
type FixedCommit struct {
	Repository string    `json:"repository"`
	Branch     string    `json:"branch,omitempty"`
	Commit     string    `json:"commit"`
	Merged     time.Time `json:"merged,omitzero"`
}

// Tier is a tier of a rollout: what it picks, how it is walked, and how far it is.
type Tier struct {
	Name     string          `json:"name"`
	Selector events.Selector `json:"selector,omitzero"`
	Policy   Policy          `json:"policy,omitzero"`
	Counts   Counts          `json:"counts,omitzero"`
	Approved bool            `json:"approved,omitempty"`
	Entered  time.Time       `json:"entered,omitzero"`
}

// Policy says how a tier is walked. Numbers and parts are text, as in 3 and 25%.
type Policy struct {
	Concurrency   string   `json:"concurrency,omitempty"`
	FailureBudget string   `json:"failure-budget,omitempty"`
	Bake          string   `json:"bake,omitempty"`
	Gate          string   `json:"gate,omitempty"`
	Approval      bool     `json:"approval,omitempty"`
	Offline       string   `json:"offline,omitempty"`
	Retry         int      `json:"retry,omitempty"`
	Delay         string   `json:"delay,omitempty"`
	Timeout       string   `json:"timeout,omitempty"`
	PerMinute     int      `json:"per-minute,omitempty"`
	Burst         int      `json:"burst,omitempty"`
	Semaphores    []string `json:"semaphores,omitempty"`
}

// Counts count the steps of a tier: all of them, and by how they stand. The rest waits.
type Counts struct {
	Steps   int `json:"steps,omitempty"`
	Pending int `json:"pending,omitempty"`
	Done    int `json:"done,omitempty"`
	Failed  int `json:"failed,omitempty"`
	Unknown int `json:"unknown,omitempty"`
	Skipped int `json:"skipped,omitempty"`
}

// Hold says what does not move, why, and what it waits for.
type Hold struct {
	Reason   string            `json:"reason"`
	Tier     string            `json:"tier,omitempty"`
	Steps    []events.StepName `json:"steps,omitempty"`
	Count    int               `json:"count,omitempty"`
	WaitsFor string            `json:"waits-for,omitempty"`
	Until    time.Time         `json:"until,omitzero"`
}

// Step is a record of chain-steps.
type Step struct {
	Rollout string `json:"rollout"`
	Tier    string `json:"tier"`
	Node    string `json:"node"`
	Module  string `json:"module"`
	// Attempt counts the tries; it is left out until the first.
	Attempt int            `json:"attempt,omitempty"`
	Driver  *events.Driver `json:"driver,omitempty"`
	// Outcome is empty while the step waits or is pending, By says how it came to be.
	Outcome string `json:"outcome,omitempty"`
	By      string `json:"by,omitempty"`
	Reason  string `json:"reason,omitempty"`
	// Again says that it is tried again.
	Again bool `json:"again,omitempty"`
	// Sent is when the node was last told, Reported when it said what became of it, Ended when that was recorded.
	Sent     time.Time        `json:"sent,omitzero"`
	Reported time.Time        `json:"reported,omitzero"`
	Ended    time.Time        `json:"ended,omitzero"`
	Before   *events.Version  `json:"before,omitempty"`
	After    *events.Version  `json:"after,omitempty"`
	WaitsFor []events.WaitFor `json:"waits-for,omitempty"`
	Refresh  bool             `json:"refresh,omitempty"`
	// Inputs are what the node was handed with what it was told last, Outputs what it has handed on.
	Inputs  []events.Handed   `json:"inputs,omitempty"`
	Outputs map[string]string `json:"outputs,omitempty"`
	// Tried counts the failed tries of the same change: those of plans before, and those of this one.
	Tried int `json:"tried,omitempty"`
}

// Stands says whether the step has no outcome yet.
func (s Step) Stands() bool { return s.Outcome == "" || s.Again }

// Pending says whether the node was told and nothing is known of what became of it.
func (s Step) Pending() bool { return s.Outcome == "" && !s.Sent.IsZero() }

// State is the step's outcome, or else whether it waits or is pending.
func (s Step) State() string {
	switch {
	case s.Pending():
		return events.StepPending
	case s.Stands():
		return events.StepWaiting
	}
	return s.Outcome
}
