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

// Finding is how something was found.
type Finding struct {
	State State `json:"state"`
	// Reason says why, in words for people. One that is OK may say what it does.
	Reason string `json:"reason,omitempty"`
	// Next is what to do about it; empty for what is OK.
	Next string `json:"next,omitempty"`
	// Since is when it came to this state.
	Since time.Time `json:"since,omitzero"`
	// Measures are the figures behind it.
	Measures []Measure `json:"measures,omitempty"`
}

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
