package aggregates_test

import (
	"fmt"
	"time"

	"catenary/aggregates"
	"catenary/commands"
	"catenary/es"
	"catenary/events"
)

func ExampleWorld_Decide() {
	world, err := aggregates.NewWorld(aggregates.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	noon := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	send := func(p es.Payload) {
		facts, err := world.Decide(es.Command{Ref: p.Ref(), Verb: p.Verb(), Data: p, Received: noon})
		for i, f := range facts {
			e := es.Event{Sequence: uint64(i + 1), Ref: f.Ref, Version: world.Version(f.Ref) + 1, Recorded: noon, Effective: noon, Data: f.Data}
			if err := world.Apply(e); err != nil {
				fmt.Println(err)
			}
			fmt.Printf("%s: %T\n", f.Ref, f.Data)
		}
		if err != nil {
			fmt.Println(err)
		}
	}

	send(commands.RegisterNode{Node: "n1"})
	send(commands.RegisterModule{ModuleSpec: events.ModuleSpec{Module: "web", Requires: []string{"db"}}})
	send(commands.Assign{Node: "n1", Module: "web", Reference: events.Reference{Artifact: "sha256:1"}})
	send(commands.RegisterModule{ModuleSpec: events.ModuleSpec{Module: "db"}})
	send(commands.Assign{Node: "n1", Module: "web", Reference: events.Reference{Artifact: "sha256:1"}})
	send(commands.ForgetModule{Module: "web"})
	// Output:
	// node n1: events.NodeRegistered
	// module web: events.ModuleRegistered
	// rejected (unknown-module): module db is not known, but web requires it — register it with module register
	// module db: events.ModuleRegistered
	// assignment n1.web: events.AssignmentAssigned
	// assignment n1.db: events.AssignmentAssigned
	// rejected (module-stands): module web stands on 1 node: n1 — unassign it there first
}
