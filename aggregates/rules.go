package aggregates

import (
	"fmt"
	"time"

	"catenary/aggregates/assignment"
	"catenary/aggregates/build"
	"catenary/commands"
	"catenary/es"
	"catenary/events"
)

// Codes of the refusals that any command can meet.
const (
	CodeEffectiveRange      = "effective-range"
	CodeEffectiveAhead      = "effective-ahead"
	CodeEffectiveBehind     = "effective-behind"
	CodeBackfillUnsupported = "backfill-unsupported"
	CodeBackfillNotBehind   = "backfill-not-behind"
	CodeTooMany             = "too-many"
	CodeTooLarge            = "too-large"
)

// timely holds a command to the rules of time, before anything else is looked at.
func (w *World) timely(c es.Command) error {
	at := c.At()
	switch {
	case at.Before(time.Unix(0, 0)):
		return &es.Refusal{
			Status: es.StatusInvalid, Code: CodeEffectiveRange, Message: fmt.Sprintf("the effective time %s lies before 1970", moment(at)),
			Hint: "give the time it became true",
		}
	case at.Sub(c.Received) > MaxAhead:
		return &es.Refusal{
			Status: es.StatusInvalid, Code: CodeEffectiveAhead,
			Message: fmt.Sprintf("the effective time %s lies more than %s ahead of the writer's clock, which says %s", moment(at), MaxAhead, moment(c.Received)),
			Hint:    "record what has become true; check the clock of the sender",
		}
	case c.Backfill:
		return w.behind(c)
	case c.Ref.Aggregate == events.AggregateWriter:
		return nil // a writer must be able to start, even with a clock behind its predecessor's
	}
	return w.notBehind(c, c.Ref)
}

// notBehind refuses a fact that became true before the newest one of its instance. Only a sender who says when it became
// true can be refused for it.
func (w *World) notBehind(c es.Command, ref es.Ref) error {
	version, latest := w.head(ref)
	if version == 0 || c.Effective.IsZero() || c.Effective.UnixNano() >= latest {
		return nil
	}
	hint := "give a later effective time"
	if assignment.CanBackfill(c.Data) {
		hint = "give a later effective time, or --backfill to add to history only"
	}
	return es.Refuse(CodeEffectiveBehind, fmt.Sprintf("%s has a newer fact of %s: one of %s would come before it", ref, moment(time.Unix(0, latest)), moment(c.At())), hint)
}

// date gives facts of a command that did not say when they became true a time that is not behind the newest fact of their
// instance. That one may lie ahead of the writer's clock: it came from a node whose clock is a little ahead, or from a
// writer before this one. Whoever acts now must not have to wait for it.
func (w *World) date(c es.Command, facts []es.KeyedEvent) {
	if !c.Effective.IsZero() || c.Ref.Aggregate == events.AggregateWriter {
		return
	}
	now := c.Received.UnixNano()
	for i, f := range facts {
		if _, latest := w.head(f.Ref); latest > now {
			facts[i].Effective = time.Unix(0, latest).UTC()
		}
	}
}

// behind holds a backfill to its rules: it is asked for a time that lies before the newest of its instance.
func (w *World) behind(c es.Command) error {
	if !assignment.CanBackfill(c.Data) {
		return es.Refuse(CodeBackfillUnsupported, fmt.Sprintf("%s %s can't be backfilled", c.Ref.Aggregate, c.Verb), "only assignment assign and unassign add to history")
	}
	_, latest := w.head(c.Ref)
	switch {
	case c.Effective.IsZero():
		return es.Refuse(CodeBackfillNotBehind, "a backfill needs the time it became true", "give an effective time")
	case latest == 0:
		return es.Refuse(CodeBackfillNotBehind, fmt.Sprintf("%s has no facts yet: there is nothing to be behind of", c.Ref), "leave --backfill out")
	case c.Effective.UnixNano() >= latest:
		return es.Refuse(CodeBackfillNotBehind, fmt.Sprintf("%s is not before the newest fact of %s, which is of %s", moment(c.Effective), c.Ref, moment(time.Unix(0, latest))),
			"leave --backfill out")
	}
	return nil
}

func moment(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }

// recordable holds what was decided to the rules that no aggregate sees alone: how many events one append takes, that no
// other instance is changed behind its newest fact, and how large a record may become.
func (w *World) recordable(c es.Command, facts []es.KeyedEvent) error {
	if len(facts) > es.MaxAppendMessages {
		return es.Refuse(CodeTooMany, fmt.Sprintf("%s %s leads to %d events: the limit of one command is %d", c.Ref, c.Verb, len(facts), es.MaxAppendMessages), "do it in parts")
	}
	grown := map[es.Ref]int{}
	for _, f := range facts {
		if f.Ref != c.Ref && !f.Backfill {
			if err := w.notBehind(c, f.Ref); err != nil {
				return err
			}
		}
		size := w.recordBytes(f) + grown[f.Ref]
		if size > w.cfg.MaxValueBytes {
			return es.Refuse(CodeTooLarge, fmt.Sprintf("the record of %s would have %d bytes: the limit is %d", f.Ref, size, w.cfg.MaxValueBytes), "say less of it; keep what is large elsewhere and refer to it")
		}
		if len(facts) > 1 {
			grown[f.Ref] = size
		}
	}
	return nil
}

// recordOverheadBytes is what a record has besides what its facts say: its times, states, and the names of those fields.
const recordOverheadBytes = 512

// recordBytes bounds the size of an instance's record after a fact. Records of builds and publications grow with each of
// their facts; the others hold the newest of each kind.
func (w *World) recordBytes(f es.KeyedEvent) int {
	switch fact := f.Data.(type) {
	case events.Build:
		return recordOverheadBytes + w.buildBytes(fact) + int(w.builds.state(f.Ref.Key).Bytes)
	case events.Publication:
		return recordOverheadBytes + w.measure.JSON(fact) + int(w.publications.state(f.Ref.Key).Bytes)
	case events.Assignment:
		s := w.assignments.state(f.Ref.Key)
		after := assignment.Evolve(s, fact, 0, w.measure.JSON(fact))
		return recordOverheadBytes + int(after.ToldBytes) + int(after.SeenBytes)
	case events.RolloutStepsPlanned:
		return w.partBytes(fact)
	case events.RolloutStepBegun, events.RolloutStepEnded:
		return recordOverheadBytes + w.measure.JSON(fact) // it is the step's record that grows, and a plan has left room for that
	case events.Rollout:
		s := w.rollouts.state(f.Ref.Key)
		return recordOverheadBytes + len(s.Tiers)*tierCountsBytes + int(s.Bytes) + w.measure.JSON(fact)
	}
	return recordOverheadBytes + w.measure.JSON(f.Data)
}

const (
	// tierCountsBytes is what a record says of how far a tier is.
	tierCountsBytes = 256
	// maxPartBytes bounds a part of a plan, which is one event: well below what the stream takes.
	maxPartBytes = 192 << 10
	// stepRoomBytes is what the record of a step has besides what is planned: what it is handed, hands on, and why it came to its end.
	stepRoomBytes = commands.MaxInputsBytes + commands.MaxOutputsBytes + commands.MaxTextBytes
)

// partBytes bounds the largest record that a part of a plan leads to: each step has one of its own.
func (w *World) partBytes(part events.RolloutStepsPlanned) int {
	if n := w.measure.JSON(part); n > maxPartBytes {
		return max(n, w.cfg.MaxValueBytes+1)
	}
	largest := 0
	for _, step := range part.Steps {
		largest = max(largest, w.measure.JSON(step))
	}
	return recordOverheadBytes + stepRoomBytes + largest
}

// buildBytes bounds what a fact adds to a build's record.
func (w *World) buildBytes(fact events.Build) int {
	return w.measure.JSON(fact) + w.measure.JSON(build.Repeated(fact))
}
