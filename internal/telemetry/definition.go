package telemetry

// Kind says how a metric moves.
type Kind string

const (
	// Counter only grows while the process lives.
	Counter Kind = "counter"
	// Gauge goes up and down.
	Gauge Kind = "gauge"
	// Histogram counts by size.
	Histogram Kind = "histogram"
)

// Definition says what a metric is.
type Definition struct {
	Name   string
	Kind   Kind
	Labels []string
	// Part is the part of the system that has it.
	Part string
	Help string
}

// Names of the metrics.
const (
	BuildInfo  = "catenary_build_info"
	CheckState = "catenary_check_state"

	Commands        = "catenary_commands_total"
	CommandSeconds  = "catenary_command_seconds"
	CommandsWaiting = "catenary_commands_waiting"
	AppendEvents    = "catenary_append_events"
	AppendSeconds   = "catenary_append_seconds"
	EventSequence   = "catenary_event_sequence"
	WriterActive    = "catenary_writer_active"
	StoreBytes      = "catenary_store_bytes"
	StoreLimit      = "catenary_store_limit_bytes"
	StoreFollowers  = "catenary_followers"

	ViewEvent           = "catenary_view_event"
	ViewBehind          = "catenary_view_behind_events"
	ViewLag             = "catenary_view_lag_seconds"
	ViewState           = "catenary_view_state"
	ViewParked          = "catenary_view_parked"
	ViewGeneration      = "catenary_view_generation"
	GenerationsBuilding = "catenary_generations_building"
	AuditEvent          = "catenary_audit_event"
	AuditBehind         = "catenary_audit_behind_events"
	AuditParked         = "catenary_audit_parked"
	AuditGoes           = "catenary_audit_goes_on"
	Nodes               = "catenary_nodes"
	NodesConverged      = "catenary_nodes_converged"

	EngineEvent  = "catenary_engine_event"
	EngineLease  = "catenary_engine_lease_fence"
	Rollouts     = "catenary_rollouts"
	StepsPending = "catenary_steps_pending"
	StepsBlocked = "catenary_steps_blocked"

	AgentConverged = "catenary_agent_converged"
	AgentUnsent    = "catenary_agent_unsent"
	AgentWrong     = "catenary_agent_modules"
	AgentDeeds     = "catenary_agent_deeds_total"
	AgentDeedTime  = "catenary_agent_deed_seconds"
)

// Parts of the system, as the documentation orders the metrics.
const (
	partAll       = "every process"
	partWriter    = "writer"
	partProjector = "projector"
	partEngine    = "engine"
	partAgent     = "agent"
)

// Definitions lists all metrics, in the order of the documentation.
func Definitions() []Definition {
	return []Definition{
		{BuildInfo, Gauge, []string{"program", "version"}, partAll, "1, with which program it is."},
		{CheckState, Gauge, []string{"check"}, partAll, "How a check of /readyz is: 0 ok, 1 warn, 2 fail."},

		{Commands, Counter, []string{"aggregate", "verb", "status"}, partWriter, "Commands that were answered. What is no command of the chain counts as aggregate and verb unknown."},
		{CommandSeconds, Histogram, []string{"aggregate", "verb"}, partWriter, "From when a command was taken in until it was answered."},
		{CommandsWaiting, Gauge, nil, partWriter, "Commands that wait to be decided."},
		{AppendEvents, Histogram, nil, partWriter, "Events of one append."},
		{AppendSeconds, Histogram, nil, partWriter, "From when the first command of an append was decided until its events stood."},
		{EventSequence, Gauge, nil, partWriter, "The last event that this writer knows to stand."},
		{WriterActive, Gauge, nil, partWriter, "1 for the writer that takes commands, 0 for one that stands by."},
		{StoreBytes, Gauge, []string{"kind", "name"}, partWriter, "Bytes that a stream, a bucket, the account or the disk holds."},
		{StoreLimit, Gauge, []string{"kind", "name"}, partWriter, "Bytes that it may hold."},
		{StoreFollowers, Gauge, nil, partWriter, "Readers that follow the event stream."},

		{ViewEvent, Gauge, []string{"view"}, partProjector, "The last event that the view has passed."},
		{ViewBehind, Gauge, []string{"view"}, partProjector, "Events that the view has not passed."},
		{ViewLag, Gauge, []string{"view"}, partProjector, "Age of the oldest of them, in seconds."},
		{ViewState, Gauge, []string{"view", "state"}, partProjector, "1 for the state that the view is in."},
		{ViewParked, Gauge, []string{"view"}, partProjector, "Instances of which nothing is folded any more."},
		{ViewGeneration, Gauge, []string{"view"}, partProjector, "Which bucket of the view is read."},
		{GenerationsBuilding, Gauge, nil, partProjector, "New buckets that are being built: one at a time."},
		{AuditEvent, Gauge, nil, partProjector, "The last event that the audit store has taken in."},
		{AuditBehind, Gauge, nil, partProjector, "Events that it has not taken in."},
		{AuditParked, Gauge, nil, partProjector, "Instances of which it folds nothing any more."},
		{AuditGoes, Gauge, nil, partProjector, "1 while it goes on, 0 while it is stopped, paused or held up."},
		{Nodes, Gauge, []string{"state"}, partProjector, "Nodes that stand, by how they are: on, off, unsure or external."},
		{NodesConverged, Gauge, nil, partProjector, "Nodes whose agent says that all they are told is so."},

		{EngineEvent, Gauge, nil, partEngine, "The last event that the engine has read."},
		{EngineLease, Gauge, []string{"holder", "own"}, partEngine, "Fence of the lease, with who holds it and whether that is this engine. Missing while nobody does."},
		{Rollouts, Gauge, nil, partEngine, "Rollouts that are not final, or have steps under way."},
		{StepsPending, Gauge, nil, partEngine, "Steps that have begun and have no outcome."},
		{StepsBlocked, Gauge, []string{"reason"}, partEngine, "Steps, tiers and rollouts that do not move, by why."},

		{AgentConverged, Gauge, nil, partAgent, "1 when all that the node is told is so."},
		{AgentUnsent, Gauge, nil, partAgent, "Reports that the bus does not have yet."},
		{AgentWrong, Gauge, []string{"state"}, partAgent, "Modules that have failed, drifted, are unhealthy or wait; at most 20 of each are counted."},
		{AgentDeeds, Counter, []string{"deed", "outcome"}, partAgent, "What the agent has done, and whether it was done or has failed."},
		{AgentDeedTime, Histogram, []string{"deed"}, partAgent, "How long that took."},
	}
}

// buckets gives the bounds of a histogram.
func buckets(name string) []float64 {
	switch name {
	case AppendEvents:
		// The largest append of the store is 1,000 messages.
		return []float64{1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1000}
	case AgentDeedTime:
		return []float64{0.1, 0.5, 1, 5, 10, 30, 60, 120, 300, 600}
	}
	// A lone append takes 0.1 to 5 ms, a sender's patience 5 s.
	return []float64{0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5}
}
