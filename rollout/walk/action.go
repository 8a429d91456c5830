package walk

import (
	"catenary/commands"
	"catenary/es"
	"catenary/events"
)

// Action is a command that is due. It is under way until [State.Answered] is told what came of it.
type Action struct {
	// Payload is the command.
	Payload es.Payload
	// Rollout is the rollout that it moves, Step the step; zero where it is about the rollout as a whole.
	Rollout string
	Step    events.StepName
	// Expected is the version of the instance that it was decided on; zero means any.
	Expected uint64
	// number tells it from every other action of the same state.
	number uint64
}

// asked says which command of a step, or of a rollout as a whole, is under way.
type asked struct {
	// number is that of the action; zero when none is under way.
	number uint64
	// begins says that it is the begin of a step, which takes its place among those that are under way.
	begins bool
}

// hindrance is what the writer last had against a command. It passes with time: nothing is concluded from it.
type hindrance struct {
	code, message string
	// times counts the refusals in a row, until is when to ask again, in nanoseconds since 1970.
	times int
	until int64
}

func beginStep(r *rollout, st *step) es.Payload {
	return commands.BeginStep{ID: r.id, StepName: st.name}
}

func endStep(r *rollout, st *step, result events.StepResult) es.Payload {
	return commands.EndStep{ID: r.id, StepName: st.name, Attempt: st.attempt, StepResult: result}
}
