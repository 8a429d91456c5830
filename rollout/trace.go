package rollout

import (
	"slices"
	"strings"

	"catenary/es"
	"catenary/events"
	"catenary/rollout/walk"
)

// setsGoing are the events by which somebody sets a rollout going: what it does from then on is done for their sake.
func setsGoing() []string {
	return []string{events.TypeRolloutPlanned, events.TypeRolloutApproved, events.TypeRolloutStarted, events.TypeRolloutResumed}
}

// noteTrace remembers under which trace a rollout goes, for as long as it is walked.
func (e *Engine) noteTrace(m es.Message) {
	token, ok := strings.CutPrefix(m.Subject, es.Ref{Aggregate: events.AggregateRollout}.Subject())
	if !ok {
		return
	}
	id, err := es.UnescapeToken(token)
	if err != nil {
		return // the walk has refused it already
	}
	one := func(name string) string { return strings.Join(m.Header[name], "") }
	switch {
	case !e.state.Knows(id):
		delete(e.traces, id)
	case one(es.HeaderTrace) != "" && slices.Contains(setsGoing(), one(es.HeaderType)):
		e.traces[id] = one(es.HeaderTrace)
	}
}

// trace begins to trace a command.
func (e *Engine) trace(a walk.Action) (trace string, answered func(es.Answer, error)) {
	if e.cfg.Trace == nil {
		return "", func(es.Answer, error) {}
	}
	return e.cfg.Trace(a, e.traces[a.Rollout])
}
