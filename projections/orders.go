package projections

import (
	"catenary/es"
	"catenary/es/project"
	"catenary/events"
)

// Orders says where in the stream people's decisions about views are: in the aggregate of projections, under the view's name.
func Orders() *project.Orders {
	return &project.Orders{
		Instance: func(view string) es.Ref { return es.Ref{Aggregate: events.AggregateProjection, Key: es.Key(view)} },
		Read: func(e es.Event) (project.Order, bool) {
			fact, ok := e.Data.(events.Projection)
			if !ok {
				return project.Order{}, false
			}
			switch fact := fact.(type) {
			case events.ProjectionPaused:
				return project.Order{Pause: true, Reason: fact.Reason}, true
			case events.ProjectionResumed:
				return project.Order{Resume: true, Reason: fact.Reason}, true
			case events.ProjectionSkipped:
				return project.Order{Skip: fact.Event, Reason: fact.Reason}, true
			}
			return project.Order{}, false
		},
	}
}
