package failpoint

import "slices"

// Name is that of a moment in a program.
type Name string

// The writer's moments.
const (
	// WriterBeforeAppend is when commands are decided and nothing of them was sent to the store.
	WriterBeforeAppend Name = "writer-before-append"
	// WriterAfterAppend is when an append stands and nobody was answered.
	WriterAfterAppend Name = "writer-after-append"
	// WriterAfterAnswer is when those who waited for an append were answered.
	WriterAfterAnswer Name = "writer-after-answer"
	// WriterBeforeStart is when a writer has read the stream and has not recorded its start.
	WriterBeforeStart Name = "writer-before-start"
	// WriterSnapshot is in the middle of writing a snapshot.
	WriterSnapshot Name = "writer-snapshot"
	// StoreBatch is in the middle of the messages of an atomic batch.
	StoreBatch Name = "store-batch"
	// StoreAnswerLost is when the store has answered an append. With an error the answer counts as lost.
	StoreAnswerLost Name = "store-answer-lost"
	// BatonTaken is when a process has taken the baton and has done nothing with it.
	BatonTaken Name = "baton-taken"
	// BatonRenew is before a holder renews the baton.
	BatonRenew Name = "baton-renew"
	// InboxDone is when a command of the inbox has its outcome and its receipt is not kept.
	InboxDone Name = "inbox-done"
)

// The projector's moments.
const (
	// ProjectorBeforePut is before values are sent to a bucket.
	ProjectorBeforePut Name = "projector-before-put"
	// ProjectorAfterPut is when a value stands and the view does not know.
	ProjectorAfterPut Name = "projector-after-put"
	// ProjectorBeforeMark is before a view leaves its mark.
	ProjectorBeforeMark Name = "projector-before-mark"
	// RebuildFill is while a new generation of a bucket is filled.
	RebuildFill Name = "rebuild-fill"
	// RebuildBeforePoint is when a new generation is whole and readers are not sent to it.
	RebuildBeforePoint Name = "rebuild-before-point"
	// RebuildAfterPoint is when readers are sent to a new generation and it is not served.
	RebuildAfterPoint Name = "rebuild-after-point"
	// AuditBeforeCommit is before a transaction of the audit store is committed.
	AuditBeforeCommit Name = "audit-before-commit"
	// AuditAfterCommit is after it.
	AuditAfterCommit Name = "audit-after-commit"
)

// The engine's moments.
const (
	// EngineBeforeBegin is when a step is to begin and that was not said.
	EngineBeforeBegin Name = "engine-before-begin"
	// EngineAfterBegin is when the begin of a step was answered and the engine does not know.
	EngineAfterBegin Name = "engine-after-begin"
	// EngineBeforeEnd is when a step is to end and that was not said.
	EngineBeforeEnd Name = "engine-before-end"
	// EngineAfterEnd is when the end of a step was answered and the engine does not know.
	EngineAfterEnd Name = "engine-after-end"
	// EngineLease is when the lease was taken or renewed and the engine does not know.
	EngineLease Name = "engine-lease"
)

// The agent's moments.
const (
	// AgentBeforeState is before the agent's state is written.
	AgentBeforeState Name = "agent-before-state"
	// AgentBeforeDeed is when the state says that a deed has begun and nothing was done.
	AgentBeforeDeed Name = "agent-before-deed"
	// AgentAfterDeed is when a deed is done and the state does not say so.
	AgentAfterDeed Name = "agent-after-deed"
	// AgentBeforeReport is when the state holds a report that the outbox does not have.
	AgentBeforeReport Name = "agent-before-report"
	// AgentAfterReport is when the outbox has a report that the state still holds.
	AgentAfterReport Name = "agent-after-report"
	// OutboxSent is when the bus has a command and the outbox does not know.
	OutboxSent Name = "outbox-sent"
)

// Point is a moment and what can be made of it.
type Point struct {
	Name Name
	// Program is the one that passes it.
	Program string
	// Fails says that it can be made to fail with an error; all others only wait, stop or end.
	Fails bool
}

// Points lists all moments.
func Points() []Point {
	return []Point{
		{Name: WriterBeforeAppend, Program: "writer"},
		{Name: WriterAfterAppend, Program: "writer"},
		{Name: WriterAfterAnswer, Program: "writer"},
		{Name: WriterBeforeStart, Program: "writer"},
		{Name: WriterSnapshot, Program: "writer", Fails: true},
		{Name: StoreBatch, Program: "writer"},
		{Name: StoreAnswerLost, Program: "writer", Fails: true},
		{Name: BatonTaken, Program: "writer"},
		{Name: BatonRenew, Program: "writer"},
		{Name: InboxDone, Program: "writer"},
		{Name: ProjectorBeforePut, Program: "projector"},
		{Name: ProjectorAfterPut, Program: "projector"},
		{Name: ProjectorBeforeMark, Program: "projector", Fails: true},
		{Name: RebuildFill, Program: "projector"},
		{Name: RebuildBeforePoint, Program: "projector", Fails: true},
		{Name: RebuildAfterPoint, Program: "projector"},
		{Name: AuditBeforeCommit, Program: "projector"},
		{Name: AuditAfterCommit, Program: "projector"},
		{Name: EngineBeforeBegin, Program: "engine"},
		{Name: EngineAfterBegin, Program: "engine"},
		{Name: EngineBeforeEnd, Program: "engine"},
		{Name: EngineAfterEnd, Program: "engine"},
		{Name: EngineLease, Program: "engine"},
		{Name: AgentBeforeState, Program: "agent", Fails: true},
		{Name: AgentBeforeDeed, Program: "agent"},
		{Name: AgentAfterDeed, Program: "agent"},
		{Name: AgentBeforeReport, Program: "agent"},
		{Name: AgentAfterReport, Program: "agent"},
		{Name: OutboxSent, Program: "agent"},
	}
}

// known gives the point of a name.
func known(name Name) (Point, bool) {
	all := Points()
	i := slices.IndexFunc(all, func(p Point) bool { return p.Name == name })
	if i < 0 {
		return Point{}, false
	}
	return all[i], true
}
