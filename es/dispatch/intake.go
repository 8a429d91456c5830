package dispatch

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"time"

	"github.com/cockroachdb/errors"

	"catenary/es"
)

// MaxBodyBytes bounds a command's body. What a record may hold is less; this leaves room for what JSON adds to it.
const MaxBodyBytes = 256 << 10

// Limits of the texts in a command's headers.
const maxHeaderBytes = 1024

// Decoder reads payloads.
type Decoder interface {
	// Decode gives the payload of a command, which has passed Validate, or an *es.Refusal with status invalid.
	Decode(aggregate, verb, contentType string, body []byte) (es.Payload, error)
	// Digest gives the same text for the same payload, however it was written on the bus.
	Digest(es.Payload) (string, error)
}

// Personal is a payload that names persons. The writer replaces their names by opaque ids before it decides, so that no
// event holds a name.
type Personal interface {
	es.Payload
	// MapPersons gives the payload with each person's name replaced by what id gives for it. It gives the errors of id.
	MapPersons(id func(name string) (string, error)) (es.Payload, error)
}

// Forgetting is a payload that asks for a person to be forgotten. Their name is erased before the command is decided: should the
// process die in between, the name is gone, and the command is sent again.
type Forgetting interface {
	es.Payload
	// Forgotten gives the opaque id, and why.
	Forgotten() (actor, reason string)
}

// Intake makes commands of requests: it checks their shape, and replaces the names of people by opaque ids.
type Intake struct {
	Decoder Decoder
	Actors  *Actors
	// Erase erases what else is kept of an actor, besides the directory's entry. It may be nil.
	Erase func(ctx context.Context, actor string) error
	// Permit says whether somebody may send a command at all. It gives an *es.Refusal, with the status denied. Nil permits everything.
	Permit func(who Who, p es.Payload) error
	// NewID gives ids for commands that were sent without one.
	NewID  func() string
	Logger *slog.Logger
}

// Command makes a command of a request that somebody sent. It gives an *es.Refusal when the request is malformed or the
// actor directory can't be written.
func (in *Intake) Command(ctx context.Context, r Request, who Who) (es.Command, error) {
	c, payload, err := in.shape(r)
	if err == nil && in.Permit != nil {
		err = in.Permit(who, payload)
	}
	if err != nil {
		return c, err
	}
	id := func(name string) (string, error) { return in.Actors.ID(ctx, Who{Name: name}) }
	if p, ok := payload.(Personal); ok {
		if payload, err = p.MapPersons(id); err != nil {
			return c, in.actorRefusal(err)
		}
	}
	// The digest is taken after names are gone: a name can be guessed, and then told from a digest that covers it.
	if c.Digest, err = in.Decoder.Digest(payload); err != nil {
		return c, err
	}
	c.Data = payload
	if r.OnBehalfOf != "" {
		if c.OnBehalfOf, err = id(r.OnBehalfOf); err != nil {
			return c, in.actorRefusal(err)
		}
	}
	if c.Actor, err = in.Actors.ID(ctx, who); err != nil {
		return c, in.actorRefusal(err)
	}
	if p, ok := payload.(Forgetting); ok {
		err = in.forget(ctx, p)
	}
	return c, err
}

// forget erases what is kept of a person outside the events.
func (in *Intake) forget(ctx context.Context, p Forgetting) error {
	actor, reason := p.Forgotten()
	err := in.Actors.Forget(ctx, actor, reason)
	if err == nil && in.Erase != nil {
		err = in.Erase(ctx, actor)
	}
	var r *es.Refusal
	if err == nil || errors.As(err, &r) {
		return err
	}
	in.Logger.Error("an actor could not be erased", "actor", actor, "error", err)
	return busy("not-erased", "not all that is kept of the actor could be erased: "+err.Error(), time.Second)
}

// anonymous makes a command of a request in which people are named by their opaque ids already: one that was made a command
// once, and kept since. It gives an *es.Refusal when the request is malformed.
func (in *Intake) anonymous(r Request, actor string) (es.Command, error) {
	c, payload, err := in.shape(r)
	if err != nil {
		return c, err
	}
	if c.Digest, err = in.Decoder.Digest(payload); err != nil {
		return c, err
	}
	c.Data, c.OnBehalfOf, c.Actor = payload, r.OnBehalfOf, actor
	return c, nil
}

// shape checks all of a request that needs no state, and gives the command without what names people.
func (in *Intake) shape(r Request) (es.Command, es.Payload, error) {
	c := es.Command{
		ID: r.ID, Verb: r.Verb, Ref: es.Ref{Aggregate: r.Aggregate}, Expected: r.Expected, Effective: r.Effective.UTC(), Backfill: r.Backfill,
		Deadline: r.Deadline, Fence: r.Fence, Causation: r.Causation, Correlation: r.Correlation, Trace: r.Trace,
	}
	if r.Effective.IsZero() {
		c.Effective = time.Time{}
	}
	if c.ID == "" {
		c.ID = in.NewID()
	}
	for name, v := range map[string]string{"causation": r.Causation, "correlation": r.Correlation, "traceparent": r.Trace, "on-behalf-of": r.OnBehalfOf} {
		if len(v) > maxHeaderBytes {
			return c, nil, invalid("too-large", fmt.Sprintf("%s has %d bytes; the limit is %d", name, len(v), maxHeaderBytes), "shorten it")
		}
	}
	if len(r.Body) > MaxBodyBytes {
		return c, nil, invalid("too-large", fmt.Sprintf("the body of %s %s has %d bytes; the limit is %d", r.Aggregate, r.Verb, len(r.Body), MaxBodyBytes), "send less in one command")
	}
	payload, err := in.Decoder.Decode(r.Aggregate, r.Verb, r.ContentType, r.Body)
	if err != nil {
		return c, nil, err
	}
	c.Ref = payload.Ref()
	if subject := c.Ref.Subject(); len(subject) > es.MaxSubjectBytes {
		return c, nil, invalid("too-large", fmt.Sprintf("the names make a subject of %d bytes; the limit is %d", len(subject), es.MaxSubjectBytes), "use shorter names")
	}
	return c, payload, nil
}

// actorRefusal tells a name that can't be kept from a directory that can't be written.
func (in *Intake) actorRefusal(err error) *es.Refusal {
	if errors.Is(err, es.ErrName) {
		return invalid("bad-name", err.Error(), "")
	}
	if errors.Is(err, ErrDirectoryFull) {
		return es.Refuse("directory-full", err.Error(), "forget actors that are not needed, with catenary audit forget-actor, or send the command without on-behalf-of")
	}
	in.Logger.Error("actor directory can't be written", "error", err)
	return busy("directory", "the actor directory can't be written: "+err.Error(), time.Second)
}

func invalid(code, message, hint string) *es.Refusal {
	return &es.Refusal{Status: es.StatusInvalid, Code: code, Message: message, Hint: hint}
}

// readOptions reads a command's headers. It gives an *es.Refusal that names the header.
func readOptions(read func(name string) (string, error)) (Options, error) {
	bad := func(name, v, want string) error {
		return invalid("bad-header", fmt.Sprintf("header %s is %.80q; it must be %s", name, v, want), "")
	}
	var unreadable error
	get := func(name string) string {
		v, err := read(name)
		if err != nil && unreadable == nil {
			unreadable = invalid("bad-header", fmt.Sprintf("header %s can't be read: %v", name, err), "percent-encode what is not printable ASCII, and the percent sign itself")
		}
		return v
	}
	o := Options{
		ID: get(HeaderCommand), OnBehalfOf: get(HeaderOnBehalfOf), Causation: get(HeaderCausation), Correlation: get(HeaderCorrelation),
		Trace: get(HeaderTrace), Backfill: get(HeaderBackfill) != "",
	}
	if v := get(HeaderBackfill); v != "" && v != "1" {
		return o, bad(HeaderBackfill, v, "1 or absent")
	}
	if v := get(HeaderExpected); v != "" {
		n, err := strconv.ParseUint(v, 10, 64)
		if err != nil {
			return o, bad(HeaderExpected, v, "a version, such as 3")
		}
		o.Expected = &n
	}
	if v := get(HeaderFence); v != "" {
		n, err := strconv.ParseUint(v, 10, 64)
		if err != nil || n == 0 {
			return o, bad(HeaderFence, v, "the sequence of a lease's taken event")
		}
		o.Fence = n
	}
	for name, t := range map[string]*time.Time{HeaderEffective: &o.Effective, HeaderDeadline: &o.Deadline} {
		v := get(name)
		if v == "" {
			continue
		}
		parsed, err := time.Parse(time.RFC3339Nano, v)
		if err != nil || parsed.Year() < 1970 || parsed.Year() > 9999 {
			return o, bad(name, v, "an RFC 3339 time from 1970 on, such as 2026-05-01T07:34:45Z")
		}
		*t = parsed
	}
	return o, unreadable
}

// writeOptions is the counterpart of readOptions.
func writeOptions(o Options, set func(name, value string)) {
	text := func(name, v string) {
		if v != "" {
			set(name, v)
		}
	}
	text(HeaderCommand, o.ID)
	text(HeaderOnBehalfOf, o.OnBehalfOf)
	text(HeaderCausation, o.Causation)
	text(HeaderCorrelation, o.Correlation)
	text(HeaderTrace, o.Trace)
	if o.Backfill {
		set(HeaderBackfill, "1")
	}
	if o.Expected != nil {
		set(HeaderExpected, strconv.FormatUint(*o.Expected, 10))
	}
	if o.Fence != 0 {
		set(HeaderFence, strconv.FormatUint(o.Fence, 10))
	}
	if !o.Effective.IsZero() {
		set(HeaderEffective, o.Effective.UTC().Format(time.RFC3339Nano))
	}
	if !o.Deadline.IsZero() {
		set(HeaderDeadline, o.Deadline.UTC().Format(time.RFC3339Nano))
	}
}
