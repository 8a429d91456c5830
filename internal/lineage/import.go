package lineage

import (
	"context"
	"iter"
	"time"

	"github.com/cockroachdb/errors"

	"catenary/commands"
	"catenary/es"
	"catenary/es/dispatch"
	"catenary/events"
)

// Sender sends many commands, as [commands.Client] does.
type Sender interface {
	SendMany(ctx context.Context, list iter.Seq[commands.Sending], inFlight int) iter.Seq[commands.Outcome]
}

// ErrStopped is given when a command got no answer. What was recorded stays; running the same import again goes on from there.
var ErrStopped = errors.New("the import was stopped")

// Plan is what an import would do, as far as its files alone tell.
type Plan struct {
	Repositories int `json:"repositories"`
	Commits      int `json:"commits"`
	// Releases are the versions: each is a build and a publication.
	Releases int `json:"releases"`
	Modules  int `json:"modules"`
	// Broken counts the lines that are no rows.
	Broken int `json:"broken"`
	// Commands counts what will be sent.
	Commands int `json:"commands"`
	// From and To are the earliest and latest time.
	From time.Time `json:"from,omitzero"`
	To   time.Time `json:"to,omitzero"`
}

// Summary is what became of an import. Accepted, Repeated, Unchanged and Refused count commands.
type Summary struct {
	Plan
	// Accepted were recorded by this run, Repeated by one before it; Unchanged found all as they say.
	Accepted  int `json:"accepted"`
	Repeated  int `json:"repeated"`
	Unchanged int `json:"unchanged"`
	Refused   int `json:"refused"`
	// Sequence is the newest event that the import led to, now or before.
	Sequence uint64 `json:"sequence,omitempty"`
}

// Whole says whether all that the files tell is in the chain.
func (s Summary) Whole() bool { return s.Refused == 0 && s.Broken == 0 }

// Examine reads all files and sends nothing. Each problem is reported. It gives the file system's errors.
func Examine(repositories []Repository, report func(Problem)) (Plan, error) {
	p := Plan{Repositories: len(repositories)}
	for _, r := range repositories {
		h, err := r.read(func(problem Problem) error {
			p.Broken++
			report(problem)
			return nil
		})
		if err != nil {
			return p, err
		}
		p.Commits += len(h.commits)
		p.Releases += len(h.releases)
		for _, at := range h.modules() {
			p.Modules++
			p.span(at)
		}
		for _, c := range h.commits {
			p.span(c.At)
		}
		for _, r := range h.releases {
			p.span(r.At)
		}
	}
	p.Commands = p.Modules + p.Commits + 2*p.Releases
	return p, nil
}

func (p *Plan) span(at time.Time) {
	if p.From.IsZero() || at.Before(p.From) {
		p.From = at
	}
	if at.After(p.To) {
		p.To = at
	}
}

// Config says how an import runs.
type Config struct {
	Sender Sender
	// InFlight bounds the commands that wait for an answer; zero means the sender's own bound.
	InFlight int
	// Report is told of each refused command.
	Report func(Problem)
	// Progress is told how many of the plan's commands are done. Nil means nobody is.
	Progress func(done, of int)
}

// Run sends what the plan, made of the same repositories, holds. It gives errors marked [ErrStopped] or dispatch.ErrDenied, the file
// system's, and the context's; the summary is right up to there in each case.
func Run(ctx context.Context, repositories []Repository, plan Plan, c Config) (Summary, error) {
	r := run{ctx: ctx, config: c, summary: Summary{Plan: plan}}
	for _, repository := range repositories {
		if err := r.repository(repository); err != nil {
			return r.summary, err
		}
	}
	return r.summary, nil
}

// run is an import on its way.
type run struct {
	ctx     context.Context
	config  Config
	summary Summary
	done    int
}

func (r *run) repository(repository Repository) error {
	h, err := repository.read(func(Problem) error { return nil }) // told by Examine
	if err != nil {
		return err
	}
	// An outcome comes with the index of its command, which leads to its row.
	var rows []place
	var failed error
	list := func(yield func(commands.Sending) bool) {
		failed = h.steps(func(s step) error {
			rows = append(rows, s.place)
			if !yield(s.Sending) {
				return errEnough
			}
			return nil
		})
	}
	for o := range r.config.Sender.SendMany(r.ctx, list, r.config.InFlight) {
		if err := r.take(rows[o.Index], o); err != nil {
			return err
		}
	}
	if failed != nil && !errors.Is(failed, errEnough) {
		return failed
	}
	return errors.Wrap(r.ctx.Err(), "import")
}

// errEnough ends the walk over the steps when no more are taken.
var errEnough = errors.New("no more is taken")

// take counts an outcome.
func (r *run) take(p place, o commands.Outcome) error {
	r.done++
	if r.config.Progress != nil {
		r.config.Progress(r.done, r.summary.Commands)
	}
	a := o.Answer
	var malformed *es.Refusal
	switch {
	case errors.As(o.Err, &malformed):
		r.refuse(p, malformed.Code, malformed.Message, malformed.Hint)
		return nil
	case errors.Is(o.Err, dispatch.ErrTooLarge):
		r.refuse(p, "too-large", o.Err.Error(), "")
		return nil
	case errors.Is(o.Err, dispatch.ErrDenied), r.ctx.Err() != nil && o.Err != nil:
		return o.Err
	case o.Err != nil:
		return errors.Mark(errors.Wrapf(o.Err, "%s: no answer; what was recorded stays: run the same import again to go on", p), ErrStopped)
	}
	r.summary.Sequence = max(r.summary.Sequence, a.Sequence)
	switch {
	case a.Status == es.StatusAccepted && a.Repeated:
		r.summary.Repeated++
	case a.Status == es.StatusAccepted:
		r.summary.Accepted++
	case a.Status == es.StatusUnchanged || known(o):
		r.summary.Unchanged++
	case a.Status == es.StatusDenied:
		return errors.Mark(errors.Newf("the writer denies %s %s", o.Payload.Ref().Aggregate, o.Payload.Verb()), dispatch.ErrDenied)
	case a.Status == es.StatusBusy || a.Status == es.StatusUnknown:
		return errors.Mark(errors.Newf("%s: the writer answered %s to the last; what was recorded stays: run the same import again to go on", p, a.Status), ErrStopped)
	case a.Error != nil:
		r.refuse(p, a.Error.Code, a.Error.Message, a.Error.Hint)
	default:
		r.refuse(p, string(a.Status), "", "")
	}
	return nil
}

// Codes of refusals that mean that a module or commit is known already, from elsewhere.
const (
	codeRegistered      = "registered"
	codeRecorded        = "recorded"
	codeEffectiveBehind = "effective-behind"
)

// known says whether a refusal only means that somebody else has told of the same thing before, maybe more of it.
func known(o commands.Outcome) bool {
	if o.Answer.Error == nil {
		return false
	}
	switch code := o.Answer.Error.Code; o.Payload.Ref().Aggregate {
	case events.AggregateModule:
		return code == codeRegistered || code == codeEffectiveBehind
	case events.AggregateCommit:
		return code == codeRecorded || code == codeEffectiveBehind
	}
	return false
}

func (r *run) refuse(p place, code, message, hint string) {
	r.summary.Refused++
	if hint != "" {
		message += " (" + hint + ")"
	}
	r.config.Report(Problem{File: p.file, Line: p.line, Kind: ProblemRefused, Code: code, Message: message})
}
