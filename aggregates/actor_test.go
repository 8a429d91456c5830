package aggregates_test

import (
	"testing"

	"catenary/commands"
	"catenary/es"
	"catenary/events"
)

func TestActor(t *testing.T) {
	t.Parallel()
	forget := commands.ForgetActor{Actor: "a-1", Reason: "request 12"}
	given(t).
		when(forget).then(on(forget.Ref(), events.ActorForgotten{Reason: "request 12"})).
		again().unchanged().
		when(commands.ForgetActor{Actor: "a-1", Reason: "request 13"}).unchanged().
		when(commands.ForgetActor{Actor: "a-2", Reason: "request 14"}).accepted()
}

// TestWriterRecordsALoss: what somebody accepts to be lost stands in the same append as the start.
func TestWriterRecordsALoss(t *testing.T) {
	t.Parallel()
	started := events.WriterStarted{ID: "w1", Program: "1.0.0", Rules: 1}
	loss := events.WriterLossAccepted{Found: 50, Witnesses: []events.Witness{{Name: "bucket chain-nodes", Sequence: 100}}, Reason: "the disk is gone"}
	ref := commands.StartWriter{}.Ref()
	given(t).
		when(commands.StartWriter{WriterStarted: started}).then(on(ref, started)).
		when(commands.StartWriter{WriterStarted: started, Loss: &loss}).then([]es.KeyedEvent{on(ref, started), on(ref, loss)}...)
}
