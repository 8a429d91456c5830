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

// versions is how many versions of each module there are.
const versions = 4

// fleet is what there is before anything happens.
type fleet struct {
	nodes   []fleetNode
	modules []string
	// requires says that the second module requires the first.
	requires bool
}

type fleetNode struct {
	name, ring string
	external   bool
}

func fleetOf(seed uint64) fleet {
	chance := rand.New(rand.NewPCG(seed, 1))
	f := fleet{modules: []string{"db", "web"}, requires: chance.IntN(3) == 0}
	rings := []string{"1", "2", "3"}
	for i := range 3 + chance.IntN(4) {
		f.nodes = append(f.nodes, fleetNode{name: fmt.Sprintf("n%d", i+1), ring: rings[min(i, chance.IntN(3))], external: i > 2 && chance.IntN(8) == 0})
	}
	return f
}

// settle gives the commands that make the fleet: everything is at version 1.
func (f fleet) settle() []es.Payload {
	var list []es.Payload
	for i, m := range f.modules {
		spec := events.ModuleSpec{Module: m, Labels: map[string]string{"kind": m}}
		if f.requires && i > 0 {
			spec.Requires = f.modules[:i]
		}
		list = append(list, commands.RegisterModule{ModuleSpec: spec})
		for v := 1; v <= versions; v++ {
			list = append(list, commands.RecordPublication{Reference: version(m, v), Module: m})
		}
	}
	for _, n := range f.nodes {
		by := events.ManagedByAgent
		if n.external {
			by = events.ManagedByExternal
		}
		list = append(list, commands.RegisterNode{Node: n.name, Labels: map[string]string{"ring": n.ring}, ManagedBy: by})
		for _, m := range f.modules {
			list = append(list, commands.Assign{Node: n.name, Module: m, Reference: version(m, 1)})
		}
	}
	return list
}

func toldOf(u *unit, at time.Time) check.Told {
	return check.Told{StepName: u.name, Source: u.told.source, At: at}
}
