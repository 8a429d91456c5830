package commands

import (
	"bytes"
	"fmt"
	"maps"
	"mime"
	"reflect"
	"slices"
	"strings"

	"catenary/es"
	"catenary/es/dispatch"
)

// Field describes a field of a payload to people.
type Field struct {
	Name string
	// Type says what it holds, in words.
	Type string
	// Optional says that it may be left out.
	Optional bool
	// Fields are those of an object, or of each object of a list.
	Fields []Field
}

// Verb is a command that can be sent over the bus.
type Verb struct {
	Aggregate, Verb string
	Fields          []Field
}

// Registry knows every command of the bus. Build it once with [Commands]; reading it is safe from many goroutines.
type Registry struct {
	known map[string]map[string]command
}

type command struct {
	verb Verb
	typ  reflect.Type
	plan *plan
}

// Commands gives the registry of every command that can be sent over the bus. What a writer records about itself is not
// among them.
func Commands() *Registry {
	r := &Registry{known: map[string]map[string]command{}}
	register[RegisterModule](r)
	register[ChangeModule](r)
	register[ForgetModule](r)

	register[RegisterNode](r)
	register[RelabelNode](r)
	register[RetireNode](r)

	register[RecordCommit](r)

	register[AskBuild](r)
	register[NotAskedBuild](r)
	register[UnknownBuild](r)
	register[ReaskBuild](r)
	register[ClaimBuild](r)
	register[SucceedBuild](r)
	register[FailBuild](r)
	register[PublishBuild](r)

	register[RecordPublication](r)
	register[AttestPublication](r)
	register[VetoPublication](r)
	register[LiftVeto](r)

	register[Assign](r)
	register[Unassign](r)
	register[Move](r)
	register[Pend](r)
	register[Observe](r)

	register[DeclareFreeze](r)
	register[LiftFreeze](r)

	register[TakeLease](r)
	register[RenewLease](r)
	register[ReleaseLease](r)

	register[PauseProjection](r)
	register[ResumeProjection](r)
	register[SkipProjection](r)

	register[ForgetActor](r)
	register[HoldMerge](r)
	register[TakeMerge](r)
	register[ReleaseMerge](r)

	register[DeclareTrack](r)
	register[ChangeTrack](r)
	register[EndTrack](r)

	register[DeclareStrategy](r)
	register[EndStrategy](r)

	register[PlanRollout](r)
	register[ApproveRollout](r)
	register[StartRollout](r)
	register[AdvanceRollout](r)
	register[BeginStep](r)
	register[EndStep](r)
	register[SettleStep](r)
	register[RetryStep](r)
	register[BlockRollout](r)
	register[PauseRollout](r)
	register[ResumeRollout](r)
	register[AbortRollout](r)
	register[SupersedeRollout](r)
	return r
}

// register adds a payload's type under the aggregate and verb its zero value names.
func register[P es.Payload](r *Registry) {
	var zero P
	aggregate, verb := zero.Ref().Aggregate, zero.Verb()
	if r.known[aggregate] == nil {
		r.known[aggregate] = map[string]command{}
	}
	if _, ok := r.known[aggregate][verb]; ok {
		panic(fmt.Sprintf("commands: %s %s is registered twice", aggregate, verb))
	}
	p := planOf(reflect.TypeFor[P]())
	r.known[aggregate][verb] = command{
		verb: Verb{Aggregate: aggregate, Verb: verb, Fields: p.fields},
		typ:  reflect.TypeFor[P](), plan: p,
	}
}

// Verbs lists every command, by aggregate and verb.
func (r *Registry) Verbs() []Verb {
	var list []Verb
	for _, aggregate := range slices.Sorted(maps.Keys(r.known)) {
		verbs := r.known[aggregate]
		for _, verb := range slices.Sorted(maps.Keys(verbs)) {
			list = append(list, verbs[verb].verb)
		}
	}
	return list
}

// Decode reads a command's body; without a content type it is JSON, so that a person can type a command. What it gives has
// passed Validate. It bounds no body: that is for whoever takes it in.
//
// It is strict: fields it does not know, fields given twice, nulls, values of another type and anything after the body's end
// are refused, so that a slip of the pen never becomes another command. All errors are of type *[es.Refusal] with the status
// invalid. Nothing of the result shares memory with the body.
func (r *Registry) Decode(aggregate, verb, contentType string, body []byte) (es.Payload, error) {
	c, refusal := r.find(aggregate, verb)
	if refusal != nil {
		return nil, refusal
	}
	v, refusal := c.read(contentType, body)
	if refusal != nil {
		return nil, refusal
	}
	into := reflect.New(c.typ).Elem()
	if refusal := c.plan.bind("", &v, into); refusal != nil {
		return nil, refusal
	}
	payload := into.Interface().(es.Payload)
	if err := payload.Validate(); err != nil {
		return nil, err
	}
	return payload, nil
}

func (r *Registry) find(aggregate, verb string) (command, *es.Refusal) {
	verbs, ok := r.known[aggregate]
	if !ok {
		return command{}, invalid(CodeUnknownCommand, fmt.Sprintf("there is no aggregate %.64q", aggregate),
			"the aggregates are "+strings.Join(slices.Sorted(maps.Keys(r.known)), ", "))
	}
	c, ok := verbs[verb]
	if !ok {
		return command{}, invalid(CodeUnknownCommand, fmt.Sprintf("%s has no command %.64q", aggregate, verb),
			"its commands are "+strings.Join(slices.Sorted(maps.Keys(verbs)), ", "))
	}
	return c, nil
}

func (c command) read(contentType string, body []byte) (value, *es.Refusal) {
	media := dispatch.ContentTypeJSON
	if contentType != "" {
		var err error
		if media, _, err = mime.ParseMediaType(contentType); err != nil {
			media = contentType
		}
	}
	switch media {
	case dispatch.ContentTypeJSON:
		if len(bytes.TrimSpace(body)) == 0 {
			return value{}, c.empty()
		}
		return readJSON(body)
	case dispatch.ContentTypeMsgpack:
		if len(body) == 0 {
			return value{}, c.empty()
		}
		return readMsgpack(body)
	}
	return value{}, invalid(CodeContentType, fmt.Sprintf("the content type %.64q is unknown", contentType),
		"use "+dispatch.ContentTypeJSON+" or "+dispatch.ContentTypeMsgpack)
}

// empty says what is expected instead of nothing.
func (c command) empty() *es.Refusal {
	var must, may []string
	for _, f := range c.verb.Fields {
		if f.Optional {
			may = append(may, f.Name)
		} else {
			must = append(must, f.Name)
		}
	}
	hint := "send an object with " + strings.Join(must, ", ")
	if len(must) == 0 {
		hint = "send an object"
	}
	if len(may) > 0 {
		hint += "; it may also have " + strings.Join(may, ", ")
	}
	return invalid(CodeEmptyBody, fmt.Sprintf("%s %s has no body", c.verb.Aggregate, c.verb.Verb), hint)
}

// Digest gives the SHA-256, in hex, of a payload in its canonical form: the same payload has the same digest, whether it came
// as JSON or as msgpack. A payload with names of persons MUST be mapped first (see [dispatch.Personal]): a digest over a name would
// let the name be guessed. It gives an error for a payload that has no form, which none of this package is.
func (r *Registry) Digest(payload es.Payload) (string, error) {
	body, err := es.Msgpack{}.Marshal(payload)
	if err != nil {
		return "", err
	}
	return es.Digest(body), nil
}
