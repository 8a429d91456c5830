package deliveries

import (
	"encoding/json"
	"time"

	"github.com/cockroachdb/errors"

	"catenary/commands"
	"catenary/es"
	"catenary/es/dispatch"
	"catenary/events"
	"catenary/internal/ndjson"
)

// Input is all that an import reads.
type Input struct {
	// Name is part of every command's id. Empty means the source's own name.
	Name   string
	Source *ndjson.Source
	// State is what ran before the first row, nil when nothing is said about that.
	State *State
}

func (in Input) name() string {
	if in.Name != "" {
		return in.Name
	}
	return in.Source.Name
}

// origin says where in the input a step comes from.
type origin int

const (
	fromName  origin = iota // the first sight of a node or module
	fromState               // the state file
	fromRow                 // a row
)

// step is one command to send.
type step struct {
	origin origin
	// line is the row's; for a node or module that of its first sight; 0 for the state file.
	line    int
	ref     es.Ref
	payload es.Payload
	options dispatch.Options
	// node and module are what the step's row names. Both are zero for the registrations themselves.
	node, module es.Ref
	// place counts the steps of the key, from 0.
	place int
	// same is set when the input says of the key what it said before, so that nothing may come of it.
	same bool
	// began and ended are set when the key began or ended to stand, as far as the input tells.
	began, ended bool
}

// Problem is something in the input that could not be done. The rest was.
type Problem struct {
	// Line is where it stands; 0 means the state file.
	Line int `json:"line"`
	// Kind is one of the Problem constants.
	Kind string `json:"kind"`
	// Code is the writer's, for refused rows.
	Code    string `json:"code,omitempty"`
	Message string `json:"message"`
}

// Kinds of problems.
const (
	// ProblemBroken is a line that is no row.
	ProblemBroken = "broken"
	// ProblemUnclear is a row whose value can't be read. It changes nothing.
	ProblemUnclear = "unclear"
	// ProblemRefused is a row that the writer refused.
	ProblemRefused = "refused"
)

// walk turns the input into steps, in order, and reports what can't be one. It gives the errors of step and report, and
// those of the input as a whole.
func (in Input) walk(report func(Problem) error, yield func(step) error) error {
	w := walker{
		source: in.name(), rows: newCounter(in.name()), keys: map[es.Ref]*trace{}, known: map[es.Ref]bool{},
		report: report, yield: yield,
	}
	if in.State != nil {
		if err := w.state(*in.State); err != nil {
			return err
		}
	}
	return in.Source.Lines(func(number int, line []byte, broken error) error {
		if broken != nil {
			return report(Problem{Line: number, Kind: ProblemBroken, Message: broken.Error()})
		}
		return w.row(number, line)
	})
}

// walker is what has been seen of an input so far.
type walker struct {
	source string
	rows   *counter
	keys   map[es.Ref]*trace
	// known are the nodes and modules that have been registered.
	known  map[es.Ref]bool
	report func(Problem) error
	yield  func(step) error
}

// trace is what the input has said of one key.
type trace struct {
	place int
	// says is the last reference, or the freeze's state, and stands whether that means something that stands.
	says   string
	stands bool
}

func (w *walker) state(s State) error {
	for _, p := range s.Pairs {
		at := Row{At: s.At, Environment: p.Environment, App: p.App}
		command := commands.Assign{
			Node: p.Environment, Module: p.App, Reference: packageOf(p.App, p.Version), Reason: "stood before the history begins",
		}
		id := stateID(w.source, s.At, p.Environment, p.App, p.Version)
		if err := w.command(at, command, id, fromState, 0); err != nil {
			return err
		}
	}
	return nil
}

func (w *walker) row(number int, line []byte) error {
	row, err := ParseRow(line)
	if err != nil {
		return w.report(Problem{Line: number, Kind: ProblemBroken, Message: err.Error()})
	}
	// The row is counted whatever becomes of it, so that a program that reads more values gives the others the same ids.
	id := w.rows.rowID(row)
	command, err := row.Command()
	if err != nil {
		return w.report(Problem{Line: number, Kind: ProblemUnclear, Message: err.Error()})
	}
	return w.command(row, command, id, fromRow, number)
}

// command gives the steps of one command: what it names for the first time is registered before.
func (w *walker) command(row Row, command es.Payload, id string, from origin, line int) error {
	node := commands.RegisterNode{Node: row.Environment, ManagedBy: events.ManagedByExternal}
	module := commands.RegisterModule{ModuleSpec: events.ModuleSpec{Module: row.App}}
	steps := make([]step, 0, 3)
	if !w.known[node.Ref()] {
		steps = append(steps, step{ref: node.Ref(), payload: node, options: dispatch.Options{ID: nodeID(w.source, row.Environment)}})
	}
	if !w.known[module.Ref()] {
		steps = append(steps, step{ref: module.Ref(), payload: module, options: dispatch.Options{ID: moduleID(w.source, row.App)}})
	}
	steps = append(steps, step{
		origin: from, ref: command.Ref(), payload: command, options: dispatch.Options{ID: id, OnBehalfOf: row.By},
		node: node.Ref(), module: module.Ref(),
	})
	for _, s := range steps {
		if err := s.payload.Validate(); err != nil {
			return w.report(Problem{Line: line, Kind: ProblemBroken, Message: err.Error()})
		}
	}
	for _, s := range steps {
		s.line, s.options.Effective = line, row.At
		if s.origin == fromName {
			w.known[s.ref] = true
		} else {
			w.trace(&s)
		}
		if err := w.yield(s); err != nil {
			return err
		}
	}
	return nil
}

// trace completes a step by what the input has said of its key before.
func (w *walker) trace(s *step) {
	t := w.keys[s.ref]
	if t == nil {
		t = &trace{}
		w.keys[s.ref] = t
	}
	s.place = t.place
	t.place++
	says, stands := says(s.payload)
	s.same = s.place > 0 && says == t.says
	if s.ref.Aggregate == events.AggregateAssignment {
		s.began = stands && !t.stands
		// What the input has not named before may stand all the same: ending it counts.
		s.ended = !stands && (t.stands || s.place == 0)
	}
	t.says, t.stands = says, stands
}

// says is what remains true after a command, in short.
func says(command es.Payload) (what string, stands bool) {
	switch c := command.(type) {
	case commands.Assign:
		return c.Reference.String(), true
	case commands.DeclareFreeze:
		return "declared", true
	}
	return "", false
}

// at is when the step's fact became true.
func (s step) at() time.Time { return s.options.Effective }

// request is the step as it goes over the bus.
func (s step) request() (dispatch.Request, error) {
	body, err := json.Marshal(s.payload)
	return dispatch.Request{
		Aggregate: s.ref.Aggregate, Verb: s.payload.Verb(), Body: body, ContentType: dispatch.ContentTypeJSON, Options: s.options,
	}, errors.Wrapf(err, "encode %s %s", s.ref.Aggregate, s.payload.Verb())
}
