package commands

import (
	"catenary/es"
	"catenary/events"
)

// EngineLease is the lease under which steps are begun and ended. While a process holds it, nobody else does either.
const EngineLease = "rollout-engine"

// Limits of a plan.
const (
	// MaxPartSteps bounds one part of a plan: with names of usual length it stays well under the limit of a record.
	MaxPartSteps = 250
	// MaxPlanSteps bounds a plan: the writer keeps every step of a rollout that is not final in memory.
	MaxPlanSteps = 100_000
	// MaxWaitsFor bounds what one step waits for.
	MaxWaitsFor = 250
)

// PlanRollout writes a plan down: the first part brings the head, each brings steps, and the one with the digest closes it.
type PlanRollout struct {
	ID string `json:"id"`
	// Part counts from 1.
	Part  int                  `json:"part"`
	Head  *events.PlanHead     `json:"head,omitempty"`
	Steps []events.PlannedStep `json:"steps,omitempty"`
	// Digest closes the plan: it is that of all steps of all parts, and Count is their number.
	Digest string `json:"digest,omitempty"`
	Count  int    `json:"count,omitempty"`
	// Confirm is the exact number of steps that end what stands. It is given where there are any.
	Confirm *int `json:"confirm,omitempty"`
}

// ApproveRollout agrees to a tier being entered.
type ApproveRollout struct {
	ID string `json:"id"`
	// Tier is the tier; empty means the next one that waits for approval.
	Tier   string `json:"tier,omitempty"`
	Reason string `json:"reason,omitempty"`
}

// StartRollout lets steps begin.
type StartRollout struct {
	ID     string `json:"id"`
	Reason string `json:"reason,omitempty"`
}

// AdvanceRollout goes on to the next tier, or to the end, if the present tier is through. It is refused while it is not.
type AdvanceRollout struct {
	ID string `json:"id"`
	// Offline are steps whose nodes are away. They stay open where the policy of their tier is to wait.
	Offline []events.StepName `json:"offline,omitempty"`
}

// BeginStep tells a node, and records that in the same append.
type BeginStep struct {
	ID string `json:"id"`
	events.StepName
}

// EndStep says what became of a step. Its outputs are those that the node has reported: the writer knows them, and takes them from nobody else.
type EndStep struct {
	ID string `json:"id"`
	events.StepName
	// Attempt is the try that it is about.
	Attempt int `json:"attempt"`
	events.StepResult
}

// SettleStep says by hand what became of a step that has no outcome, or an unknown one.
type SettleStep struct {
	ID string `json:"id"`
	events.StepName
	Outcome string `json:"outcome"`
	Reason  string `json:"reason"`
}

// RetryStep has a step tried again that failed, was skipped or has an unknown outcome.
type RetryStep struct {
	ID string `json:"id"`
	events.StepName
	Reason string `json:"reason"`
}

// BlockRollout says why nothing moves.
type BlockRollout struct {
	ID    string        `json:"id"`
	Holds []events.Hold `json:"holds"`
}

// PauseRollout lets no step begin any more.
type PauseRollout struct {
	ID     string `json:"id"`
	Reason string `json:"reason,omitempty"`
}

// ResumeRollout lets steps begin again.
type ResumeRollout struct {
	ID     string `json:"id"`
	Reason string `json:"reason,omitempty"`
}

// AbortRollout gives a rollout up.
type AbortRollout struct {
	ID     string `json:"id"`
	Reason string `json:"reason,omitempty"`
}

// SupersedeRollout puts another rollout in the place of this one.
type SupersedeRollout struct {
	ID     string `json:"id"`
	By     string `json:"by"`
	Reason string `json:"reason,omitempty"`
}

// RolloutRef is the instance of a rollout.
func RolloutRef(id string) es.Ref {
	return es.Ref{Aggregate: events.AggregateRollout, Key: es.Key(id)}
}

// Ref is the rollout.
func (c PlanRollout) Ref() es.Ref { return RolloutRef(c.ID) }

// Ref is the rollout.
func (c ApproveRollout) Ref() es.Ref { return RolloutRef(c.ID) }

// Ref is the rollout.
func (c StartRollout) Ref() es.Ref { return RolloutRef(c.ID) }

// Ref is the rollout.
func (c AdvanceRollout) Ref() es.Ref { return RolloutRef(c.ID) }

// Ref is the rollout.
func (c BeginStep) Ref() es.Ref { return RolloutRef(c.ID) }

// Ref is the rollout.
func (c EndStep) Ref() es.Ref { return RolloutRef(c.ID) }

// Ref is the rollout.
func (c SettleStep) Ref() es.Ref { return RolloutRef(c.ID) }

// Ref is the rollout.
func (c RetryStep) Ref() es.Ref { return RolloutRef(c.ID) }

// Ref is the rollout.
func (c BlockRollout) Ref() es.Ref { return RolloutRef(c.ID) }

// Ref is the rollout.
func (c PauseRollout) Ref() es.Ref { return RolloutRef(c.ID) }

// Ref is the rollout.
func (c ResumeRollout) Ref() es.Ref { return RolloutRef(c.ID) }

// Ref is the rollout.
func (c AbortRollout) Ref() es.Ref { return RolloutRef(c.ID) }

// Ref is the rollout.
func (c SupersedeRollout) Ref() es.Ref { return RolloutRef(c.ID) }

// Verb is plan.
func (PlanRollout) Verb() string { return "plan" }

// Verb is approve.
func (ApproveRollout) Verb() string { return "approve" }

// Verb is start.
func (StartRollout) Verb() string { return "start" }

// Verb is advance.
func (AdvanceRollout) Verb() string { return "advance" }

// Verb is begin-step.
func (BeginStep) Verb() string { return "begin-step" }

// Verb is end-step.
func (EndStep) Verb() string { return "end-step" }

// Verb is settle.
func (SettleStep) Verb() string { return "settle" }

// Verb is retry-step.
func (RetryStep) Verb() string { return "retry-step" }

// Verb is block.
func (BlockRollout) Verb() string { return "block" }

// Verb is pause.
func (PauseRollout) Verb() string { return "pause" }

// Verb is resume.
func (ResumeRollout) Verb() string { return "resume" }

// Verb is abort.
func (AbortRollout) Verb() string { return "abort" }

// Verb is supersede.
func (SupersedeRollout) Verb() string { return "supersede" }
