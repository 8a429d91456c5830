package events

// Projection is a fact about a projection: what people decided about how it goes on. Projections follow these facts; what
// they make of all others is no fact of the chain.
//
//sumtype:decl
type Projection interface{ isProjection() }

// ProjectionPaused says that a projection is to fold no further.
type ProjectionPaused struct {
	View   string `json:"view"`
	Reason string `json:"reason"`
}

// ProjectionResumed says that a projection is to go on from where it stands.
type ProjectionResumed struct {
	Reason string `json:"reason,omitempty"`
}

// ProjectionSkipped says that one event is none of the projection's: whatever it says, nothing is folded of it, now and in
// every later fold.
type ProjectionSkipped struct {
	View string `json:"view"`
	// Event is the sequence of the event that is left out.
	Event  uint64 `json:"event"`
	Reason string `json:"reason"`
}

func (ProjectionPaused) isProjection()  {}
func (ProjectionResumed) isProjection() {}
func (ProjectionSkipped) isProjection() {}
