package rollout

import (
	"fmt"

	"catenary/es"
)

// Status is how a rollout stands.
type Status uint8

// The statuses of a rollout.
const (
	Unknown Status = iota
	Planning
	Planned
	WaitingApproval
	Running
	Paused
	Finished
	Failed
	Aborted
	Superseded
)

// statuses lists all of them, in order.
func statuses() []Status {
	return []Status{Unknown, Planning, Planned, WaitingApproval, Running, Paused, Finished, Failed, Aborted, Superseded}
}

func (s Status) String() string {
	return [...]string{
		"unknown", "planning", "planned", "waiting-approval", "running", "paused", "finished", "failed", "aborted", "superseded",
	}[s]
}

// Final says whether nothing changes the rollout any more.
func (s Status) Final() bool { return s >= Finished }

// walks says whether steps may be under way without the rollout being final.
func (s Status) walks() bool { return s == Running || s == Paused }

// Codes of the refusals of rollouts.
const (
	CodeUnknown          = "unknown-rollout"
	CodeFinal            = "rollout-final"
	CodeNotPlanned       = "not-planned"
	CodeNotStarted       = "not-started"
	CodeAlreadyPlanned   = "already-planned"
	CodePaused           = "paused"
	CodeNotPaused        = "not-paused"
	CodeApprovalNeeded   = "approval-needed"
	CodeNoApproval       = "no-approval"
	CodePlanPart         = "plan-part"
	CodePlanDigest       = "plan-digest"
	CodeEmptyPlan        = "nothing-to-change"
	CodeConfirmCount     = "confirm-count"
	CodeUnknownTier      = "unknown-tier"
	CodeDuplicateStep    = "duplicate-step"
	CodeWaitsForLater    = "waits-for-later"
	CodePlanTooLarge     = "plan-too-large"
	CodeNotOfTrack       = "not-of-track"
	CodeNothingToRevert  = "nothing-to-revert"
	CodeReverted         = "reverted"
	CodeUnknownStep      = "unknown-step"
	CodeStepBegun        = "step-begun"
	CodeStepEnded        = "step-ended"
	CodeStepNotBegun     = "step-not-begun"
	CodeOtherAttempt     = "other-attempt"
	CodeTierNotEntered   = "tier-not-entered"
	CodeTierIncomplete   = "tier-incomplete"
	CodeStepsOpen        = "steps-open"
	CodeDependency       = "dependency"
	CodeConcurrency      = "concurrency"
	CodeRetryDelay       = "retry-delay"
	CodeFrozen           = "frozen"
	CodeExternal         = "node-external"
	CodePlanStale        = "plan-stale"
	CodeNothingToRefresh = "nothing-to-refresh"
	CodeNotReported      = "not-reported"
	CodeDeadline         = "deadline-ahead"
	CodeNotAllowed       = "not-allowed"
	CodeGate             = "gate"
	CodeBake             = "bake"
	CodeFenced           = "fenced"
)

// Open refuses a rollout that is not known, or final.
func Open(id string, s State) error {
	switch {
	case s.Status == Unknown:
		return es.Refuse(CodeUnknown, fmt.Sprintf("rollout %s is not known", id), "see catenary rollout ls")
	case s.Status.Final():
		return final(id, s)
	}
	return nil
}

func final(id string, s State) error {
	return es.Refuse(CodeFinal, fmt.Sprintf("rollout %s is %s: that is final", id, s.Status), "plan another one")
}
