package audit

import (
	"time"

	"catenary/events"
)

// QuestionAsOf asks what stood at a moment: catenary.query.as-of.
const QuestionAsOf = "as-of"

// AsOfQuestion asks which assignments stood at a moment, of the whole chain or of one node, one module or both.
type AsOfQuestion struct {
	Moment
	Node   string `json:"node,omitempty"`
	Module string `json:"module,omitempty"`
	// Observed asks for what nodes reported to run instead of what they were told.
	Observed bool `json:"observed,omitempty"`
	Page
}

// AsOfAnswer lists what stood, by node and module.
type AsOfAnswer struct {
	// Shows is ShowsTold or ShowsObserved.
	Shows string `json:"shows"`
	// Moment is the moment that was answered, with the clock's time where the question left it out.
	Moment
	Assignments []Standing `json:"assignments"`
	// Next is the cursor of the next page; empty on the last one.
	Next string `json:"next,omitempty"`
	Basis
}

// Standing is an assignment as it stood: what a node was told to run, or reported to run, from a moment on.
type Standing struct {
	Node   string `json:"node"`
	Module string `json:"module"`
	events.Reference
	Build   string `json:"build,omitempty"`
	Commit  string `json:"commit,omitempty"`
	Rollout string `json:"rollout,omitempty"`
	// RequiredBy names the modules that pulled it in.
	RequiredBy []string `json:"required-by,omitempty"`
	// Assigned is when the module came to the node, Since when what it is told now was first told. Of what was observed,
	// Since is when the node first reported it.
	Assigned time.Time `json:"assigned,omitzero"`
	Since    time.Time `json:"since,omitzero"`
	// Until is when it ended, or changed; zero while it stands. Only answers that span times give it.
	Until time.Time `json:"until,omitzero"`
	// Sequence is the event it rests on, Known when that was recorded.
	Sequence uint64    `json:"sequence"`
	Known    time.Time `json:"known"`
	// Healthy, Drift and Reported are what the node reported; only of what was observed.
	Healthy  *bool     `json:"healthy,omitempty"`
	Drift    string    `json:"drift,omitempty"`
	Reported time.Time `json:"reported,omitzero"`
}

// Runs is what is told to run, as short as it can be said: the package or artifact, or else the build, or else the commit.
func (s Standing) Runs() string {
	switch {
	case !s.Reference.IsZero():
		return s.Reference.String()
	case s.Build != "":
		return s.Build
	}
	return s.Commit
}
