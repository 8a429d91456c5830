package diagnosis

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cockroachdb/errors"

	"catenary/internal/health"
)

// Threshold says from which value on a figure warns, and from which it fails. Zero means never.
type Threshold struct {
	Warn float64 `json:"warn,omitempty"`
	Fail float64 `json:"fail,omitempty"`
}

// ErrThreshold means that a threshold can't be read; the message says how to write one.
var ErrThreshold = errors.New("not a threshold")

// ParseThreshold reads WARN,FAIL: two numbers, or two spans of time such as 10s,1m, which stand for seconds. One that is left out never counts.
func ParseThreshold(text string) (Threshold, error) {
	warn, fail, _ := strings.Cut(text, ",")
	var t Threshold
	for _, part := range []struct {
		text string
		into *float64
	}{{warn, &t.Warn}, {fail, &t.Fail}} {
		if part.text = strings.TrimSpace(part.text); part.text == "" {
			continue
		}
		n, err := strconv.ParseFloat(part.text, 64)
		if err != nil {
			var span time.Duration
			span, err = time.ParseDuration(part.text)
			n = span.Seconds()
		}
		if err != nil || !(n >= 0) {
			return Threshold{}, errors.Mark(errors.Newf("%q is no threshold: write WARN,CRIT, as in 10,60 or 10s,1m, and 0 for never", text), ErrThreshold)
		}
		*part.into = n
	}
	if t.Warn > 0 && t.Fail > 0 && t.Fail < t.Warn {
		return Threshold{}, errors.Mark(errors.Newf("%q would fail before it warns: write the lower one first", text), ErrThreshold)
	}
	return t, nil
}

// String writes the threshold as it is read.
func (t Threshold) String() string {
	return strconv.FormatFloat(t.Warn, 'f', -1, 64) + "," + strconv.FormatFloat(t.Fail, 'f', -1, 64)
}

func (t Threshold) judge(value float64) health.State {
	switch {
	case t.Fail > 0 && value >= t.Fail:
		return health.Fail
	case t.Warn > 0 && value >= t.Warn:
		return health.Warn
	}
	return health.OK
}

// Thresholds are what the figures of a diagnosis are held against.
type Thresholds struct {
	// Behind is in events, Lag in seconds, Used in percent, the others count.
	Behind, Lag, Used, Parked, Off, Pending Threshold
}

// DefaultThresholds are those of the checks themselves, and warn of a single silent agent.
func DefaultThresholds() Thresholds {
	return Thresholds{Lag: Threshold{Warn: 10, Fail: 60}, Used: Threshold{Warn: 80, Fail: 95}, Parked: Threshold{Warn: 1}, Off: Threshold{Warn: 1}}
}

// Figure is a measure that was held against its threshold.
type Figure struct {
	Name  string       `json:"name"`
	Value float64      `json:"value"`
	Unit  string       `json:"unit,omitempty"`
	State health.State `json:"state"`
	Threshold
}

// judged are the codes of what thresholds judge instead.
func judged() []health.Code {
	return []health.Code{health.Behind, health.Scarce, health.Parked, health.Off}
}

// Held is a diagnosis that was held against thresholds.
type Held struct {
	State    health.State `json:"state"`
	Problems []Problem    `json:"problems"`
	Figures  []Figure     `json:"figures"`
}

// Hold holds a diagnosis against thresholds. What they judge, they alone judge; all else stays as it was found.
func (d Diagnosis) Hold(t Thresholds) Held {
	h := Held{State: health.OK, Problems: []Problem{}, Figures: []Figure{}}
	for _, p := range d.Problems {
		if !slices.Contains(judged(), p.Code) {
			h.Problems = append(h.Problems, p)
			h.State = h.State.Worse(p.State)
		}
	}
	figure := func(name, unit string, value float64, t Threshold, what string) {
		f := Figure{Name: name, Value: value, Unit: unit, Threshold: t, State: t.judge(value)}
		h.Figures = append(h.Figures, f)
		if f.State != health.OK {
			h.Problems = append(h.Problems, Problem{About: name, State: f.State, What: what, Next: "catenary doctor says what to do"})
			h.State = h.State.Worse(f.State)
		}
	}
	m := d.Measures
	if m.Behind != nil {
		figure("behind", "", float64(*m.Behind), t.Behind, fmt.Sprintf("a view is behind by %d events", *m.Behind))
	}
	if m.LagSeconds != nil {
		figure("lag", "s", *m.LagSeconds, t.Lag, fmt.Sprintf("a view does not show an event of %.0f s ago", *m.LagSeconds))
	}
	if m.Parked != nil {
		figure("parked", "", float64(*m.Parked), t.Parked, fmt.Sprintf("%d instances are parked", *m.Parked))
	}
	if m.UsedShare != nil {
		figure("used", "%", math.Round(1e4**m.UsedShare)/100, t.Used, fmt.Sprintf("%.0f %% of the fullest place is used", 100**m.UsedShare))
	}
	if m.Off != nil {
		figure("off", "", float64(*m.Off), t.Off, fmt.Sprintf("%d of %d agents are silent", *m.Off, m.Agents))
	}
	if m.Pending != nil {
		figure("pending", "", float64(*m.Pending), t.Pending, fmt.Sprintf("%d steps are under way", *m.Pending))
	}
	slices.SortStableFunc(h.Problems, func(a, b Problem) int { return rank(a.State) - rank(b.State) })
	return h
}
