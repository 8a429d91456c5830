package events

import "catenary/es"

// Aggregates, as they stand in subjects.
const (
	AggregateModule      = "module"
	AggregateNode        = "node"
	AggregateCommit      = "commit"
	AggregateBuild       = "build"
	AggregatePublication = "publication"
	AggregateAssignment  = "assignment"
	AggregateFreeze      = "freeze"
	AggregateLease       = "lease"
	AggregateProjection  = "projection"
	AggregateMerge       = "merge"
	AggregateTrack       = "track"
	AggregateStrategy    = "strategy"
	AggregateRollout     = "rollout"
	AggregateWriter      = "writer"
	AggregateActor       = "actor"
)

// Stored names of the present versions. They never change; a new meaning is a new version.
const (
	TypeModuleRegistered = "module.registered.v1"
	TypeModuleChanged    = "module.changed.v1"
	TypeModuleEnded      = "module.ended.v1"

	TypeNodeRegistered = "node.registered.v1"
	TypeNodeRelabelled = "node.relabelled.v1"
	TypeNodeRetired    = "node.retired.v1"

	TypeCommitRecorded = "commit.recorded.v1"

	TypeBuildAsked          = "build.asked.v1"
	TypeBuildNotAsked       = "build.not-asked.v1"
	TypeBuildOutcomeUnknown = "build.outcome-unknown.v1"
	TypeBuildReaskPending   = "build.reask-pending.v1"
	TypeBuildReaskClaimed   = "build.reask-claimed.v1"
	TypeBuildReasked        = "build.reasked.v1"
	TypeBuildSucceeded      = "build.succeeded.v1"
	TypeBuildFailed         = "build.failed.v1"
	TypeBuildPublished      = "build.published.v1"

	TypePublicationRecorded   = "publication.recorded.v1"
	TypePublicationAttested   = "publication.attested.v1"
	TypePublicationVetoed     = "publication.vetoed.v1"
	TypePublicationVetoLifted = "publication.veto-lifted.v1"

	TypeAssignmentAssigned     = "assignment.assigned.v1"
	TypeAssignmentEnded        = "assignment.ended.v1"
	TypeAssignmentMovedIn      = "assignment.moved-in.v1"
	TypeAssignmentMovedOut     = "assignment.moved-out.v1"
	TypeAssignmentPended       = "assignment.pended.v1"
	TypeAssignmentApplied      = "assignment.applied.v1"
	TypeAssignmentApplyFailed  = "assignment.apply-failed.v1"
	TypeAssignmentHealthy      = "assignment.healthy.v1"
	TypeAssignmentUnhealthy    = "assignment.unhealthy.v1"
	TypeAssignmentRemoved      = "assignment.removed.v1"
	TypeAssignmentRemoveFailed = "assignment.remove-failed.v1"
	TypeAssignmentDrifted      = "assignment.drifted.v1"

	TypeFreezeDeclared = "freeze.declared.v1"
	TypeFreezeLifted   = "freeze.lifted.v1"

	TypeLeaseTaken    = "lease.taken.v1"
	TypeLeaseReleased = "lease.released.v1"

	TypeProjectionPaused  = "projection.paused.v1"
	TypeProjectionResumed = "projection.resumed.v1"
	TypeProjectionSkipped = "projection.skipped.v1"
	TypeMergeHeld         = "merge.held.v1"
	TypeMergeTaken        = "merge.taken.v1"
	TypeMergeReleased     = "merge.released.v1"

	TypeTrackDeclared = "track.declared.v1"
	TypeTrackChanged  = "track.changed.v1"
	TypeTrackEnded    = "track.ended.v1"

	TypeStrategyDeclared = "strategy.declared.v1"
	TypeStrategyEnded    = "strategy.ended.v1"

	TypeRolloutPlanning     = "rollout.planning.v1"
	TypeRolloutStepsPlanned = "rollout.steps-planned.v1"
	TypeRolloutPlanned      = "rollout.planned.v1"
	TypeRolloutApproved     = "rollout.approved.v1"
	TypeRolloutStarted      = "rollout.started.v1"
	TypeRolloutTierEntered  = "rollout.tier-entered.v1"
	TypeRolloutStepBegun    = "rollout.step-begun.v1"
	TypeRolloutStepEnded    = "rollout.step-ended.v1"
	TypeRolloutStepRetried  = "rollout.step-retried.v1"
	TypeRolloutPaused       = "rollout.paused.v1"
	TypeRolloutResumed      = "rollout.resumed.v1"
	TypeRolloutAborted      = "rollout.aborted.v1"
	TypeRolloutSuperseded   = "rollout.superseded.v1"
	TypeRolloutReverted     = "rollout.reverted.v1"
	TypeRolloutFailed       = "rollout.failed.v1"
	TypeRolloutFinished     = "rollout.finished.v1"
	TypeRolloutBlocked      = "rollout.blocked.v1"

	TypeWriterStarted      = "writer.started.v1"
	TypeWriterLossAccepted = "writer.loss-accepted.v1"

	TypeActorForgotten = "actor.forgotten.v1"
)

// Registry gives the registry of every event type, in the codec they are stored in.
func Registry() *es.Registry {
	r := es.NewRegistry(es.Msgpack{})
	es.Register[ModuleRegistered](r, TypeModuleRegistered)
	es.Register[ModuleChanged](r, TypeModuleChanged)
	es.Register[ModuleEnded](r, TypeModuleEnded)

	es.Register[NodeRegistered](r, TypeNodeRegistered)
	es.Register[NodeRelabelled](r, TypeNodeRelabelled)
	es.Register[NodeRetired](r, TypeNodeRetired)

	es.Register[CommitRecorded](r, TypeCommitRecorded)

	es.Register[BuildAsked](r, TypeBuildAsked)
	es.Register[BuildNotAsked](r, TypeBuildNotAsked)
	es.Register[BuildOutcomeUnknown](r, TypeBuildOutcomeUnknown)
	es.Register[BuildReaskPending](r, TypeBuildReaskPending)
	es.Register[BuildReaskClaimed](r, TypeBuildReaskClaimed)
	es.Register[BuildReasked](r, TypeBuildReasked)
	es.Register[BuildSucceeded](r, TypeBuildSucceeded)
	es.Register[BuildFailed](r, TypeBuildFailed)
	es.Register[BuildPublished](r, TypeBuildPublished)

	es.Register[PublicationRecorded](r, TypePublicationRecorded)
	es.Register[PublicationAttested](r, TypePublicationAttested)
	es.Register[PublicationVetoed](r, TypePublicationVetoed)
	es.Register[PublicationVetoLifted](r, TypePublicationVetoLifted)

	es.Register[AssignmentAssigned](r, TypeAssignmentAssigned)
	es.Register[AssignmentEnded](r, TypeAssignmentEnded)
	es.Register[AssignmentMovedIn](r, TypeAssignmentMovedIn)
	es.Register[AssignmentMovedOut](r, TypeAssignmentMovedOut)
	es.Register[AssignmentPended](r, TypeAssignmentPended)
	es.Register[AssignmentApplied](r, TypeAssignmentApplied)
	es.Register[AssignmentApplyFailed](r, TypeAssignmentApplyFailed)
	es.Register[AssignmentHealthy](r, TypeAssignmentHealthy)
	es.Register[AssignmentUnhealthy](r, TypeAssignmentUnhealthy)
	es.Register[AssignmentRemoved](r, TypeAssignmentRemoved)
	es.Register[AssignmentRemoveFailed](r, TypeAssignmentRemoveFailed)
	es.Register[AssignmentDrifted](r, TypeAssignmentDrifted)

	es.Register[FreezeDeclared](r, TypeFreezeDeclared)
	es.Register[FreezeLifted](r, TypeFreezeLifted)

	es.Register[LeaseTaken](r, TypeLeaseTaken)
	es.Register[LeaseReleased](r, TypeLeaseReleased)

	es.Register[ProjectionPaused](r, TypeProjectionPaused)
	es.Register[ProjectionResumed](r, TypeProjectionResumed)
	es.Register[ProjectionSkipped](r, TypeProjectionSkipped)
	es.Register[MergeHeld](r, TypeMergeHeld)
	es.Register[MergeTaken](r, TypeMergeTaken)
	es.Register[MergeReleased](r, TypeMergeReleased)

	es.Register[TrackDeclared](r, TypeTrackDeclared)
	es.Register[TrackChanged](r, TypeTrackChanged)
	es.Register[TrackEnded](r, TypeTrackEnded)

	es.Register[StrategyDeclared](r, TypeStrategyDeclared)
	es.Register[StrategyEnded](r, TypeStrategyEnded)

	es.Register[RolloutPlanning](r, TypeRolloutPlanning)
	es.Register[RolloutStepsPlanned](r, TypeRolloutStepsPlanned)
	es.Register[RolloutPlanned](r, TypeRolloutPlanned)
	es.Register[RolloutApproved](r, TypeRolloutApproved)
	es.Register[RolloutStarted](r, TypeRolloutStarted)
	es.Register[RolloutTierEntered](r, TypeRolloutTierEntered)
	es.Register[RolloutStepBegun](r, TypeRolloutStepBegun)
	es.Register[RolloutStepEnded](r, TypeRolloutStepEnded)
	es.Register[RolloutStepRetried](r, TypeRolloutStepRetried)
	es.Register[RolloutPaused](r, TypeRolloutPaused)
	es.Register[RolloutResumed](r, TypeRolloutResumed)
	es.Register[RolloutAborted](r, TypeRolloutAborted)
	es.Register[RolloutSuperseded](r, TypeRolloutSuperseded)
	es.Register[RolloutReverted](r, TypeRolloutReverted)
	es.Register[RolloutFailed](r, TypeRolloutFailed)
	es.Register[RolloutFinished](r, TypeRolloutFinished)
	es.Register[RolloutBlocked](r, TypeRolloutBlocked)

	es.Register[WriterStarted](r, TypeWriterStarted)
	es.Register[WriterLossAccepted](r, TypeWriterLossAccepted)

	es.Register[ActorForgotten](r, TypeActorForgotten)
	return r
}
