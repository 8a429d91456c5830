package depot

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"catenary/chain"
	"catenary/events"
)

// Told is that a node was told to run something, and from when on it was told something else; until zero, it is.
type Told struct {
	Node, Module string
	events.Reference
	Until time.Time
}

// Carried is a rollout with its steps.
type Carried struct {
	chain.Rollout
	Steps []chain.Step
}

// Facts are what the chain says that bears on which artifacts are kept.
type Facts struct {
	// Told is what stands, what waits to stand, and what has ended since the window began.
	Told []Told
	// Rollouts are those that are not over, and those that ended since the window began.
	Rollouts []Carried
	// Named gives the artifact of each package that was published as a name of one.
	Named map[events.Package]string
}

// Verdict says whether an artifact is kept, and why.
type Verdict struct {
	Stored
	Keep bool `json:"keep"`
	// Why is what keeps it, or how it came to be free.
	Why string `json:"why"`
	// More counts what keeps it besides.
	More int `json:"more,omitempty"`
	// Until is how long it is kept at least; zero for as long as it is so.
	Until time.Time `json:"until,omitzero"`
}

// reason is one thing that keeps an artifact; until zero, for as long as it is so.
type reason struct {
	why   string
	until time.Time
}

// Sweep judges artifacts at a moment. One is kept as long as a node is told to run it, a rollout that is not over names it, and for the
// window after a node was last told to run it, after the end of a rollout that could be taken back to it, and after it was last
// published. The first of these that holds is said; of those that end, the one that ends last.
func Sweep(stored []Stored, f Facts, now time.Time, window time.Duration) []Verdict {
	reasons := map[string][]reason{}
	keep := func(ref events.Reference, why string, until time.Time) {
		digest := ref.Artifact
		if ref.Package != nil {
			digest = f.Named[*ref.Package]
		}
		if digest == "" || !until.IsZero() && !until.After(now) {
			return
		}
		reasons[digest] = append(reasons[digest], reason{why, until})
	}
	for _, t := range f.Told {
		if t.Until.IsZero() {
			keep(t.Reference, fmt.Sprintf("node %s is told to run it as %s", t.Node, t.Module), time.Time{})
			continue
		}
		keep(t.Reference, fmt.Sprintf("node %s was told to run it as %s", t.Node, t.Module), t.Until.Add(window))
	}
	for _, r := range f.Rollouts {
		carried(r, window, keep)
	}
	for _, s := range stored {
		keep(events.Reference{Artifact: s.Digest}, "it was published", s.Used.Add(window))
	}
	verdicts := make([]Verdict, len(stored))
	for i, s := range stored {
		verdicts[i] = judge(s, reasons[s.Digest])
	}
	return verdicts
}

// carried says what a rollout keeps: while it is not over all that it names, and then what it could be taken back to.
func carried(r Carried, window time.Duration, keep func(ref events.Reference, why string, until time.Time)) {
	if r.Stands() {
		why := fmt.Sprintf("rollout %s is %s", r.ID, r.State)
		for _, b := range r.Builds {
			keep(b.Reference, why, time.Time{})
		}
		for _, s := range r.Steps {
			for _, v := range []*events.Version{s.After, s.Before} {
				if v != nil {
					keep(v.Reference, why, time.Time{})
				}
			}
		}
		return
	}
	if r.RevertedBy != "" {
		return // it was taken back, and is not taken back again
	}
	for _, s := range r.Steps {
		if s.Before != nil {
			keep(s.Before.Reference, fmt.Sprintf("rollout %s can be taken back to it", r.ID), r.Times.Ended.Add(window))
		}
	}
}

func judge(s Stored, reasons []reason) Verdict {
	if len(reasons) == 0 {
		return Verdict{Stored: s, Why: "nothing names it, and the window is over"}
	}
	first := slices.MinFunc(reasons, func(a, b reason) int {
		switch {
		case a.until.IsZero() != b.until.IsZero():
			return map[bool]int{true: -1, false: 1}[a.until.IsZero()]
		default:
			return cmp.Or(b.until.Compare(a.until), cmp.Compare(a.why, b.why))
		}
	})
	return Verdict{Stored: s, Keep: true, Why: first.why, Until: first.until, More: len(reasons) - 1}
}
