package rollout

// Row says what a command leads to in a state of the rollout and a situation: events, "unchanged", or "refused" and the code.
// Events of the rollout itself have their short names; those of another instance have their aggregate's before them.
type Row struct {
	State     Status
	Command   string
	Situation string
	Outcome   string
}

// Usual is the situation in which nothing stands in a command's way but the state: the step it names has begun where it ends one, its
// node has reported, and a tier is through where the rollout goes on.
const Usual = ""

const refused = "refused: "

// Table says what each command leads to in each state, and in the situations that matter. It is the contract of the package: what
// the deciders do is tested against each row of it.
func Table() []Row {
	const (
		unknown    = refused + CodeUnknown
		notPlanned = refused + CodeNotPlanned
		notStarted = refused + CodeNotStarted
		notPaused  = refused + CodeNotPaused
		paused     = refused + CodePaused
		closed     = refused + CodeAlreadyPlanned
		final      = refused + CodeFinal
		unchanged  = string(nothing)
		begun      = "step-begun, assignment.assigned"
		ended      = "step-ended"
	)
	matrix := []struct {
		command string
		// Unknown, Planning, Planned, WaitingApproval, Running, Paused, and the final ones.
		outcomes [7]string
	}{
		{"plan", [7]string{"planning, steps-planned, planned", "steps-planned, planned", closed, closed, closed, closed, final}},
		{"approve", [7]string{unknown, notPlanned, "approved", "approved", "approved", "approved", final}},
		{"start", [7]string{unknown, notPlanned, "started, tier-entered", refused + CodeApprovalNeeded, unchanged, paused, final}},
		{"advance", [7]string{unknown, notStarted, notStarted, notStarted, "tier-entered", paused, final}},
		{"begin-step", [7]string{unknown, notStarted, notStarted, notStarted, begun, paused, final}},
		{"end-step", [7]string{unknown, notStarted, notStarted, notStarted, ended, ended, ended}},
		{"settle", [7]string{unknown, notStarted, notStarted, notStarted, ended, ended, ended}},
		{"retry-step", [7]string{unknown, notStarted, notStarted, notStarted, "step-retried", "step-retried", final}},
		{"block", [7]string{unknown, notPlanned, "blocked", "blocked", "blocked", "blocked", final}},
		{"pause", [7]string{unknown, notStarted, notStarted, notStarted, "paused", unchanged, final}},
		{"resume", [7]string{unknown, notPaused, notPaused, notPaused, unchanged, "resumed", final}},
		{"abort", [7]string{unknown, "aborted", "aborted", "aborted", "aborted", "aborted", final}},
		{"supersede", [7]string{unknown, "superseded", "superseded", "superseded", "superseded", "superseded", final}},
	}
	var rows []Row
	for _, m := range matrix {
		for _, s := range statuses() {
			rows = append(rows, Row{State: s, Command: m.command, Situation: Usual, Outcome: m.outcomes[min(int(s), len(m.outcomes)-1)]})
		}
	}
	return append(rows, situations(begun, ended)...)
}

// situations lists what depends on more than the state.
func situations(begun, ended string) []Row {
	const onward = "step-ended, tier-entered"
	return []Row{
		{Unknown, "plan", "its digest is that of other steps", refused + CodePlanDigest},
		{Unknown, "plan", "its count is another one", refused + CodePlanDigest},
		{Unknown, "plan", "it has no steps", refused + CodeEmptyPlan},
		{Unknown, "plan", "it ends what stands, unconfirmed", refused + CodeConfirmCount},
		{Unknown, "plan", "it ends what stands, and another count is confirmed", refused + CodeConfirmCount},
		{Unknown, "plan", "it ends what stands, and the count is confirmed", "planning, steps-planned, planned"},
		{Unknown, "plan", "a step is in a tier that the strategy has not", refused + CodeUnknownTier},
		{Unknown, "plan", "a module is changed twice on a node", refused + CodeDuplicateStep},
		{Unknown, "plan", "a step waits for one behind it", refused + CodeWaitsForLater},
		{Unknown, "plan", "its track does not carry the module", refused + CodeNotOfTrack},
		{Unknown, "plan", "it takes a running rollout back", "planning, steps-planned, planned, other aborted, other reverted, publication.vetoed"},
		{Unknown, "plan", "it takes a finished rollout back", "planning, steps-planned, planned, other reverted, publication.vetoed"},
		{Unknown, "plan", "it takes a queued rollout back", refused + CodeNothingToRevert},
		{Unknown, "plan", "it takes back what is taken back", refused + CodeReverted},
		{Unknown, "plan", "it replaces a queued rollout", "planning, steps-planned, planned, other superseded"},
		{Unknown, "plan", "it replaces a rollout that is final by now", "planning, steps-planned, planned"},
		{Planning, "plan", "the part came before", refused + CodePlanPart},
		{Planning, "plan", "a part between is missing", refused + CodePlanPart},

		{Running, "begin-step", "its tier is not entered", refused + CodeTierNotEntered},
		{Running, "begin-step", "there is no such step", refused + CodeUnknownStep},
		{Running, "begin-step", "it has begun", refused + CodeStepBegun},
		{Running, "begin-step", "it is done", refused + CodeStepEnded},
		{Running, "begin-step", "the node has left the before-reference", refused + CodePlanStale},
		{Running, "begin-step", "the node is right already", onward},
		{Running, "begin-step", "what it waits for is not done", refused + CodeDependency},
		{Running, "begin-step", "a freeze holds", refused + CodeFrozen},
		{Running, "begin-step", "a freeze holds by the labels of the node", refused + CodeFrozen},
		{Running, "begin-step", "the publication is vetoed", refused + "vetoed"},
		{Running, "begin-step", "the node is retired", refused + "node-retired"},
		{Running, "begin-step", "somebody else manages the node", refused + CodeExternal},
		{Running, "begin-step", "as many are under way as may be", refused + CodeConcurrency},
		{Running, "begin-step", "it failed just now", refused + CodeRetryDelay},
		{Running, "begin-step", "it failed a while ago", begun},
		{Running, "begin-step", "it ends what stands", "step-begun, assignment.ended"},
		{Running, "begin-step", "it ends what stands, and failed to a while ago", "step-begun, assignment.ended"},
		{Running, "begin-step", "it is a refresh, and nothing has changed", refused + CodeNothingToRefresh},
		{Running, "begin-step", "it is a refresh, and something has changed", begun},
		{Running, "begin-step", "it is a refresh, and failed to a while ago", begun},
		{Running, "begin-step", "the sender has lost the engine's lease", "fenced: " + CodeFenced},
		{Running, "begin-step", "the sender has the engine's lease", begun},

		{Running, "end-step", "there is no such step", refused + CodeUnknownStep},
		{Running, "end-step", "it is about another attempt", refused + CodeOtherAttempt},
		{Running, "end-step", "the node has not reported", refused + CodeNotReported},
		{Running, "end-step", "the report names another rollout", refused + CodeNotReported},
		{Running, "end-step", "the report names another build", refused + CodeNotReported},
		{Running, "end-step", "the report is about an earlier try", refused + CodeNotReported},
		{Running, "end-step", "done, and the node reported a failure", refused + CodeNotReported},
		{Running, "end-step", "failed, and it is tried again", ended},
		{Running, "end-step", "failed, within the budget", onward},
		{Running, "end-step", "failed, over the budget", "step-ended, failed"},
		{Paused, "end-step", "failed, over the budget", "step-ended, failed"},
		{Running, "end-step", "unknown, before its deadline", refused + CodeDeadline},
		{Running, "end-step", "unknown, after its deadline", "step-ended, failed"},
		{Running, "end-step", "unknown, and it was paused meanwhile", refused + CodeDeadline},
		{Running, "end-step", "a report after it was unknown", refused + CodeStepEnded},
		{Running, "end-step", "skipped, and it has begun", refused + CodeStepBegun},
		{Running, "end-step", "the last of its tier", onward},
		{Running, "end-step", "the last of all", "step-ended, finished"},
		{Running, "end-step", "the last of its tier, and that bakes", ended},
		{Running, "end-step", "the last of its tier, and the next waits for approval", ended},
		{Running, "end-step", "the last of its tier, applied, and the gate is health", ended},
		{Paused, "end-step", "the last of its tier", ended},
		{Running, "end-step", "skipped before it began, its node away: the policy is skip", onward},
		{Running, "end-step", "skipped before it began, its node away: the policy is wait", refused + CodeNotAllowed},
		{Running, "end-step", "failed before it began, its node away: the policy is fail", "step-ended, failed"},
		{Running, "end-step", "skipped before it began: what it waits for failed", onward},
		{Running, "end-step", "done before it began", refused + CodeStepNotBegun},
		{Running, "end-step", "the sender has lost the engine's lease", "fenced: " + CodeFenced},
		{Aborted, "end-step", "it had not begun", refused + CodeUnknownStep},
		{Aborted, "end-step", "the node has not reported", refused + CodeNotReported},

		{Running, "settle", "its outcome is unknown", ended},
		{Running, "settle", "it is done", refused + CodeStepEnded},
		{Running, "settle", "skipped, and it has not begun", onward},
		{Running, "settle", "done, and it has not begun", refused + CodeStepNotBegun},
		{Running, "settle", "failed, over the budget", "step-ended, failed"},
		{Running, "retry-step", "it has begun", refused + CodeStepBegun},
		{Running, "retry-step", "it is done", refused + CodeStepEnded},
		{Running, "retry-step", "it waits, and never failed", string(nothing)},

		{Running, "advance", "a step has no outcome", refused + CodeTierIncomplete},
		{Running, "advance", "a node is away: the policy is wait", "tier-entered"},
		{Running, "advance", "a node is away: the policy is skip", refused + CodeTierIncomplete},
		{Running, "advance", "the tier bakes", refused + CodeBake},
		{Running, "advance", "the tier has baked", "tier-entered"},
		{Running, "advance", "the tier bakes, and the rollout was paused meanwhile", refused + CodeBake},
		{Running, "advance", "the gate is health, and a node has not reported it", refused + CodeGate},
		{Running, "advance", "the gate is health, and another rollout's health is reported", refused + CodeGate},
		{Running, "advance", "the gate is health, and all is well", "tier-entered"},
		{Running, "advance", "a node is not well", "failed"},
		{Running, "advance", "the next tier waits for approval", refused + CodeApprovalNeeded},
		{Running, "advance", "it was the last tier", "finished"},
		{Running, "advance", "it was the last tier, and a node is away still", refused + CodeStepsOpen},
		{Running, "advance", "the sender has lost the engine's lease", "fenced: " + CodeFenced},

		{Running, "block", "it was said before", string(nothing)},
		{Running, "block", "the sender has lost the engine's lease", "fenced: " + CodeFenced},
		{Planned, "approve", "no tier waits for approval", refused + CodeNoApproval},
		{Planned, "approve", "there is no such tier", refused + CodeUnknownTier},
		{Planned, "approve", "the tier to be entered is approved already, and one behind it is not", string(nothing)},
		{Planned, "supersede", "by a rollout that is not known", refused + CodeUnknown},
		{Planned, "supersede", "by a rollout that is final", refused + CodeFinal},
	}
}
