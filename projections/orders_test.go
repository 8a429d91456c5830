package projections_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"catenary/es"
	"catenary/es/project"
	"catenary/events"
	"catenary/projections"
)

func TestOrders(t *testing.T) {
	t.Parallel()
	orders := projections.Orders()
	if diff := cmp.Diff(es.Ref{Aggregate: events.AggregateProjection, Key: "chain-builds"}, orders.Instance("chain-builds")); diff != "" {
		t.Errorf("instance (-of the command +of the view):\n%s", diff)
	}
	for _, c := range []struct {
		fact any
		want project.Order
		is   bool
	}{
		{events.ProjectionPaused{View: "v", Reason: "r"}, project.Order{Pause: true, Reason: "r"}, true},
		{events.ProjectionResumed{Reason: "r"}, project.Order{Resume: true, Reason: "r"}, true},
		{events.ProjectionSkipped{View: "v", Event: 7, Reason: "r"}, project.Order{Skip: 7, Reason: "r"}, true},
		{events.FreezeLifted{}, project.Order{}, false},
		{nil, project.Order{}, false},
	} {
		if got, is := orders.Read(es.Event{Data: c.fact}); got != c.want || is != c.is {
			t.Errorf("%T gives %+v, %v", c.fact, got, is)
		}
	}
}
