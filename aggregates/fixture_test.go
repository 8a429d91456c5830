package aggregates_test

import (
	"catenary/commands"
	"catenary/es"
	"catenary/events"
)

func nodes(names ...string) []es.KeyedEvent {
	var facts []es.KeyedEvent
	for _, n := range names {
		facts = append(facts, on(commands.NodeRef(n), events.NodeRegistered{Node: n, ManagedBy: events.ManagedByAgent}))
	}
	return facts
}

func modules(names ...string) []es.KeyedEvent {
	var facts []es.KeyedEvent
	for _, n := range names {
		facts = append(facts, requiring(n))
	}
	return facts
}

func requiring(name string, requires ...string) es.KeyedEvent {
	return on(commands.ModuleRef(name), events.ModuleRegistered{ModuleSpec: events.ModuleSpec{Module: name, Requires: requires}})
}

func pkg(name, version string) events.Reference {
	return events.Reference{Package: &events.Package{Name: name, Version: version}}
}

func artifact(digest string) events.Reference { return events.Reference{Artifact: digest} }

// assigned is the fact that a node was told to run a version of a module.
func assigned(node, module, version string, requiredBy ...string) es.KeyedEvent {
	told := events.Told{Node: node, Module: module, RequiredBy: requiredBy}
	if version != "" {
		told.Reference = pkg(module, version)
	}
	return on(commands.AssignmentRef(node, module), events.AssignmentAssigned{Told: told})
}

func ended(node, module string) es.KeyedEvent {
	return on(commands.AssignmentRef(node, module), events.AssignmentEnded{Node: node, Module: module})
}

// assign is the command for it.
func assign(node, module, version string) commands.Assign {
	return commands.Assign{Node: node, Module: module, Reference: pkg(module, version)}
}

func unassign(node, module string) commands.Unassign {
	return commands.Unassign{Node: node, Module: module}
}

func published(ref events.Reference, build, commit, module string) es.KeyedEvent {
	return on(commands.PublicationRef(ref), events.PublicationRecorded{Reference: ref, Build: build, Commit: commit, Module: module})
}

func vetoed(ref events.Reference, reason string) es.KeyedEvent {
	return on(commands.PublicationRef(ref), events.PublicationVetoed{Reason: reason})
}

func spec(id string) events.BuildSpec {
	return events.BuildSpec{ID: id, Module: "web", Repository: "shop", Commit: "c1"}
}

func asked(id string) es.KeyedEvent {
	return on(commands.BuildRef(id), events.BuildAsked{BuildSpec: spec(id)})
}

func succeeded(id string) es.KeyedEvent {
	return on(commands.BuildRef(id), events.BuildSucceeded{})
}
