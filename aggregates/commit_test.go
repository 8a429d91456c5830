package aggregates_test

import (
	"testing"
	"time"

	"catenary/commands"
	"catenary/events"
)

func TestCommit(t *testing.T) {
	t.Parallel()
	record := commands.RecordCommit{Repository: "shop", Branch: "main", Commit: "c1", Merged: day, Heard: day.Add(time.Second), Author: "a-7"}
	fact := on(commands.CommitRef("shop", "c1"), events.CommitRecorded{
		Repository: "shop", Branch: "main", Commit: "c1", Merged: day, Heard: day.Add(time.Second), Author: "a-7",
	})
	heardAgain, elsewhere, moved := record, record, record
	heardAgain.Heard = day.Add(time.Hour)
	elsewhere.Merged = day.In(time.FixedZone("x", 3600))
	moved.Branch = "release"

	given(t).
		when(record).then(fact).
		again().unchanged().
		when(heardAgain).unchanged().
		when(elsewhere).unchanged().
		when(moved).rejected("recorded", "commit c1 of shop").
		when(commands.RecordCommit{Repository: "lib", Commit: "c1"}).then(on(commands.CommitRef("lib", "c1"), events.CommitRecorded{Repository: "lib", Commit: "c1"}))
}
