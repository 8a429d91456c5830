package projections

import (
	"catenary/es"
	"catenary/es/project"
	"catenary/events"
)

// Losses says where the stream tells that somebody has accepted a loss of events: in the writer's own history. What was accepted names what
// has seen the lost events.
func Losses() *project.Losses {
	return &project.Losses{
		Instance: es.Ref{Aggregate: events.AggregateWriter, Key: events.WriterKey},
		Read: func(e es.Event) (project.Loss, bool) {
			accepted, ok := e.Data.(events.WriterLossAccepted)
			if !ok {
				return project.Loss{}, false
			}
			return project.Loss{Found: accepted.Found, Reason: accepted.Reason, Contradicts: func(bucket string, at project.Position, source project.Source) bool {
				for _, w := range accepted.Witnesses {
					if w.Name == events.BucketWitness(bucket) && w.Sequence == at.Sequence && (w.Event == "" || w.Event == source.ID) {
						return true
					}
				}
				return false
			}}, true
		},
	}
}
