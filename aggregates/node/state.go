package node

// Status is how a node stands.
type Status uint8

// The statuses of a node.
const (
	Unknown Status = iota
	Registered
	Retired
)

// State is what rules need of a node.
type State struct {
	Status Status
	// External says that somebody else acts on the node.
	External bool
	// Labels are the node's labels; nil when there are none.
	Labels map[string]string
}

// World is what deciding about a node needs of everything else.
type World interface {
	// AssignedOn gives the modules that stand or wait on the node, in order.
	AssignedOn(node string) []string
}
