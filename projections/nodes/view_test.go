package nodes_test

import (
	"testing"

	"github.com/cockroachdb/errors"

	"catenary/es"
	"catenary/es/project"
	"catenary/es/project/projecttest"
	"catenary/events"
	"catenary/projections/nodes"
	"catenary/projections/perkey"
)

func n1(data any) projecttest.Fact {
	return projecttest.Fact{Ref: es.Ref{Aggregate: events.AggregateNode, Key: "n1"}, Data: data, Actor: "a1"}
}

func TestView(t *testing.T) {
	t.Parallel()
	registered := n1(events.NodeRegistered{Node: "n1", Labels: map[string]string{"zone": "b", "rack": "1"}, ManagedBy: events.ManagedByAgent})
	relabelled := n1(events.NodeRelabelled{Labels: map[string]string{"zone": "c"}})
	retired := n1(events.NodeRetired{Reason: "old"})
	check(t, []scenario{
		{
			name: "registered", when: registered,
			then: `{"node":"n1","labels":{"rack":"1","zone":"b"},"managed-by":"agent","registered":"2026-01-01T00:01:00Z"}`,
		},
		{
			name: "relabelled", given: []projecttest.Fact{registered}, when: relabelled,
			then: `{"node":"n1","labels":{"zone":"c"},"managed-by":"agent","registered":"2026-01-01T00:01:00Z"}`,
		},
		{
			name: "the same labels again", given: []projecttest.Fact{registered, relabelled}, when: relabelled,
			then: `{"node":"n1","labels":{"zone":"c"},"managed-by":"agent","registered":"2026-01-01T00:01:00Z"}`,
		},
		{
			name: "all labels taken off", given: []projecttest.Fact{registered}, when: n1(events.NodeRelabelled{}),
			then: `{"node":"n1","managed-by":"agent","registered":"2026-01-01T00:01:00Z"}`,
		},
		{
			name: "retired", given: []projecttest.Fact{registered, relabelled}, when: retired,
			then: `{"node":"n1","labels":{"zone":"c"},"managed-by":"agent","registered":"2026-01-01T00:01:00Z","retired":"2026-01-01T00:03:00Z"}`,
		},
		{
			name: "registered after it retired", given: []projecttest.Fact{registered, retired},
			when: n1(events.NodeRegistered{Node: "n1", ManagedBy: events.ManagedByExternal}),
			then: `{"node":"n1","managed-by":"external","registered":"2026-01-01T00:03:00Z"}`,
		},
		{name: "relabelled without being known", when: relabelled, fails: perkey.ErrUntold.Error()},
		{name: "retired without being known", when: retired, fails: perkey.ErrUntold.Error()},
	})
}

func check(t *testing.T, cases []scenario) {
	t.Helper()
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			outcome := projecttest.Spec(t, events.Registry(), nodes.New).Given(c.given...).When(c.when)
			switch {
			case c.fails != "":
				outcome.ThenFails(c.fails)
			case c.then == "":
				outcome.ThenNothing()
			default:
				outcome.Then(project.Value{Key: c.when.Ref.Key, Data: []byte(c.then)})
			}
		})
	}
}

// scenario is one event with those before it, and the value it leads to: none when then is empty.
type scenario struct {
	name  string
	given []projecttest.Fact
	when  projecttest.Fact
	then  string
	fails string
}

func TestUnknownData(t *testing.T) {
	t.Parallel()
	_, err := nodes.New().Fold(es.Event{Sequence: 7, Type: "node.later.v1", Ref: es.Ref{Aggregate: "node", Key: "k1"}})
	if !errors.Is(err, es.ErrUnknownType) {
		t.Errorf("data of a newer program gave error %v", err)
	}
}
