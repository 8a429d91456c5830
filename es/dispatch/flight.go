package dispatch

import (
	"context"
	"strings"
	"time"

	"github.com/cockroachdb/errors"

	"catenary/es"
	"catenary/internal/failpoint"
)

// open is what is decided, with events, and not handed to the store yet, in order.
type open struct {
	jobs     []*job
	messages int       // of all jobs
	several  int       // jobs with several events
	since    time.Time // when the first was added
}

func (o *open) full() bool { return o.messages >= es.MaxAppendMessages }

func (o *open) add(j *job) {
	if len(o.jobs) == 0 {
		o.since = time.Now()
	}
	o.jobs = append(o.jobs, j)
	o.count(j, 1)
}

// first takes the first n jobs out.
func (o *open) first(n int) []*job {
	jobs := o.jobs[:n:n]
	o.jobs = o.jobs[n:]
	for _, j := range jobs {
		o.count(j, -1)
	}
	return jobs
}

func (o *open) count(j *job, by int) {
	o.messages += by * len(j.messages)
	if len(j.messages) > 1 {
		o.several += by
	}
}

// flight is one append on its way.
type flight struct {
	jobs     []*job
	messages []es.Message
	before   es.Head
	begun    time.Time // when the first command was decided
	pending  es.Pending
}

func (f *flight) landed() bool {
	select {
	case <-f.pending.Done():
		return true
	default:
		return false
	}
}

// air is what was handed to the store and is not answered yet, in order, and what appends have lately cost.
//
// Every append stands directly on the one before it, or nowhere (see [es.Store]). So one that is stored proves all before it,
// and after one that never will be, none can.
type air struct {
	flights  []*flight
	messages int // of all flights
	costs    costs
	last     time.Time // when something landed last

	// resent is set when a flight that had failed was sent again and stands now: those that were on their way behind it were
	// refused for want of it.
	resent bool

	// expected is how many messages the last batch had: their senders are likely to send again.
	expected int
	// linger bounds the waiting for what could share the next append, while nothing is in the air. It goes on as long as
	// something comes; seen is how many messages there were at its last look.
	linger    *time.Timer
	lingering bool
	seen      int
	waited    bool // nothing has come for a while
}

func (a *air) oldest() *flight {
	if len(a.flights) == 0 {
		return nil
	}
	return a.flights[0]
}

// landed tells when the outcome of the oldest flight is known; never, when there is none.
func (a *air) landed() <-chan struct{} {
	if len(a.flights) == 0 {
		return nil
	}
	return a.flights[0].pending.Done()
}

func (a *air) add(f *flight) {
	if len(a.flights) == 0 {
		a.resent = false
	}
	a.flights = append(a.flights, f)
	a.messages += len(f.messages)
	a.waitNoMore()
}

// first takes the oldest n flights out.
func (a *air) first(n int) []*flight {
	flights := a.flights[:n:n]
	a.flights = a.flights[n:]
	for _, f := range flights {
		a.messages -= len(f.messages)
	}
	return flights
}

// clear takes all flights out, and gives their jobs.
func (a *air) clear() []*job {
	jobs := a.jobs()
	a.flights, a.messages, a.resent = nil, 0, false
	return jobs
}

func (a *air) jobs() []*job {
	var jobs []*job
	for _, f := range a.flights {
		jobs = append(jobs, f.jobs...)
	}
	return jobs
}

// proven says that a flight stands, whatever its own outcome: a later one was stored.
func (a *air) proven() bool {
	for _, f := range a.flights[1:] {
		if f.landed() && f.pending.Err() == nil {
			return true
		}
	}
	return false
}

// patienceForCompany is how long nothing may come, as a part of what the batch costs that could be shared.
const patienceForCompany = 1. / 8

func (a *air) patience(messages int) time.Duration {
	return time.Duration(patienceForCompany * a.costs.now.batched(messages) * float64(time.Second))
}

// company is how many messages are expected to come in a moment.
func (a *air) company() int {
	if a.expected > 0 && time.Since(a.last) > a.patience(a.expected) {
		a.expected = 0
	}
	return a.expected
}

// await begins to wait for what could share the next append.
func (a *air) await(messages int) {
	if a.lingering || a.waited {
		return
	}
	limit := a.patience(max(messages, a.expected))
	if a.linger == nil {
		a.linger = time.NewTimer(limit)
	} else {
		a.linger.Reset(limit)
	}
	a.lingering, a.seen = true, messages
}

// lingered tells when it is time to look whether anything has come; never, while nothing is waited for.
func (a *air) lingered() <-chan time.Time {
	if !a.lingering {
		return nil
	}
	return a.linger.C
}

// look ends the waiting when nothing has come since the last look.
func (a *air) look(messages int) {
	a.lingering = false
	a.waited = messages == a.seen
}

func (a *air) waitNoMore() {
	if a.lingering {
		a.linger.Stop()
	}
	a.expected, a.lingering, a.waited = 0, false, false
}

// measure takes in what the oldest n flights cost, which have landed together: the time since their first command was decided,
// or since the flight before them landed.
func (a *air) measure(n int, pipelines bool) {
	if n == 0 {
		return
	}
	now := time.Now()
	first, messages := a.flights[0], 0
	for _, f := range a.flights[:n] {
		messages += len(f.messages)
	}
	since := first.begun
	backlog := since.Before(a.last)
	if backlog {
		since = a.last
	}
	a.last = now
	took := now.Sub(since)
	switch {
	case n == 1 && messages > 1:
		a.costs.sawBatch(messages, took)
		a.expected = messages
	case messages > n:
		// Some of each: it can't be told what cost what.
	case backlog, !pipelines, took.Seconds() < a.costs.now.singles(n):
		// The time of lone messages is mostly that of their way: in a pipeline they cost less.
		a.costs.sawSingles(n, took)
	}
}

// flush hands decided commands to the store as the plan says.
func (w *Writer) flush(ctx context.Context) {
	for {
		n := 0
		switch choose(w.air.costs.now, w.load()) {
		case hold:
			if len(w.open.jobs) > 0 && w.air.oldest() == nil {
				w.air.await(w.open.messages)
			}
			return
		case single:
			n = 1
		case batch:
			n = fits(w.open.jobs)
		}
		f := &flight{begun: w.open.since, jobs: w.open.first(n)}
		f.before, f.messages = f.jobs[0].before, messagesOf(f.jobs)
		failpoint.Pass(failpoint.WriterBeforeAppend)
		// The append outlives the context: what is on its way is waited for when the writer stops.
		f.pending = w.append(ctx, f.before, f.messages)
		w.air.add(f)
		if failpoint.Planted(failpoint.AnswerBeforeAppend) {
			for _, j := range f.jobs {
				j.reply(j.result)
			}
		}
	}
}

// append hands messages to the store, and does not wait long for that: senders who lose patience meanwhile have to be told.
func (w *Writer) append(ctx context.Context, after es.Head, messages []es.Message) es.Pending {
	ctx, cancel := context.WithTimeout(ctx, w.cfg.Patience/4)
	defer cancel()
	return w.cfg.Store.Append(ctx, after, messages)
}

func messagesOf(jobs []*job) []es.Message {
	if len(jobs) == 1 {
		return jobs[0].messages
	}
	n := 0
	for _, j := range jobs {
		n += len(j.messages)
	}
	messages := make([]es.Message, 0, n)
	for _, j := range jobs {
		messages = append(messages, j.messages...)
	}
	return messages
}

func (w *Writer) load() load {
	l := load{
		commands: len(w.open.jobs), messages: w.open.messages, several: w.open.several > 0,
		inFlight: w.air.messages, pipelines: w.cfg.Durability.pipelines(),
	}
	switch {
	case l.commands > 0 && w.open.jobs[0].apart:
		// It goes alone: whatever happens to it happens to nobody else.
		l.commands, l.messages = 1, len(w.open.jobs[0].messages)
		l.several = l.messages > 1
	case !w.air.waited:
		l.queued, l.expected = w.waitingRoom.waiting()+len(w.again), w.air.company()
	}
	return l
}

// land takes the outcomes of the oldest flights, as far as they are known.
func (w *Writer) land(ctx context.Context) error {
	n := 0
	for _, f := range w.air.flights {
		if !f.landed() {
			break
		}
		if err := f.pending.Err(); err != nil {
			w.confirm(n)
			return w.failed(ctx, f, err)
		}
		n++
	}
	w.air.measure(n, w.cfg.Durability.pipelines())
	w.confirm(n)
	return nil
}

// failed deals with the oldest flight when it was not stored, or when that is not known.
func (w *Writer) failed(ctx context.Context, f *flight, err error) error {
	switch {
	case errors.IsAny(err, es.ErrFull, es.ErrTooLarge):
		w.cfg.Logger.Error("the store refuses to append", "error", err)
		if errors.Is(err, es.ErrFull) {
			w.tellStore(err)
		}
		w.refused(f, err)
		return nil
	case w.air.proven():
		w.confirm(1)
		return nil
	case w.air.resent && errors.Is(err, es.ErrConflict):
		w.undo() // nobody else has appended: the flight before this one was not there in time
		return nil
	}
	w.cfg.Logger.Warn("append unclear, settling it", "after", f.before.Sequence, "messages", len(f.messages), "error", err)
	if failpoint.Planted(failpoint.UnclearRefused) {
		for _, j := range f.jobs {
			j.reply(refusal(j.command, &es.Refusal{Status: es.StatusRejected, Code: "planted", Message: "a bug is planted"}))
		}
	}
	err = w.settle(ctx, f)
	switch {
	case err == nil:
		w.air.resent = true
		w.confirm(1)
		return nil
	case errors.Is(err, es.ErrConflict):
		w.cfg.Logger.Warn("another writer has appended, deciding again", "after", f.before.Sequence)
		return w.giveWay(ctx)
	}
	return err
}

// refused answers the command whose append the store refuses. Commands that shared one are tried apart: only one of them may
// be to blame, unless the store is full.
func (w *Writer) refused(f *flight, err error) {
	for _, j := range f.jobs {
		if len(f.jobs) > 1 && !errors.Is(err, es.ErrFull) {
			j.apart = true
		} else {
			j.refused = storeRefusal(err)
		}
	}
	w.undo()
}

func storeRefusal(err error) *es.Refusal {
	if errors.Is(err, es.ErrFull) {
		hint := strings.Join(errors.GetAllHints(err), "; ")
		if hint == "" {
			hint = "raise the limit of the event stream; commands are taken again at once"
		}
		return &es.Refusal{Status: es.StatusRejected, Code: "store-full", Message: "the event store takes nothing more: " + err.Error(), Hint: hint}
	}
	return &es.Refusal{Status: es.StatusRejected, Code: "too-large", Message: err.Error(), Hint: "send less in one command"}
}

// settle finds out what became of an append. While it is not known, its senders and all who wait behind it are told
// unknown when their patience ends. It gives errors marked [es.ErrConflict], [es.ErrUnclear] or [ErrEventsLost].
func (w *Writer) settle(ctx context.Context, f *flight) error {
	for {
		bounded, cancel := context.WithTimeout(ctx, w.cfg.Patience/4)
		err := es.Settle(bounded, w.cfg.Store, f.before, f.messages)
		cancel()
		if !errors.Is(err, es.ErrUnclear) || ctx.Err() != nil {
			return err
		}
		w.tellStore(err)
		w.answerImpatient()
		if err := w.lost(ctx); err != nil {
			return err
		}
	}
}

// confirm moves the confirmed head over the oldest n flights, which stand, and answers what rested on them.
func (w *Writer) confirm(n int) {
	if n == 0 {
		return
	}
	flights := w.air.first(n)
	newest := flights[n-1].jobs
	last := newest[len(newest)-1]
	w.confirmed = last.after
	w.model.Release(last.mark)
	failpoint.Pass(failpoint.WriterAfterAppend)
	w.tellStore(nil)
	w.tellLanded(flights)
	for _, f := range flights {
		for _, j := range f.jobs {
			j.reply(j.result)
		}
	}
	failpoint.Pass(failpoint.WriterAfterAnswer)
}

// undo drops the upper layer and queues its commands to be decided again, in the order they came. None of what is in the
// air can be stored later: the oldest flight never will be, and the others stand on it.
func (w *Writer) undo() {
	jobs := append(w.air.clear(), w.open.first(len(w.open.jobs))...)
	if len(jobs) > 0 {
		w.model.Rollback(jobs[0].mark)
		w.head = jobs[0].before
	}
	for _, j := range jobs {
		w.memory.drop(j.command.Ref, j.command.ID)
	}
	var keep []*job
	for _, j := range w.waiting {
		if j.rests > w.confirmed.Sequence {
			jobs = append(jobs, j)
		} else {
			keep = append(keep, j)
		}
	}
	w.waiting = keep
	w.redecide(jobs)
}
