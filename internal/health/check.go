package health

import "time"

// State says how something is.
type State string

const (
	// OK is as it should be.
	OK State = "ok"
	// Warn works, and somebody should look at it soon.
	Warn State = "warn"
	// Fail does not work.
	Fail State = "fail"
)

// weight orders states: the worse, the heavier.
func (s State) weight() int {
	switch s {
	case OK:
		return 0
	case Warn:
		return 1
	case Fail:
	}
	return 2
}

// Worse gives the worse of two states.
func (s State) Worse(t State) State {
	if t.weight() > s.weight() {
		return t
	}
	return s
}

// Code says in a word what is the matter. Codes are stable, for programs.
type Code string

// Codes of findings.
const (
	// Starting is said of what is not there yet.
	Starting Code = "starting"
	// Away means that what it needs does not answer.
	Away Code = "away"
	// Behind means that it goes on, and has not come to the end.
	Behind Code = "behind"
	// Stuck means that it does not move.
	Stuck Code = "stuck"
	// Stopped means that it goes on only after somebody has dealt with the reason, Paused that somebody has said so.
	Stopped Code = "stopped"
	Paused  Code = "paused"
	// Parked means that something is left out until somebody deals with it.
	Parked Code = "parked"
	// Rebuilding means that it is built anew.
	Rebuilding Code = "rebuilding"
	// Fenced means that another does its work.
	Fenced Code = "fenced"
	// Scarce and Full say how much room there is.
	Scarce Code = "scarce"
	Full   Code = "full"
	// Damaged means that what is kept is not what was put there.
	Damaged Code = "damaged"
	// Missing means that nobody does it, Skewed that clocks differ, Mixed that versions do.
	Missing Code = "missing"
	Skewed  Code = "skewed"
	Mixed   Code = "mixed"
	// Off is said of an agent that is not heard, Undone of one that could not bring something about.
	Off Code = "off"
	// Volatile means that a power loss may take what was acknowledged.
	Volatile Code = "volatile"
	Undone   Code = "undone"
)

// Finding is how something was found.
type Finding struct {
	State State `json:"state"`
	// Code is one of the codes of this package; empty where the name of the check says it all.
	Code Code `json:"code,omitempty"`
	// Reason says why, in words for people. One that is OK may say what it does.
	Reason string `json:"reason,omitempty"`
	// Next is what to do about it; empty for what is OK.
	Next string `json:"next,omitempty"`
	// Since is when it came to this state.
	Since time.Time `json:"since,omitzero"`
	// Measures are the figures behind it.
	Measures []Measure `json:"measures,omitempty"`
}

// Names of checks, as the parts of a chain call them.
const (
	CheckWriter    = "writer"
	CheckProjector = "projector"
	CheckEngine    = "engine"
	CheckRoom      = "room"
	// CheckView starts the names of the checks of views.
	CheckView = "view "
)

// Names of measures.
const (
	// Active is 1 where the writer takes commands.
	Active = "active"
	// BehindEvents counts the events that something has not passed, Lag is the age of the oldest of them, ParkedCount what is parked.
	BehindEvents = "behind"
	Lag          = "lag"
	ParkedCount  = "parked"
	// Used is how much of the fullest place is used.
	Used = "used"
	// Unsigned counts the events without a checkpoint, Unsent the reports that the bus does not have.
	Unsigned = "unsigned"
	Unsent   = "unsent"
	// Rollouts, Pending and InFlight count what an engine walks, the steps under way, and its commands without an answer.
	Rollouts = "rollouts"
	Pending  = "pending"
	InFlight = "in-flight"
)

// Measure is a figure.
type Measure struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"`
	// Unit is events, seconds, bytes or empty for a count. Limit is what the value can't exceed; zero for none.
	Unit  string  `json:"unit,omitempty"`
	Limit float64 `json:"limit,omitempty"`
}

// Check is a finding with the name of what it is about.
type Check struct {
	Name string `json:"name"`
	Finding
	// Vital says that a restart of the process mends it when it fails.
	Vital bool `json:"vital,omitempty"`
}

// Measure gives a figure of the check; false when it has none of that name.
func (c Check) Measure(name string) (Measure, bool) {
	for _, m := range c.Measures {
		if m.Name == name {
			return m, true
		}
	}
	return Measure{}, false
}

// Process says which process it is.
type Process struct {
	// Program is writer, projector, engine, agent or catenary up.
	Program string `json:"program"`
	Version string `json:"version"`
	Host    string `json:"host,omitempty"`
	PID     int    `json:"pid,omitempty"`
	// Started is when it began.
	Started time.Time `json:"started,omitzero"`
}

// Report is all that a process says.
type Report struct {
	Process
	// State is the worst of all checks.
	State State `json:"state"`
	// At is the process's clock.
	At     time.Time `json:"at"`
	Checks []Check   `json:"checks"`
}

// Check gives a check by its name; false when there is none.
func (r Report) Check(name string) (Check, bool) {
	for _, c := range r.Checks {
		if c.Name == name {
			return c, true
		}
	}
	return Check{}, false
}
