package deliveries

import (
	"time"

	"github.com/cockroachdb/errors"

	"catenary/es"
	"catenary/events"
)

// ErrBroken is given in strict mode for the first line that is no row or says nothing clear.
var ErrBroken = errors.New("the delivery history has a broken row")

// ErrConfirm is given for an import that ends more than it begins and does not carry the exact count of what it ends.
var ErrConfirm = errors.New("the import ends more than it begins")

// Plan is what an import would do, as far as its input alone tells.
type Plan struct {
	Source string `json:"source"`
	// Rows are the lines that are not empty, Pairs the entries of the state file.
	Rows  int `json:"rows"`
	Pairs int `json:"state,omitempty"`
	// Broken and Unclear are rows that will not be sent.
	Broken  int `json:"broken"`
	Unclear int `json:"unclear"`
	// Commands counts what will be sent, by aggregate and verb.
	Commands map[string]int `json:"commands"`
	Nodes    int            `json:"nodes"`
	Modules  int            `json:"modules"`
	// Begins and Ends count assignments that begin and end to stand.
	Begins int `json:"begins"`
	Ends   int `json:"ends"`
	// From and To are the earliest and latest effective time.
	From time.Time `json:"from,omitzero"`
	To   time.Time `json:"to,omitzero"`

	// lines is how far the input was read.
	lines int
	steps int
	// crowds are the runs of steps of one key with equal times.
	crowds crowds
	// named is the earliest time at which each node and module is named. It is registered as of then: by the row that names it
	// first, which may be wrong about its time, all the others would hang.
	named map[es.Ref]time.Time
}

// crowd is where in a key's steps a run of equal times begins.
type crowd struct {
	ref   es.Ref
	place int
}

// crowds gives the length of each run. At equal times the writer can't tell a step that comes again from one that comes
// late, so these are sent with care.
type crowds map[crowd]int

// Examine reads the whole input and sends nothing. Each problem found is reported; strict makes the first one an error
// marked [ErrBroken].
func Examine(in Input, strict bool, report func(Problem)) (Plan, error) {
	p := Plan{Source: in.name(), Commands: map[string]int{}, crowds: crowds{}, named: map[es.Ref]time.Time{}}
	type last struct {
		at    time.Time
		place int // where the run of equal times begins
	}
	lasts := map[es.Ref]last{}
	seen := func(line int, from origin) {
		switch {
		case from == fromState:
			p.Pairs++
		case from == fromRow:
			p.Rows++
			p.lines = line
		}
	}
	err := in.walk(func(problem Problem) error {
		from := fromRow
		if problem.Line == 0 {
			from = fromState
		}
		seen(problem.Line, from)
		if problem.Kind == ProblemUnclear {
			p.Unclear++
		} else {
			p.Broken++
		}
		report(problem)
		if strict {
			return errors.Mark(errors.Newf("line %d is %s: %s", problem.Line, problem.Kind, problem.Message), ErrBroken)
		}
		return nil
	}, func(s step) error {
		seen(s.line, s.origin)
		p.add(s)
		if s.origin == fromName {
			return nil
		}
		l, again := lasts[s.ref]
		if again && l.at.Equal(s.at()) {
			p.crowds[crowd{s.ref, l.place}] = s.place - l.place + 1
			return nil
		}
		lasts[s.ref] = last{at: s.at(), place: s.place}
		return nil
	})
	return p, err
}

func (p *Plan) add(s step) {
	p.steps++
	p.Commands[s.ref.Aggregate+" "+s.payload.Verb()]++
	switch s.ref.Aggregate {
	case events.AggregateNode:
		p.Nodes++
	case events.AggregateModule:
		p.Modules++
	}
	for _, name := range []es.Ref{s.node, s.module} {
		if earliest, ok := p.named[name]; s.origin != fromName && (!ok || s.at().Before(earliest)) {
			p.named[name] = s.at()
		}
	}
	if s.began {
		p.Begins++
	}
	if s.ended {
		p.Ends++
	}
	if p.From.IsZero() || s.at().Before(p.From) {
		p.From = s.at()
	}
	if s.at().After(p.To) {
		p.To = s.at()
	}
}

// Confirm checks the count of what is ended against what the sender has confirmed; nil means that nothing was. It gives
// errors marked [ErrConfirm].
func (p Plan) Confirm(confirmed *int) error {
	switch {
	case confirmed == nil && p.Ends <= p.Begins:
		return nil
	case confirmed == nil:
		return errors.Mark(errors.Newf("the import would end %d assignments and begin %d: confirm that it ends exactly %d", p.Ends, p.Begins, p.Ends), ErrConfirm)
	case *confirmed != p.Ends:
		return errors.Mark(errors.Newf("the import would end %d assignments, not %d as confirmed, and begin %d", p.Ends, *confirmed, p.Begins), ErrConfirm)
	}
	return nil
}
