package events

// Actor is a fact about whoever stands behind an opaque id. It never holds a name.
//
//sumtype:decl
type Actor interface{ isActor() }

// ActorForgotten says that the names behind the id were erased. What the id did stays on record.
type ActorForgotten struct {
	// Reason says why, without the name.
	Reason string `json:"reason"`
}

func (ActorForgotten) isActor() {}
