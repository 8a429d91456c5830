package events

import "time"

// Rollout is a fact about a rollout: the carrying of builds to nodes, tier by tier.
//
//sumtype:decl
type Rollout interface{ isRollout() }

// Version is what a module is at: what is run, and the build and commit it comes from.
type Version struct {
	Reference
	Build  string `json:"build,omitempty"`
	Commit string `json:"commit,omitempty"`
}

// Same says whether nobody would have to do anything to get from one to the other: both run the same, as far as both say of
// the same build.
func (v Version) Same(o Version) bool {
	return v.Reference.Equal(o.Reference) && (v.Build == o.Build || v.Build == "" || o.Build == "")
}

// String gives what is run, or else the build.
func (v Version) String() string {
	if v.IsZero() {
		return v.Build
	}
	return v.Reference.String()
}

// StepName names a step within its rollout: a module on a node.
type StepName struct {
	Node   string `json:"node"`
	Module string `json:"module"`
}

// String gives the module and the node as people say them.
func (n StepName) String() string { return n.Module + " on " + n.Node }

// WaitFor is a step of the same tier that another waits for.
type WaitFor struct {
	StepName
	// Notify says that the one that waits is told when this one changed something.
	Notify bool `json:"notify,omitempty"`
}

// PlannedStep is one change of a plan: a module on a node, from what to what.
type PlannedStep struct {
	Tier string `json:"tier"`
	StepName
	// Before is what stands; nil when nothing does. The step is refused once that is no longer so.
	Before *Version `json:"before,omitempty"`
	// After is what shall stand; nil when nothing shall.
	After *Version `json:"after,omitempty"`
	// WaitsFor are steps that end before this one begins.
	WaitsFor []WaitFor `json:"waits-for,omitempty"`
	// Refresh says that the node is told anew only if what the step waits for changed something.
	Refresh bool `json:"refresh,omitempty"`
	// Tried counts the failed tries of the same change in plans before: a new plan does not forget them.
	Tried int `json:"tried,omitempty"`
}

// FixedCommit is the commit of a repository that a rollout carries. There is at most one a repository.
type FixedCommit struct {
	Repository string    `json:"repository"`
	Branch     string    `json:"branch,omitempty"`
	Commit     string    `json:"commit"`
	Merged     time.Time `json:"merged,omitempty,omitzero"`
}

// Target is what a rollout carries a module to.
type Target struct {
	Module string `json:"module"`
	Version
}

// PlanHead is all of a plan but its steps.
type PlanHead struct {
	// Strategy is the canonical JSON of a [Strategy]; the rollout walks by it, whatever becomes of its name.
	Strategy       Raw    `json:"strategy"`
	StrategyName   string `json:"strategy-name,omitempty"`
	StrategyDigest string `json:"strategy-digest"`
	Reason         string `json:"reason,omitempty"`
	// Track is the track that planned it. It is empty for plans of a person.
	Track string `json:"track,omitempty"`
	// Reverts is the rollout that this one takes back.
	Reverts string `json:"reverts,omitempty"`
	// Restores is the moment to which the fleet is taken back.
	Restores time.Time `json:"restores,omitempty,omitzero"`
	// Supersedes are the rollouts that this one replaces.
	Supersedes []string      `json:"supersedes,omitempty"`
	Commits    []FixedCommit `json:"commits,omitempty"`
	Targets    []Target      `json:"targets,omitempty"`
}

// RolloutPlanning says that a plan is being written down. It is none before [RolloutPlanned].
type RolloutPlanning struct {
	ID string `json:"id"`
	PlanHead
}

// RolloutStepsPlanned is a part of a plan.
type RolloutStepsPlanned struct {
	// Part counts from 1 without a gap.
	Part  int           `json:"part"`
	Steps []PlannedStep `json:"steps"`
}

// RolloutPlanned closes a plan: all its parts are there.
type RolloutPlanned struct {
	// Count is the number of all steps, Digest that of all of them in order (see [PlanDigest]).
	Count  int    `json:"count"`
	Digest string `json:"digest"`
	// Ends is how many of them end what stands.
	Ends int `json:"ends,omitempty"`
	// Approval says that it waits for approval before it starts.
	Approval bool `json:"approval,omitempty"`
}

// RolloutApproved says that a person agrees to a tier being entered.
type RolloutApproved struct {
	Tier   string `json:"tier"`
	Reason string `json:"reason,omitempty"`
}

// RolloutStarted says that steps may begin.
type RolloutStarted struct {
	Reason string `json:"reason,omitempty"`
}

// RolloutTierEntered says that the steps of a tier may begin.
type RolloutTierEntered struct {
	Tier string `json:"tier"`
	// Open are the steps of tiers before that are left open until their nodes are back.
	Open []StepName `json:"open,omitempty"`
}

// RolloutStepBegun says that a node is told, in the same append.
type RolloutStepBegun struct {
	Tier string `json:"tier"`
	StepName
	// Attempt counts the tries of the step, those of plans before included, from 1.
	Attempt int `json:"attempt"`
	// Refresh counts the notifications that this try serves, if it is done.
	Refresh int `json:"refresh,omitempty"`
	// Inputs are what the node is handed with what it is told.
	Inputs []Handed `json:"inputs,omitempty"`
}

// Outcomes of a step.
const (
	StepDone    = "done"
	StepFailed  = "failed"
	StepUnknown = "unknown"
	StepSkipped = "skipped"
)

// StepWaiting is what a step is before it begins, StepPending until it ends.
const (
	StepWaiting = "waiting"
	StepPending = "pending"
)

// How a step came to its outcome.
const (
	// SettledByReport means that the node said so, naming this rollout and this build.
	SettledByReport = "report"
	// SettledByPerson means that somebody who looked said so.
	SettledByPerson = "person"
	// SettledByDeadline means that nobody said anything in time.
	SettledByDeadline = "deadline"
	// SettledAlready means that the node was told just that before.
	SettledAlready = "already"
	// SettledByPolicy means that the strategy says so, of a node that is away.
	SettledByPolicy = "policy"
)

// Driver is what brought a module to a node.
type Driver struct {
	Name    string `json:"name"`
	Version string `json:"version,omitempty"`
	// Configuration is the digest of its configuration.
	Configuration string `json:"configuration,omitempty"`
}

// StepResult is what became of a step.
type StepResult struct {
	// Outcome is one of the Step constants.
	Outcome string `json:"outcome"`
	Reason  string `json:"reason,omitempty"`
	// Reported is when the node says it happened.
	Reported time.Time `json:"reported,omitempty,omitzero"`
	// Outputs are values for the steps that wait for this one.
	Outputs map[string]string `json:"outputs,omitempty"`
	Driver  *Driver           `json:"driver,omitempty"`
}

// RolloutStepEnded says what became of a step.
type RolloutStepEnded struct {
	Tier string `json:"tier"`
	StepName
	Attempt int `json:"attempt"`
	StepResult
	// By is one of the Settled constants.
	By string `json:"by"`
	// From is what the step was before, where it was not pending: waiting, or unknown.
	From string `json:"from,omitempty"`
	// Again says that the step is tried again.
	Again bool `json:"again,omitempty"`
	// Notified are the steps that are told that this one changed something. Each is served by the next try
	// of it that is done.
	Notified []StepName `json:"notified,omitempty"`
}

// RolloutStepRetried says that a step that had come to its end is tried anew, and its tries count from none.
type RolloutStepRetried struct {
	Tier string `json:"tier"`
	StepName
	// From is the outcome it had, or waiting.
	From   string `json:"from"`
	Reason string `json:"reason,omitempty"`
}

// RolloutPaused says that no step begins any more. What runs goes on.
type RolloutPaused struct {
	Reason string `json:"reason,omitempty"`
}

// RolloutResumed says that steps may begin again.
type RolloutResumed struct {
	Reason string `json:"reason,omitempty"`
}

// RolloutAborted says that a rollout was given up.
type RolloutAborted struct {
	Reason string `json:"reason,omitempty"`
}

// RolloutSuperseded says that another rollout has taken the place of this one.
type RolloutSuperseded struct {
	By     string `json:"by"`
	Reason string `json:"reason,omitempty"`
}

// RolloutReverted says which rollout takes this one back. It keeps its outcome.
type RolloutReverted struct {
	By string `json:"by"`
}

// RolloutFailed says that a tier had more failures than its policy accepts.
type RolloutFailed struct {
	Tier   string `json:"tier"`
	Reason string `json:"reason"`
}

// RolloutFinished says that every step has an outcome that its tier accepts.
type RolloutFinished struct {
	// Done, Failed, Unknown and Skipped count the steps by their outcome.
	Done    int `json:"done,omitempty"`
	Failed  int `json:"failed,omitempty"`
	Unknown int `json:"unknown,omitempty"`
	Skipped int `json:"skipped,omitempty"`
}

// Reasons why something does not move. They are stable.
const (
	HoldApproval    = "approval"
	HoldBake        = "bake"
	HoldBuild       = "build"
	HoldConcurrency = "concurrency"
	HoldDependency  = "dependency"
	HoldFrozen      = "frozen"
	HoldGate        = "gate"
	HoldLimit       = "limit"
	HoldManual      = "manual"
	HoldNothingNew  = "nothing-new"
	HoldOffline     = "offline"
	HoldPaused      = "paused"
	HoldPending     = "pending"
	HoldRetry       = "retry"
	HoldRollout     = "rollout"
	HoldSemaphore   = "semaphore"
	HoldStale       = "plan-stale"
	HoldTier        = "tier"
	HoldVetoed      = "vetoed"
)

// Hold says what does not move, why, and what it waits for.
type Hold struct {
	// Reason is one of the Hold constants.
	Reason string `json:"reason"`
	Tier   string `json:"tier,omitempty"`
	// Steps are the first of those that are held, Count is how many there are.
	Steps []StepName `json:"steps,omitempty"`
	Count int        `json:"count,omitempty"`
	// WaitsFor says in words what has to happen, Until when that is, if it is known.
	WaitsFor string    `json:"waits-for,omitempty"`
	Until    time.Time `json:"until,omitempty,omitzero"`
}

// RolloutBlocked says that nothing of a rollout moves, and why. None of it holds any more once something moves.
type RolloutBlocked struct {
	Holds []Hold `json:"holds"`
}

func (RolloutPlanning) isRollout()     {}
func (RolloutStepsPlanned) isRollout() {}
func (RolloutPlanned) isRollout()      {}
func (RolloutApproved) isRollout()     {}
func (RolloutStarted) isRollout()      {}
func (RolloutTierEntered) isRollout()  {}
func (RolloutStepBegun) isRollout()    {}
func (RolloutStepEnded) isRollout()    {}
func (RolloutStepRetried) isRollout()  {}
func (RolloutPaused) isRollout()       {}
func (RolloutResumed) isRollout()      {}
func (RolloutAborted) isRollout()      {}
func (RolloutSuperseded) isRollout()   {}
func (RolloutReverted) isRollout()     {}
func (RolloutFailed) isRollout()       {}
func (RolloutFinished) isRollout()     {}
func (RolloutBlocked) isRollout()      {}
