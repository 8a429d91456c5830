package events

// Node is a fact about a node.
//
//sumtype:decl
type Node interface{ isNode() }

// Who acts on a node.
const (
	// ManagedByAgent means that our agent applies what is assigned.
	ManagedByAgent = "agent"
	// ManagedByExternal means that somebody else does, and we only record it.
	ManagedByExternal = "external"
)

// NodeRegistered says that a node is known from now on, or again after it was retired.
type NodeRegistered struct {
	Node      string            `json:"node"`
	Labels    map[string]string `json:"labels,omitempty"`
	ManagedBy string            `json:"managed-by"`
}

// NodeRelabelled replaces a node's labels.
type NodeRelabelled struct {
	Labels map[string]string `json:"labels,omitempty"`
}

// NodeRetired says that a node is gone; its assignments ended in the same append.
type NodeRetired struct {
	Reason string `json:"reason,omitempty"`
}

func (NodeRegistered) isNode() {}
func (NodeRelabelled) isNode() {}
func (NodeRetired) isNode()    {}
