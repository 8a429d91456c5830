package rollout

import (
	"fmt"

	"catenary/es"
)

// verdict is what a command meets by the state of the rollout alone.
type verdict string

const (
	// admitted commands are looked at further.
	admitted verdict = "admitted"
	// nothing is what a command changes that asks for what is so already.
	nothing verdict = "unchanged"
)

// admit gives what a command meets by the state of the rollout alone: one of the verdicts, or the code of a refusal.
func admit(s Status, verb string) verdict {
	if s == Unknown {
		if verb == "plan" {
			return admitted
		}
		return CodeUnknown
	}
	if s.Final() {
		switch verb {
		case "end-step", "settle":
			return admitted // what is pending can be settled whenever somebody knows
		}
		return CodeFinal
	}
	switch verb {
	case "plan":
		return only(s == Planning, CodeAlreadyPlanned)
	case "approve", "block":
		return only(s != Planning, CodeNotPlanned)
	case "start":
		return admitStart(s)
	case "advance", "begin-step":
		if s == Paused {
			return CodePaused
		}
		return only(s == Running, CodeNotStarted)
	case "end-step", "settle", "retry-step":
		return only(s.walks(), CodeNotStarted)
	case "pause":
		if s == Paused {
			return nothing
		}
		return only(s == Running, CodeNotStarted)
	case "resume":
		if s == Running {
			return nothing
		}
		return only(s == Paused, CodeNotPaused)
	}
	return admitted // abort and supersede, queued or not
}

func admitStart(s Status) verdict {
	switch s {
	case Planning:
		return CodeNotPlanned
	case WaitingApproval:
		return CodeApprovalNeeded
	case Running:
		return nothing
	case Paused:
		return CodePaused
	}
	return admitted
}

func only(yes bool, otherwise verdict) verdict {
	if yes {
		return admitted
	}
	return otherwise
}

// refuse says what the code means for a rollout.
func (v verdict) refuse(id string, s State) error {
	switch v {
	case CodeUnknown, CodeFinal:
		return Open(id, s)
	}
	hints := map[verdict]string{
		CodeAlreadyPlanned: "plan another one under another id",
		CodeNotPlanned:     "write the plan down to its end, or abort it",
		CodeNotStarted:     "start it first",
		CodePaused:         "resume it first",
		CodeApprovalNeeded: "approve it first",
	}
	return es.Refuse(string(v), fmt.Sprintf("rollout %s is %s", id, s.Status), hints[v])
}
