package audit

// QuestionDiff asks what differs between two states: catenary.query.diff.
const QuestionDiff = "diff"

// DiffQuestion asks what differs between two states: of the chain at two moments, or of two nodes at one or two moments, or
// of what was told and what was observed.
type DiffQuestion struct {
	From Side `json:"from"`
	To   Side `json:"to"`
	// Module asks about one module only.
	Module string `json:"module,omitempty"`
	Page
}

// Side is one of the two states. With a node on both sides their modules are compared whatever the node; it MUST then be
// given on both.
type Side struct {
	Moment
	Node string `json:"node,omitempty"`
	// Observed takes what the nodes reported instead of what they were told.
	Observed bool `json:"observed,omitempty"`
}

// Kinds of a difference.
const (
	DiffStarted = "started"
	DiffEnded   = "ended"
	DiffChanged = "changed"
)

// DiffAnswer lists the differences, by node and module.
type DiffAnswer struct {
	// From and To are the states that were compared, with the clock's time where the question left it out.
	From DiffSide `json:"from"`
	To   DiffSide `json:"to"`
	// Started, Ended, Changed and Same count all, not only this page.
	Started     int          `json:"started"`
	Ended       int          `json:"ended"`
	Changed     int          `json:"changed"`
	Same        int          `json:"same"`
	Differences []Difference `json:"differences"`
	// Next is the cursor of the next page; empty on the last one.
	Next string `json:"next,omitempty"`
	Basis
}

// Differs says whether anything differs at all.
func (d DiffAnswer) Differs() bool { return d.Started+d.Ended+d.Changed > 0 }

// DiffSide is a state that was compared.
type DiffSide struct {
	// Shows is ShowsTold or ShowsObserved.
	Shows string `json:"shows"`
	Moment
	Node string `json:"node,omitempty"`
}

// Difference is what differs for one module on a node, or on the two nodes that are compared.
type Difference struct {
	// Node is empty when two nodes are compared.
	Node   string `json:"node,omitempty"`
	Module string `json:"module"`
	// Kind is one of the Diff constants.
	Kind   string    `json:"kind"`
	Before *Standing `json:"before,omitempty"`
	After  *Standing `json:"after,omitempty"`
}
