package audit

import "time"

// QuestionBlame asks who put a module on a node: catenary.query.blame.
const QuestionBlame = "blame"

// BlameQuestion asks where what a node runs at a moment comes from.
type BlameQuestion struct {
	Node   string `json:"node"`
	Module string `json:"module"`
	Moment
	// Observed asks for what the node reported instead of what it was told.
	Observed bool `json:"observed,omitempty"`
}

// BlameAnswer says who, when, why, by which rollout, command and event, and what was there before.
type BlameAnswer struct {
	// Shows is ShowsTold or ShowsObserved.
	Shows string `json:"shows"`
	Moment
	Node   string `json:"node"`
	Module string `json:"module"`
	// Stands says whether the module stood there. When it did not, Change is what ended it.
	Stands bool `json:"stands"`
	// Change is the event that made it so.
	Change Deed `json:"change"`
	// Touched is a later event that said the same again, such as another module that requires it.
	Touched *Deed `json:"touched,omitempty"`
	// Now is what stood then, Before what stood before the change; nil when nothing did.
	Now    *Standing `json:"now,omitempty"`
	Before *Standing `json:"before,omitempty"`
	// Published, Build and Commit are where what stands comes from, as far as the record says.
	Published *TracedPublication `json:"published,omitempty"`
	Build     *TracedBuild       `json:"build,omitempty"`
	Commit    *TracedCommit      `json:"commit,omitempty"`
	Basis
}

// Deed is an event with who is behind it.
type Deed struct {
	Sequence uint64 `json:"sequence"`
	Event    string `json:"event"`
	Type     string `json:"type"`
	// Effective is when it became true, Recorded when we learnt of it.
	Effective time.Time `json:"effective"`
	Recorded  time.Time `json:"recorded"`
	Backfill  bool      `json:"backfill,omitempty"`
	Actor     Person    `json:"actor"`
	// OnBehalfOf is for whom the actor did it.
	OnBehalfOf  *Person `json:"on-behalf-of,omitempty"`
	Reason      string  `json:"reason,omitempty"`
	Rollout     string  `json:"rollout,omitempty"`
	Command     string  `json:"command,omitempty"`
	Causation   string  `json:"causation,omitempty"`
	Correlation string  `json:"correlation,omitempty"`
}
