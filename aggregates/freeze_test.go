package aggregates_test

import (
	"slices"
	"testing"
	"time"
	_ "time/tzdata" // the test must find its zones on every machine

	"github.com/cockroachdb/errors"

	"catenary/aggregates"
	"catenary/aggregates/freeze"
	"catenary/commands"
	"catenary/events"
)

func TestFreeze(t *testing.T) {
	t.Parallel()
	declare := commands.DeclareFreeze{Name: "nights", Selector: events.Selector{Modules: []string{"web"}}, Reason: "sleep"}
	other := declare
	other.Reason = "rest"
	ref := commands.FreezeRef("nights")
	declared := on(ref, events.FreezeDeclared{Name: "nights", Selector: declare.Selector, Reason: "sleep"})
	given(t).
		when(commands.LiftFreeze{Name: "nights"}).rejected("unknown-freeze", "nights").
		when(declare).then(declared).
		again().unchanged().
		when(other).rejected("declared", "lift it first").
		when(commands.LiftFreeze{Name: "nights", Reason: "morning"}).then(on(ref, events.FreezeLifted{Reason: "morning"})).
		again().unchanged().
		when(declare).then(declared)
}

func TestFreezeDoesNotBlockWhatIsAssignedByHand(t *testing.T) {
	t.Parallel()
	given(t, also(nodes("n1"), modules("web"))...).
		when(commands.DeclareFreeze{Name: "all"}).accepted().
		when(assign("n1", "web", "r1")).accepted()
}

func TestFrozen(t *testing.T) {
	t.Parallel()
	friday := &events.Window{Recurring: &events.Recurring{Days: []string{"fri"}, From: "22:00", To: "06:00", Zone: "Europe/Berlin"}}
	s := given(t).
		when(commands.DeclareFreeze{Name: "all"}).accepted().
		when(commands.LiftFreeze{Name: "all"}).accepted().
		when(commands.DeclareFreeze{Name: "web ä", Selector: events.Selector{Modules: []string{"web", "api"}}}).accepted().
		when(commands.DeclareFreeze{Name: "n1", Selector: events.Selector{Nodes: []string{"n1"}}}).accepted().
		when(commands.DeclareFreeze{Name: "gold", Selector: events.Selector{Labels: map[string]string{"tier": "gold", "zone": "a"}}}).accepted().
		when(commands.DeclareFreeze{Name: "friday night", Window: friday}).accepted()
	night := time.Date(2026, 5, 2, 1, 0, 0, 0, time.UTC)
	gold := map[string]string{"tier": "gold", "zone": "a", "team": "blue"}
	cases := []struct {
		name  string
		place freeze.Place
		at    time.Time
		want  []string
	}{
		{"nothing selects it", freeze.Place{Node: "n2", Module: "db"}, day, nil},
		{"its module", freeze.Place{Node: "n2", Module: "api"}, day, []string{"web ä"}},
		{"its node and module", freeze.Place{Node: "n1", Module: "web"}, day, []string{"n1", "web ä"}},
		{"labels of the node and of the module", freeze.Place{Node: "n2", Module: "db", Labels: []map[string]string{{"tier": "gold"}, {"zone": "a"}}}, day, []string{"gold"}},
		{"all labels", freeze.Place{Node: "n2", Module: "db", Labels: []map[string]string{gold}}, day, []string{"gold"}},
		{"one label of two", freeze.Place{Node: "n2", Module: "db", Labels: []map[string]string{{"tier": "gold"}}}, day, nil},
		{"the night", freeze.Place{Node: "n2", Module: "db"}, night, []string{"friday night"}},
	}
	for _, c := range cases {
		got, err := s.world.Frozen(c.place, c.at)
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%s: got %v, %v, want %v", c.name, got, err, c.want)
		}
	}
}

func TestFrozenByAnUnknownZoneIsAnError(t *testing.T) {
	t.Parallel()
	lost := errors.New("no such zone")
	s := givenWorld(t, aggregates.Config{Zones: func(string) (*time.Location, error) { return nil, lost }}).
		when(commands.DeclareFreeze{Name: "f", Window: &events.Window{Recurring: &events.Recurring{From: "01:00", To: "02:00", Zone: "UTC"}}}).accepted()
	if names, err := s.world.Frozen(freeze.Place{Node: "n1", Module: "web"}, day); err == nil {
		t.Errorf("got %v, want an error: whether it is frozen can't be told", names)
	}
}
