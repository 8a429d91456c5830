package dispatch

import (
	"context"
	"fmt"
	"time"

	"github.com/cockroachdb/errors"

	"catenary/es"
	"catenary/internal/failpoint"
)

// job is one command on its way through the writer.
type job struct {
	command  es.Command
	answer   func(es.Answer)
	answered bool
	ordinal  uint64
	received time.Time // when the writer first took it in

	// What deciding gave.
	result   es.Answer
	messages []es.Message // empty when the command left no events
	before   es.Head      // the speculative head it was decided on
	after    es.Head
	mark     es.Mark // the model before it
	wait     uint64  // counts the jobs that wait, in the order they began to
	rests    uint64  // the sequence up to which all must stand before the answer leaves
	tailRead bool    // the stream's tail was read after deciding
	repeat   place   // the first answer's events, when the command is a repeat

	refused *es.Refusal // set when the store refused its append
	apart   bool        // an append that it shared was refused: it goes alone
}

// reply answers the sender once.
func (j *job) reply(a es.Answer) {
	if j.answered {
		return
	}
	j.answered = true
	j.answer(a)
}

// take brings a new command in.
func (w *Writer) take(ctx context.Context, j *job) {
	w.ordinal++
	j.ordinal = w.ordinal
	j.received = w.cfg.Now()
	w.decide(j)
	w.flush(ctx)
}

// redecide queues jobs to be decided before anything new, in the order they first came in.
func (w *Writer) redecide(jobs []*job) {
	sortByOrdinal(jobs)
	w.again = append(jobs, w.again...)
}

func (w *Writer) decideAgain(ctx context.Context) {
	for len(w.again) > 0 && !w.open.full() {
		j := w.again[0]
		w.again = w.again[1:]
		w.decide(j)
		w.flush(ctx)
	}
}

// decide gives a command its answer, on top of all that was decided before, and files it by what the answer waits for.
func (w *Writer) decide(j *job) {
	j.messages, j.repeat, j.tailRead = nil, 0, false
	j.rests = w.head.Sequence
	now := w.now()
	c := j.command
	c.Received = now
	if r := checkID(c.ID, now); r != nil {
		j.reply(refusal(c, r))
		return
	}
	if p, ok := w.memory.find(c.Ref, c.ID); ok && !failpoint.Planted(failpoint.DedupSkipped) {
		j.repeat, j.rests = p, p.last()
		w.wait(j)
		return
	}
	if j.refused != nil {
		j.reply(refusal(c, j.refused))
		return
	}
	if !c.Deadline.IsZero() && now.After(c.Deadline) {
		j.reply(refusal(c, &es.Refusal{Status: es.StatusExpired, Code: "deadline-passed", Message: fmt.Sprintf("the deadline %s has passed; the command was not done",
			c.Deadline.UTC().Format(time.RFC3339Nano)), Hint: "send it again with a later deadline"}))
		return
	}
	keyed, err := w.judge(c)
	if err != nil {
		j.result = w.refuse(c, err)
		w.wait(j)
		return
	}
	if len(keyed) == 0 {
		w.model.Note(c)
		j.result = es.Answer{Status: es.StatusUnchanged, Command: c.ID, Aggregate: c.Ref.Aggregate, Key: c.Ref.Key, Version: w.model.Version(c.Ref)}
		w.wait(j)
		return
	}
	if w.owed != nil {
		j.reply(refusal(c, storeRefusal(w.owed)))
		return
	}
	j.mark, j.before = w.model.Mark(), w.head
	if err := w.record(j, c, keyed); err != nil {
		w.model.Rollback(j.mark)
		w.head = j.before
		j.messages = nil
		j.result = w.refuse(c, err)
		w.wait(j)
		return
	}
	j.after, j.rests = w.head, w.head.Sequence
	w.memory.put(c.Ref, c.ID, placeOf(j.before.Sequence+1, len(j.messages)))
	w.open.add(j)
}

// now is the recorded time of what is decided at the moment. Finer times than microseconds would only make events longer.
func (w *Writer) now() time.Time { return w.cfg.Now().UTC().Truncate(time.Microsecond) }

// judge asks the model, after the checks that need nothing but versions and leases. A panic in the domain's code is that
// command's failure alone: deciding changes nothing.
func (w *Writer) judge(c es.Command) (keyed []es.KeyedEvent, err error) {
	if c.Expected != nil && !failpoint.Planted(failpoint.ExpectedIgnored) {
		if current := w.model.Version(c.Ref); current != *c.Expected {
			return nil, &versionConflict{expected: *c.Expected, current: current}
		}
	}
	if c.Fence != 0 && w.model.Fenced(c.Fence) {
		return nil, &es.Refusal{Status: es.StatusFenced, Code: "fenced", Message: fmt.Sprintf("the lease taken at event %d is no longer the present one", c.Fence),
			Hint: "stop acting; take the lease again"}
	}
	defer func() {
		if p := recover(); p != nil {
			err = errors.Newf("deciding %s %s panicked: %v", c.Ref.Aggregate, c.Verb, p)
		}
	}()
	return w.model.Decide(c)
}

// record makes events of what was decided and applies them to the model, exactly as a later replay will.
func (w *Writer) record(j *job, c es.Command, keyed []es.KeyedEvent) error {
	if len(keyed) > es.MaxAppendMessages {
		return es.Refuse("too-many", fmt.Sprintf("%s %s leads to %d events; the limit of one command is %d", c.Ref.Aggregate, c.Verb, len(keyed), es.MaxAppendMessages), "do it in parts")
	}
	result := es.Answer{Status: es.StatusAccepted, Command: c.ID, Aggregate: c.Ref.Aggregate, Key: c.Ref.Key, Events: make([]es.AnswerEvent, 0, len(keyed))}
	j.messages = make([]es.Message, 0, len(keyed))
	for _, k := range keyed {
		name, body, err := w.cfg.Registry.Encode(k.Data)
		if err != nil {
			return err
		}
		e := es.Event{
			ID: w.cfg.NewID(), Type: name, Ref: k.Ref, Version: w.model.Version(k.Ref) + 1, Recorded: c.Received.UTC().Round(0), Effective: k.At(c).UTC().Round(0), Backfill: k.Backfill, Body: body,
			Command: es.Cause{ID: c.ID, Ref: c.Ref, Digest: c.Digest, Actor: c.Actor, OnBehalfOf: c.OnBehalfOf, Causation: c.Causation, Correlation: c.Correlation, Trace: c.Trace},
		}
		if failpoint.Planted(failpoint.VersionSkipped) && w.head.Sequence%50 == 33 {
			e.Version++
		}
		m := e.Message(w.cfg.Registry.Codec().ContentType())
		next := w.head.Seal(&m)
		// The headers say what the event says already; the body is read as a replay will read it.
		e.Sequence, e.Hash = next.Sequence, next.Hash
		if e.Data, err = w.cfg.Registry.DecodeBody(name, body); err != nil {
			return err
		}
		if err := w.model.Apply(e); err != nil {
			return errors.Wrapf(err, "apply %s on %s", name, k.Ref)
		}
		w.head = next
		j.messages = append(j.messages, m)
		addEvent(&result, e)
	}
	j.result = result
	return nil
}

// addEvent adds an event to an accepted command's answer. Answers are made by it alone, so that a repeat's is the first's.
func addEvent(a *es.Answer, e es.Event) {
	a.Events = append(a.Events, es.AnswerEvent{Sequence: e.Sequence, Type: e.Type, Aggregate: e.Ref.Aggregate, Key: e.Ref.Key, Version: e.Version})
	a.Sequence = e.Sequence
	if e.Ref.Aggregate == a.Aggregate && e.Ref.Key == a.Key {
		a.Version = e.Version
	}
}

type versionConflict struct{ expected, current uint64 }

func (v *versionConflict) Error() string {
	return fmt.Sprintf("expected version %d, found %d", v.expected, v.current)
}

// refuse gives the answer for an error of deciding.
func (w *Writer) refuse(c es.Command, err error) es.Answer {
	var conflict *versionConflict
	var r *es.Refusal
	switch {
	case errors.As(err, &conflict):
		a := refusal(c, &es.Refusal{Status: es.StatusConflict, Code: "version", Message: fmt.Sprintf("%s has version %d, not %d", c.Ref, conflict.current, conflict.expected),
			Hint: "read it again and decide on what stands now"})
		a.Version = conflict.current
		a.Error.Expected, a.Error.Current = &conflict.expected, &conflict.current
		return a
	case errors.As(err, &r):
		a := refusal(c, r)
		a.Version = w.model.Version(c.Ref)
		return a
	}
	w.cfg.Logger.Error("command could not be decided", "aggregate", c.Ref.Aggregate, "key", c.Ref.Key, "verb", c.Verb, "command", c.ID, "error", err)
	return refusal(c, &es.Refusal{Status: es.StatusRejected, Code: "internal", Message: "the command could not be decided: " + err.Error(), Hint: "this is a fault of the program: report it with the command"})
}

func refusal(c es.Command, r *es.Refusal) es.Answer {
	return es.Answer{
		Status: r.Status, Command: c.ID, Aggregate: c.Ref.Aggregate, Key: c.Ref.Key,
		Error: &es.AnswerError{Code: r.Code, Message: r.Message, Hint: r.Hint, RetryAfterMillis: r.RetryAfter.Milliseconds()},
	}
}
