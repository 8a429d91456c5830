package hammer

import (
	"encoding/json"

	"catenary/es"
	"catenary/es/dispatch"
)

// Sender hands commands to a writer.
type Sender interface {
	// Send hands a command over and returns; done MUST be called once, from any goroutine, with the answer or with why there
	// is none.
	Send(p es.Payload, done func(es.Answer, error))
}

// InProcess sends to a writer in the same process.
type InProcess struct {
	// Submit is the writer's.
	Submit func(es.Command, func(es.Answer))
	// Decoder gives the payload's digest.
	Decoder dispatch.Decoder
	// NewID gives command ids.
	NewID func() string
	// Actor is the opaque id of who acts.
	Actor string
}

// Send implements [Sender].
func (s InProcess) Send(p es.Payload, done func(es.Answer, error)) {
	digest, err := s.Decoder.Digest(p)
	if err != nil {
		done(es.Answer{}, err)
		return
	}
	s.Submit(es.Command{ID: s.NewID(), Ref: p.Ref(), Verb: p.Verb(), Data: p, Digest: digest, Actor: s.Actor}, func(a es.Answer) { done(a, nil) })
}

// OverBus sends as programs elsewhere do.
type OverBus struct {
	// Post is a [dispatch.Pipeline]'s.
	Post func(dispatch.Request, func(es.Answer, error))
	// NewID gives command ids.
	NewID func() string
}

// Send implements [Sender].
func (s OverBus) Send(p es.Payload, done func(es.Answer, error)) {
	body, err := json.Marshal(p)
	if err != nil {
		done(es.Answer{}, err)
		return
	}
	s.Post(dispatch.Request{
		Aggregate: p.Ref().Aggregate, Verb: p.Verb(), Body: body, ContentType: dispatch.ContentTypeJSON, Options: dispatch.Options{ID: s.NewID()},
	}, done)
}
