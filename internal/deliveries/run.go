package deliveries

import (
	"cmp"
	"context"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/cockroachdb/errors"

	"catenary/es"
	"catenary/es/dispatch"
	"catenary/events"
)

// Poster sends commands.
type Poster interface {
	// Post hands a command over and returns at once. Commands MUST reach the writer in the order of the calls; done MUST be
	// called once, from any goroutine, with the answer or with one of the errors of [dispatch.Bus].
	Post(r dispatch.Request, done func(es.Answer, error))
}

// ErrStopped is given when the writer gave no answer for too long. What was recorded stays; running the same import again
// goes on from there.
var ErrStopped = errors.New("the import was stopped")

// ErrRefused is given in strict mode for the first row that the writer refused.
var ErrRefused = errors.New("the writer refused a row")

// Defaults of [Config].
const (
	// DefaultInFlight fills the largest append: a writer that makes one durable append of all that waits has a whole one waiting
	// when the one before it has landed.
	DefaultInFlight = es.MaxAppendMessages
	// MaxInFlight is as many as a writer lets wait: what is sent beyond that is only sent again.
	MaxInFlight = 8192
	// DefaultPatience is long enough for a server to be restarted.
	DefaultPatience = 2 * time.Minute
	// lookahead is how many steps are read ahead for each that may be in flight, to find some of keys that are not waiting.
	lookahead = 4
	// Pauses after an answer that says "later", or none.
	shortestPause = 10 * time.Millisecond
	longestPause  = 2 * time.Second
)

// Config says how an import runs.
type Config struct {
	Poster Poster
	// InFlight bounds the commands that wait for an answer. Zero means DefaultInFlight.
	InFlight int
	// PerKey bounds those of one key. Zero means InFlight.
	PerKey int
	// Patience is how long to go on without a single answer. Zero means DefaultPatience.
	Patience time.Duration
	// Strict stops at the first refused row.
	Strict bool
	// Report is told of each refused row. Nil means nobody is.
	Report func(Problem)
	// Progress is told how many of the plan's steps are done. Nil means nobody is.
	Progress func(done, of int)
}

// Summary is what became of an import.
type Summary struct {
	Source string `json:"source"`
	Rows   int    `json:"rows"`
	Pairs  int    `json:"state,omitempty"`
	// Accepted were recorded by this run, Repeated by one before it; Unchanged found all as they say, or nothing to end.
	Accepted  int `json:"accepted"`
	Repeated  int `json:"repeated"`
	Unchanged int `json:"unchanged"`
	Refused   int `json:"refused"`
	Broken    int `json:"broken"`
	Unclear   int `json:"unclear"`
	// Registered are the nodes and modules that this run made known.
	Registered int       `json:"registered"`
	Nodes      int       `json:"nodes"`
	Modules    int       `json:"modules"`
	From       time.Time `json:"from,omitzero"`
	To         time.Time `json:"to,omitzero"`
	// Sequence is the newest event that the import led to, now or before.
	Sequence uint64 `json:"sequence,omitempty"`
}

// Whole says whether all that was asked for is in the chain.
func (s Summary) Whole() bool { return s.Refused == 0 && s.Broken == 0 }

// Fresh says whether this run changed anything.
func (s Summary) Fresh() bool { return s.Accepted > 0 || s.Registered > 0 }

// Run sends what the plan, made of the same input, holds. It gives errors marked [ErrStopped], [ErrRefused] (in strict mode),
// dispatch.ErrDenied, or the context's; the summary is right up to there in each case.
func Run(ctx context.Context, in Input, plan Plan, cfg Config) (Summary, error) {
	r := newRunner(ctx, plan, cfg)
	quiet := func(Problem) error { return nil } // told by Examine
	err := in.walk(quiet, r.submit)
	if err == nil || errors.IsAny(err, errEnough, ErrRefused) {
		err = r.finish()
	}
	return r.summary, err
}

// errEnough ends the walk where the plan ended: the file has grown since.
var errEnough = errors.New("end of the plan")

// landing is the answer to one flight.
type landing struct {
	lane   *lane
	item   *item
	asking bool
	answer es.Answer
	err    error
}

// runner sends steps and takes answers in, on one goroutine.
type runner struct {
	ctx     context.Context
	plan    Plan
	cfg     Config
	summary Summary
	lanes   map[es.Ref]*lane
	// waiting are the lanes that a registration holds back; a registration that is not in it was answered.
	waiting map[es.Ref][]*lane
	// ready are the lanes that have something to send, in the order they came to.
	ready    []*lane
	landings chan landing
	flying   int
	// unsettled counts the steps taken in and not told.
	unsettled int
	done      int
	// pace and resume hold everything back after a "later".
	pace   *backoff.ExponentialBackOff
	resume time.Time
	// last is the last time something was settled, obstacle what has been in the way since.
	last     time.Time
	obstacle string
	stopped  error
}

func newRunner(ctx context.Context, plan Plan, cfg Config) *runner {
	if cfg.InFlight <= 0 {
		cfg.InFlight = DefaultInFlight
	}
	if cfg.PerKey <= 0 || cfg.PerKey > cfg.InFlight {
		cfg.PerKey = cfg.InFlight
	}
	if cfg.Patience <= 0 {
		cfg.Patience = DefaultPatience
	}
	pace := backoff.NewExponentialBackOff()
	pace.InitialInterval, pace.MaxInterval = shortestPause, longestPause
	return &runner{
		ctx: ctx, plan: plan, cfg: cfg, lanes: map[es.Ref]*lane{}, waiting: map[es.Ref][]*lane{},
		landings: make(chan landing, cfg.InFlight), pace: pace, last: time.Now(),
		summary: Summary{
			Source: plan.Source, Rows: plan.Rows, Pairs: plan.Pairs, Broken: plan.Broken, Unclear: plan.Unclear,
			Nodes: plan.Nodes, Modules: plan.Modules, From: plan.From, To: plan.To,
		},
	}
}

// submit takes a step in, and answers until there is room for more.
func (r *runner) submit(s step) error {
	if s.line > r.plan.lines {
		return errEnough
	}
	l := r.lane(s)
	if s.origin == fromName {
		s.options.Effective = r.plan.named[s.ref]
	}
	request, err := s.request()
	if err != nil {
		return err
	}
	it := &item{step: s, request: request, last: s.place}
	if n, ok := r.plan.crowds[crowd{s.ref, s.place}]; ok && s.origin != fromName {
		l.crowded = s.place + n - 1
		// The first row of a lane is sent to be done at once, unless that needs care.
		l.asking = l.asking || s.place == 0
	}
	it.last = max(it.last, l.crowded)
	l.add(it)
	l.settled(r.tell)
	r.unsettled++
	r.wake(l)
	r.send()
	// Without anything in flight only more input can help.
	for r.unsettled >= lookahead*r.cfg.InFlight && (r.flying > 0 || r.paused()) {
		if err := r.step(); err != nil {
			return err
		}
	}
	return r.stopped
}

// finish waits until everything is settled.
func (r *runner) finish() error {
	for r.flying > 0 || len(r.ready) > 0 {
		if err := r.step(); err != nil {
			return err
		}
	}
	for _, l := range r.lanes {
		l.judgeLate(refused, r.tell)
	}
	if r.stopped == nil && r.unsettled > 0 {
		return errors.Newf("%s has changed while it was imported: run the import again", r.plan.Source)
	}
	return r.stopped
}

func (r *runner) lane(s step) *lane {
	if l, ok := r.lanes[s.ref]; ok {
		return l
	}
	l := &lane{depth: r.cfg.PerKey}
	r.lanes[s.ref] = l
	if s.origin == fromName {
		r.waiting[s.ref] = nil
	}
	if s.ref.Aggregate != events.AggregateAssignment {
		return l // only an assignment must not overtake the registrations
	}
	for _, name := range []es.Ref{s.node, s.module} {
		if held, ok := r.waiting[name]; ok {
			r.waiting[name] = append(held, l)
			l.gates++
		}
	}
	return l
}

// wake gives a lane its turn when it has something to send.
func (r *runner) wake(l *lane) {
	if !l.ready && l.sendable() != nil {
		l.ready = true
		r.ready = append(r.ready, l)
	}
}

func (r *runner) paused() bool { return !r.resume.IsZero() && time.Now().Before(r.resume) }

// send sends what may be sent.
func (r *runner) send() {
	for r.flying < r.cfg.InFlight && len(r.ready) > 0 && r.stopped == nil && !r.paused() {
		l := r.ready[0]
		r.ready = r.ready[1:]
		l.ready = false
		it := l.sendable()
		if it == nil {
			continue
		}
		asking := l.asking
		request := it.request
		request.Expected = l.launch(it)
		r.flying++
		r.cfg.Poster.Post(request, func(a es.Answer, err error) {
			r.landings <- landing{lane: l, item: it, asking: asking, answer: a, err: err}
		})
		r.wake(l)
	}
}

// step waits for one thing to happen and goes on from there.
func (r *runner) step() error {
	// Something that can be sent and was not is held back by a pause; an answer may be late by the sender's patience.
	wait := time.Until(r.last.Add(r.cfg.Patience))
	if r.flying < r.cfg.InFlight && len(r.ready) > 0 {
		wait = min(wait, time.Until(r.resume)) // which may be over since it was looked at last
	}
	timer := time.NewTimer(max(wait, 0))
	defer timer.Stop()
	select {
	case <-r.ctx.Done():
		return errors.Wrap(r.ctx.Err(), "import")
	case landed := <-r.landings:
		if err := r.land(landed); err != nil {
			return err
		}
	case <-timer.C:
		if time.Since(r.last) >= r.cfg.Patience {
			return errors.Mark(errors.Newf("nothing could be recorded for %s (%s); what was recorded before stays: run the same import again to go on",
				r.cfg.Patience, cmp.Or(r.obstacle, "no answer came")), ErrStopped)
		}
	}
	r.send()
	if r.stopped != nil {
		r.ready = nil
	}
	return nil
}

func (r *runner) land(d landing) error {
	r.flying--
	o, why, err := judge(d.item.step, d.asking, d.answer, d.err)
	if err != nil {
		return err
	}
	if later := o == again && d.answer.Status != es.StatusConflict; later {
		r.obstacle = why.Message
		if !r.paused() {
			r.resume = time.Now().Add(r.pace.NextBackOff())
		}
	} else {
		r.last = time.Now()
		r.pace.Reset()
	}
	if o == accepted || o == repeated {
		r.summary.Sequence = max(r.summary.Sequence, d.answer.Sequence)
	}
	d.lane.land(d.item, o, why, d.answer.Version)
	d.lane.settled(r.tell)
	r.wake(d.lane)
	return nil
}

// tell counts a step whose outcome is final.
func (r *runner) tell(it *item) {
	r.unsettled--
	r.done++
	if it.origin == fromName {
		if it.outcome == accepted {
			r.summary.Registered++
		}
		r.open(it.ref)
	} else {
		switch it.outcome {
		case accepted:
			r.summary.Accepted++
		case repeated:
			r.summary.Repeated++
		case unchanged:
			r.summary.Unchanged++
		case refused:
			r.summary.Refused++
		}
	}
	if it.outcome == refused {
		r.refuse(it)
	}
	if r.cfg.Progress != nil {
		r.cfg.Progress(r.done, r.plan.steps)
	}
}

// open lets go what waited for a registration, whatever became of it: the writer says the rest.
func (r *runner) open(name es.Ref) {
	held := r.waiting[name]
	delete(r.waiting, name)
	for _, l := range held {
		l.gates--
		r.wake(l)
	}
}

func (r *runner) refuse(it *item) {
	message := it.why.Message
	if it.why.Hint != "" {
		message += " (" + it.why.Hint + ")"
	}
	if r.cfg.Report != nil {
		r.cfg.Report(Problem{Line: it.line, Kind: ProblemRefused, Code: it.why.Code, Message: message})
	}
	if r.cfg.Strict && r.stopped == nil {
		r.stopped = errors.Mark(errors.Newf("line %d was refused (%s): %s", it.line, it.why.Code, message), ErrRefused)
	}
}
