package dispatch

import (
	"strings"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/cockroachdb/errors"

	"catenary/es"
)

// The life of a command in the inbox:
//
//	sender ── catenary.inbox.<aggregate>.<verb> ──► InboxService: shape checked, people's names replaced, actor stamped
//	   ◄── stored ── stream of the inbox: inbox.<aggregate>.<key>
//	                   │ in order per instance
//	                   ▼
//	              InboxWorker ──► Writer ──► receipt ──► outcome told ──► acknowledged: it leaves the stream
//	                   └── can't be read or decided ──► parked ──► receipt ──► acknowledged
//
// Each step is stored before the one before it is forgotten, so that whoever dies in between leaves a command that is
// taken up again; the command's id keeps it from being done twice.

// Prefixes of the inbox's subjects.
const (
	// InboxPrefix starts the subject of a command that is to be kept until it is done.
	InboxPrefix = "catenary.inbox"
	// OutcomePrefix starts the subject a receipt is told on: catenary.outcome.<command id>.
	OutcomePrefix = "catenary.outcome"
	// ParkedPrefix starts the subjects of what can be done with a parked command: retry and discard.
	ParkedPrefix = "catenary.parked"
	// SubjectReceipt is where the receipt of a command is asked for.
	SubjectReceipt = "catenary.query.receipt"
	// SubjectParked is where parked commands are asked for.
	SubjectParked = "catenary.query.parked"
)

// headerVerb is what a stored command is to do. Its subject names the instance, so that what belongs to one is found by one
// literal subject.
const headerVerb = "Cat-Verb"

// doubtAfter and giveUpAfter tell a command that processes die of from one that was only handed out often: since its instance has many,
// its turn had not come, or writers stopped. What was handed out more often than the first is noted in its receipt before it is
// decided, and the note is taken back when the process lives to see an answer, or stops in order. One with as many notes as the second is
// parked. Most commands are handed out once, and none of this is written for them.
const (
	doubtAfter  = 10
	giveUpAfter = 15
)

// entry is a command as the inbox holds it.
type entry struct {
	sequence   uint64
	stored     time.Time
	deliveries uint64
	subject    string
	ref        es.Ref
	verb       string
	actor      string
	// header gives a header as it was stored; empty when there is none.
	header      func(name string) string
	contentType string
	body        []byte
}

// storedHeaders are the headers of a command as the inbox keeps it. They are made anew from what was understood: nothing else
// that the sender wrote, in whatever spelling, gets into the stream.
func storedHeaders(c es.Command) map[string]string {
	h := map[string]string{headerVerb: c.Verb, HeaderActor: c.Actor, HeaderContentType: ContentTypeMsgpack}
	writeOptions(Options{
		ID: c.ID, Expected: c.Expected, Effective: c.Effective, Backfill: c.Backfill, Deadline: c.Deadline, Fence: c.Fence,
		OnBehalfOf: c.OnBehalfOf, Causation: c.Causation, Correlation: c.Correlation, Trace: c.Trace,
	}, func(name, value string) { h[name] = es.EncodeHeaderValue(value) })
	return h
}

// storedBody is the body of a command as the inbox keeps it: people stand in it by their opaque ids.
func storedBody(c es.Command) ([]byte, error) {
	body, err := es.Msgpack{}.Marshal(c.Data)
	if err != nil {
		return nil, errors.Wrapf(err, "encode %s %s", c.Ref.Aggregate, c.Verb)
	}
	if len(body) > MaxBodyBytes {
		return nil, invalid("too-large", "the body is over the limit once it is stored", "send less in one command")
	}
	return body, nil
}

// optionHeaders are all headers a sender can say something with.
func optionHeaders() []string {
	return []string{
		HeaderCommand, HeaderExpected, HeaderEffective, HeaderBackfill, HeaderDeadline, HeaderFence, HeaderOnBehalfOf, HeaderCausation,
		HeaderCorrelation, HeaderTrace,
	}
}

// command reads a stored command. It gives an *es.Refusal, or what the decoder gives.
func (e entry) command(in *Intake) (es.Command, error) {
	options, err := readOptions(func(name string) (string, error) { return es.DecodeHeaderValue(e.header(name)) })
	if err != nil {
		return es.Command{}, err
	}
	if options.ID == "" || e.verb == "" || e.actor == "" {
		return es.Command{}, invalid(CodeUnreadable, "id, verb or actor is missing: the inbox service did not write this", "")
	}
	c, err := in.anonymous(Request{Aggregate: e.ref.Aggregate, Verb: e.verb, Body: e.body, ContentType: e.contentType, Options: options}, e.actor)
	if err == nil && c.Ref != e.ref {
		err = invalid(CodeUnreadable, "it is addressed to "+c.Ref.String()+" but stands under "+e.ref.String(), "")
	}
	return c, err
}

// id is the command's id, also of an entry that can't be read otherwise.
func (e entry) id() string {
	id, err := es.DecodeHeaderValue(e.header(HeaderCommand))
	if err != nil {
		return ""
	}
	return id
}

// parked makes the record of an entry that is put aside.
func (e entry) parked(why es.AnswerError, now time.Time) Parked {
	p := Parked{
		ID: parkedIDOf(e), Error: why, Parked: now.UTC(), Stored: e.stored.UTC(), Inbox: e.sequence, Actor: e.actor,
		Command: e.id(), Aggregate: e.ref.Aggregate, Key: e.ref.Key, Verb: e.verb, Headers: map[string]string{}, ContentType: e.contentType, Body: e.body,
	}
	for _, name := range optionHeaders() {
		if v := e.header(name); v != "" {
			p.Headers[name] = v
		}
	}
	return p
}

// refUnder reads the instance from a subject of the inbox's stream.
func refUnder(prefix, subject string) es.Ref {
	aggregate, key, _ := strings.Cut(strings.TrimPrefix(subject, prefix), ".")
	return es.Ref{Aggregate: aggregate, Key: key}
}

// newPace gives the waits between tries: each about half as long again as the one before, up to a bound.
func newPace(first, most time.Duration) *backoff.ExponentialBackOff {
	pace := backoff.NewExponentialBackOff()
	pace.InitialInterval, pace.MaxInterval = first, most
	return pace
}
