package simulate

import (
	"fmt"
	"math/rand/v2"
	"time"

	"catenary/commands"
	"catenary/es"
	"catenary/events"
	"catenary/rollout/simulate/check"
)

// versions is how many versions of each module there are before anything is merged.
const versions = 4

// fleet is what there is before anything happens.
type fleet struct {
	nodes   []fleetNode
	modules []fleetModule
	tracks  []fleetTrack
}

type fleetNode struct {
	name, ring string
	external   bool
}

// fleetModule is a module, and the modules before it that it requires.
type fleetModule struct {
	name, repository string
	requires         []string
}

type fleetTrack struct {
	events.TrackSpec
	walks events.Strategy
}

func fleetOf(seed uint64) fleet {
	chance := rand.New(rand.NewPCG(seed, 1))
	f := fleet{modules: []fleetModule{{name: "db", repository: "infra"}, {name: "web", repository: "shop"}}}
	if chance.IntN(3) == 0 {
		f.modules = append(f.modules, fleetModule{name: "jobs", repository: "shop"})
	}
	for i := range f.modules {
		for _, o := range f.modules[:i] {
			if chance.IntN(3) == 0 {
				f.modules[i].requires = append(f.modules[i].requires, o.name)
			}
		}
	}
	rings := []string{"1", "2", "3"}
	for i := range 3 + chance.IntN(6-len(f.modules)) {
		f.nodes = append(f.nodes, fleetNode{name: fmt.Sprintf("n%d", i+1), ring: rings[min(i, chance.IntN(3))], external: i > 2 && chance.IntN(8) == 0})
	}
	if chance.IntN(2) == 0 {
		f.tracks = f.someTracks(chance)
	}
	return f
}

// someTracks gives tracks that carry what comes of each repository.
func (f fleet) someTracks(chance *rand.Rand) []fleetTrack {
	ons := []string{events.OnMerge, events.OnMerge, events.OnPublication, events.OnManual}
	list := []fleetTrack{{TrackSpec: events.TrackSpec{Track: "shop", Strategy: "to-shop", On: ons[chance.IntN(len(ons))]}, walks: f.strategy(chance)}}
	for _, m := range f.modules[1:] {
		list[0].Modules = append(list[0].Modules, m.name)
	}
	switch chance.IntN(3) {
	case 0: // both repositories on one
		list[0].Modules = append([]string{f.modules[0].name}, list[0].Modules...)
	case 1:
		list = append(list, fleetTrack{
			TrackSpec: events.TrackSpec{Track: "infra", Modules: []string{f.modules[0].name}, Strategy: "to-infra", On: ons[chance.IntN(len(ons))]}, walks: f.strategy(chance),
		})
	}
	return list
}

// settle gives the commands that make the fleet: everything is at version 1.
func (f fleet) settle() ([]es.Payload, error) {
	var list []es.Payload
	for _, m := range f.modules {
		list = append(list, commands.RegisterModule{ModuleSpec: events.ModuleSpec{
			Module: m.name, Repository: m.repository, Labels: map[string]string{"kind": m.name}, Requires: m.requires,
		}})
		for v := versions; v > 0; v-- { // what stands is the newest
			list = append(list, commands.RecordPublication{Reference: version(m.name, v), Module: m.name})
		}
	}
	for _, n := range f.nodes {
		by := events.ManagedByAgent
		if n.external {
			by = events.ManagedByExternal
		}
		list = append(list, commands.RegisterNode{Node: n.name, Labels: map[string]string{"ring": n.ring}, ManagedBy: by})
		for _, m := range f.modules {
			list = append(list, commands.Assign{Node: n.name, Module: m.name, Reference: version(m.name, 1)})
		}
	}
	for _, t := range f.tracks {
		raw, _, err := t.walks.Canonical()
		if err != nil {
			return nil, err
		}
		list = append(list, commands.DeclareStrategy{Name: t.Strategy, Strategy: raw}, commands.DeclareTrack{TrackSpec: t.TrackSpec})
	}
	return list, nil
}

// strategy gives a way to walk.
func (f fleet) strategy(chance *rand.Rand) events.Strategy {
	pick := func(list ...string) string { return list[chance.IntN(len(list))] }
	var st events.Strategy
	for i := range 1 + chance.IntN(3) {
		t := events.Tier{
			Name: fmt.Sprintf("t%d", i+1), Bake: pick("", "", "10s", "1m"), Delay: pick("", "10s", "1m"), Timeout: pick("30s", "2m", "5m"),
			Gate: pick("", "", events.GateHealthy), Offline: pick("", events.OfflineWait, events.OfflineSkip, events.OfflineFail),
			Approval: chance.IntN(5) == 0, Retry: chance.IntN(3),
		}
		t.Selector.Labels = map[string]string{"ring": fmt.Sprint(i + 1)}
		if n := chance.IntN(4); n > 0 {
			t.Concurrency = events.ShareOf(n)
		}
		switch chance.IntN(4) {
		case 0:
			t.FailureBudget = events.ShareOf(1 + chance.IntN(2))
		case 1:
			t.FailureBudget = events.PercentOf(30)
		}
		if chance.IntN(3) == 0 {
			t.Limit = &events.Limit{PerMinute: 1 + chance.IntN(8), Burst: chance.IntN(3)}
		}
		switch chance.IntN(4) {
		case 0, 1:
			t.Semaphores = []string{"db:1"}
		case 2:
			t.Semaphores = []string{"db:1", ":2"}
		}
		st.Tiers = append(st.Tiers, t)
	}
	st.Tiers[len(st.Tiers)-1].Selector = events.Selector{}
	if chance.IntN(2) == 0 {
		st.Rollback = events.RollbackAutomatic
	}
	for i, to := range f.modules[1:] {
		if chance.IntN(2) == 0 {
			from := f.modules[chance.IntN(i+1)]
			st.Edges = append(st.Edges, events.Edge{From: events.Place{Module: from.name}, To: events.Place{Module: to.name}, Notify: chance.IntN(4) > 0})
		}
	}
	return st
}

// apart lets the modules on one node wait for those on another, besides: a plan for that may be refused.
func (f fleet) apart(st events.Strategy, chance *rand.Rand) events.Strategy {
	place := func() events.Place {
		p := events.Place{Node: f.nodes[chance.IntN(len(f.nodes))].name}
		if chance.IntN(2) == 0 {
			p.Module = f.modules[chance.IntN(len(f.modules))].name
		}
		return p
	}
	st.Edges = append(st.Edges, events.Edge{From: place(), To: place(), Notify: chance.IntN(2) == 0})
	return st
}

func toldOf(u *unit, at time.Time) check.Told {
	return check.Told{StepName: u.name, Source: u.told.source, At: at}
}
