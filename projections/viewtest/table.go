package viewtest

import (
	"cmp"
	"testing"

	"github.com/cockroachdb/errors"

	"catenary/es"
	"catenary/es/project"
	"catenary/es/project/projecttest"
	"catenary/events"
)

// Row is one event with those before it, and the value it leads to: none when Then is empty.
type Row struct {
	Name  string
	Given []projecttest.Fact
	When  projecttest.Fact
	// Then is the value, Key what it stands under; empty means the event's own key.
	Then, Key string
	// Fails is a part of the reason why the event can't be folded.
	Fails string
}

// Check tests a view row by row.
func Check(t *testing.T, newView func() project.View, rows []Row) {
	t.Helper()
	for _, r := range rows {
		t.Run(r.Name, func(t *testing.T) {
			t.Parallel()
			outcome := projecttest.Spec(t, events.Registry(), newView).Given(r.Given...).When(r.When)
			switch {
			case r.Fails != "":
				outcome.ThenFails(r.Fails)
			case r.Then == "":
				outcome.ThenNothing()
			default:
				outcome.Then(project.Value{Key: cmp.Or(r.Key, r.When.Ref.Key), Data: []byte(r.Then)})
			}
		})
	}
}

// CheckUnknown tests that a view does not pass over an event of its aggregate whose data a newer program knows.
func CheckUnknown(t *testing.T, newView func() project.View, backfill bool) {
	t.Helper()
	view := newView()
	selective, ok := view.(project.Selective)
	if !ok || len(selective.Aggregates()) != 1 {
		t.Fatalf("%s does not read the events of one aggregate", view.Name())
	}
	aggregate := selective.Aggregates()[0]
	_, err := view.Fold(es.Event{Sequence: 7, Type: aggregate + ".later.v1", Ref: es.Ref{Aggregate: aggregate, Key: "k1"}, Backfill: backfill})
	if !errors.Is(err, es.ErrUnknownType) {
		t.Errorf("data of a newer program gave error %v", err)
	}
}
