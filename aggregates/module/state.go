package module

import "catenary/aggregates/content"

// Status is how a module stands.
type Status uint8

// The statuses of a module.
const (
	Unknown Status = iota
	Registered
	Ended
)

// State is what rules need of a module.
type State struct {
	Status Status
	// Requires names the modules that must stand on a node with this one.
	Requires []string
	// Labels are the module's labels; nil when there are none.
	Labels map[string]string
	// Content stands for all that is said of the module.
	Content content.Digest
}

// World is what deciding about a module needs of everything else.
type World interface {
	// NodesOf gives the first few nodes, in order, that the module stands on, and the number of all.
	NodesOf(module string, most int) (nodes []string, total int)
}
