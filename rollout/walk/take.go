package walk

import (
	"github.com/cockroachdb/errors"

	"catenary/commands"
	"catenary/es"
	"catenary/events"
)

// Take folds a stored message. What concerns no rollout is told by its subject and type, and not even read. It gives errors for a message
// that concerns rollouts and can't be read, or does not fit: nothing may be done on the state after that.
func (s *State) Take(m es.Message) error {
	ref, err := es.ParseSubject(m.Subject)
	if err != nil {
		return errors.Wrapf(err, "message %d", m.Sequence)
	}
	if !s.concerned(ref, m.Header[es.HeaderType]) {
		s.position = m.Sequence
		return nil
	}
	e, err := s.registry.Decode(m)
	if err != nil {
		return err
	}
	return s.Apply(e)
}

// Kinds lists the kinds of aggregates whose events have to be taken in to know what is so. Those of others are signs that a track may have
// something to plan.
func Kinds() []string {
	return []string{
		events.AggregateRollout, events.AggregateAssignment, events.AggregateNode, events.AggregateModule, events.AggregatePublication, events.AggregateFreeze,
		events.AggregateMerge, events.AggregateTrack, events.AggregateLease,
	}
}

// Passed says that of the kinds that have to be taken in all events up to a sequence have been.
func (s *State) Passed(sequence uint64) { s.position = max(s.position, sequence) }

// concerned says whether an event is to be read. Nothing but its subject and type is looked at.
func (s *State) concerned(ref es.Ref, types []string) bool {
	if len(types) != 1 {
		return true // it is no event, which reading it says
	}
	switch ref.Aggregate {
	case events.AggregateRollout, events.AggregateNode, events.AggregateModule, events.AggregateFreeze, events.AggregateMerge, events.AggregateTrack:
		return true
	case events.AggregateLease:
		return ref == commands.LeaseRef(commands.EngineLease)
	case events.AggregatePublication:
		s.planning = true
		return types[0] != events.TypePublicationRecorded && types[0] != events.TypePublicationAttested
	case events.AggregateBuild:
		s.planning = s.planning || types[0] == events.TypeBuildPublished
	case events.AggregateStrategy:
		s.planning = true
	case events.AggregateAssignment:
		switch types[0] {
		case events.TypeAssignmentApplied, events.TypeAssignmentApplyFailed, events.TypeAssignmentHealthy, events.TypeAssignmentUnhealthy,
			events.TypeAssignmentRemoved, events.TypeAssignmentRemoveFailed, events.TypeAssignmentDrifted:
			// A report is about what a rollout told, or it is about nothing of ours.
			p, ok := s.places[ref.Key]
			return ok && p.rollout != "" && s.rollouts[p.rollout] != nil
		}
		return true
	}
	return false
}

// Apply folds an event. It gives errors for a fact about a rollout that does not fit what was before it.
func (s *State) Apply(e es.Event) error {
	err := s.fold(e)
	s.position = e.Sequence
	return errors.Wrapf(err, "event %d of type %s on %s", e.Sequence, e.Type, e.Ref)
}

func (s *State) fold(e es.Event) error {
	if e.Backfill {
		return nil // it adds to history, and changes nothing that stands
	}
	switch fact := e.Data.(type) {
	case events.Rollout:
		return s.foldRollout(e, fact)
	case events.Assignment:
		s.foldAssignment(e, fact)
	case events.Node:
		s.foldNode(e.Ref.Key, fact)
		s.touchAll()
	case events.Module:
		s.foldModule(e.Ref.Key, fact)
		s.touchAll()
	case events.Publication:
		s.foldPublication(e.Ref.Key, fact)
		s.planning = true
	case events.Build:
		if _, published := fact.(events.BuildPublished); published {
			s.planning = true
		}
	case events.StrategyFact:
		s.planning = true
	case events.Freeze:
		s.foldFreeze(e.Ref.Key, fact)
		s.planning = true
		s.touchAll()
	case events.Lease:
		s.foldLease(e, fact)
	case events.Track:
		s.foldTrack(e.Ref.Key, fact)
		s.planning = true
	case events.Merge:
		s.foldMerge(e, fact)
		s.planning = true
	}
	return nil
}

func (s *State) foldNode(key string, fact events.Node) {
	n := s.node(key)
	switch e := fact.(type) {
	case events.NodeRegistered:
		n.name, n.labels, n.known, n.retired, n.external = e.Node, e.Labels, true, false, e.ManagedBy == events.ManagedByExternal
	case events.NodeRelabelled:
		n.labels = e.Labels
	case events.NodeRetired:
		n.retired = true
	}
}

func (s *State) foldModule(key string, fact events.Module) {
	switch e := fact.(type) {
	case events.ModuleRegistered:
		s.module(key).labels = e.Labels
	case events.ModuleChanged:
		s.module(key).labels = e.Labels
	case events.ModuleEnded:
		s.module(key).labels = nil
	}
}

func (s *State) foldPublication(key string, fact events.Publication) {
	switch fact.(type) {
	case events.PublicationVetoed:
		s.publication(key).vetoed = true
	case events.PublicationVetoLifted:
		s.publication(key).vetoed = false
	case events.PublicationRecorded, events.PublicationAttested:
		return
	}
	s.touchAll()
}

func (s *State) foldLease(e es.Event, fact events.Lease) {
	if e.Ref != commands.LeaseRef(commands.EngineLease) {
		return
	}
	switch f := fact.(type) {
	case events.LeaseTaken:
		s.lease = Lease{Holder: f.Holder, Fence: e.Sequence}
		if e.Command.Actor != "" {
			s.engines[e.Command.Actor] = true
		}
	case events.LeaseReleased:
		s.lease = Lease{}
	}
}

func (s *State) foldTrack(key string, fact events.Track) {
	switch e := fact.(type) {
	case events.TrackDeclared:
		s.plansOn(key, e.On)
	case events.TrackChanged:
		s.plansOn(key, e.On)
	case events.TrackEnded:
		delete(s.tracks, key)
	}
}

func (s *State) plansOn(key, on string) {
	if on == events.OnManual {
		delete(s.tracks, key)
		return
	}
	s.tracks[key] = true
}

func (s *State) foldMerge(e es.Event, fact events.Merge) {
	key := e.Ref.Key
	switch f := fact.(type) {
	case events.MergeHeld:
		m := at(s.merges, key)
		m.Repository, m.Branch, m.Commit, m.version = f.Repository, f.Branch, f.Commit, e.Version
		delete(s.placed, key)
	case events.MergeTaken:
		if m, ok := s.merges[key]; ok {
			m.rollout, m.version = f.Rollout, e.Version
			delete(s.placed, key)
		}
	case events.MergeReleased:
		if m, ok := s.merges[key]; ok {
			s.answered(&m.asked)
			delete(s.merges, key)
			delete(s.placed, key)
		}
	}
}

func (s *State) foldAssignment(e es.Event, fact events.Assignment) {
	switch f := fact.(type) {
	case events.AssignmentAssigned:
		s.tell(e, &f.Told)
	case events.AssignmentMovedIn:
		s.tell(e, &f.Told)
	case events.AssignmentPended:
		// It is meant for the node, and does not stand.
		s.place(e.Ref.Key).tell(e.Sequence, nil, f.Rollout)
	case events.AssignmentEnded:
		s.place(e.Ref.Key).tell(e.Sequence, nil, f.Rollout)
	case events.AssignmentMovedOut:
		s.place(e.Ref.Key).tell(e.Sequence, nil, "")
	case events.AssignmentApplied:
		s.see(e, f.Seen, applied)
		return
	case events.AssignmentApplyFailed:
		s.see(e, f.Seen, applyFailed)
		return
	case events.AssignmentHealthy:
		s.see(e, f.Seen, healthy)
		return
	case events.AssignmentUnhealthy:
		s.see(e, f.Seen, unhealthy)
		return
	case events.AssignmentRemoved:
		s.see(e, f.Seen, removed)
		return
	case events.AssignmentRemoveFailed:
		s.see(e, f.Seen, removeFailed)
		return
	case events.AssignmentDrifted:
		s.see(e, f.Seen, drifted)
		return
	}
	for _, st := range s.place(e.Ref.Key).steps {
		st.rollout.dirty = true
	}
}

func (s *State) tell(e es.Event, told *events.Told) {
	v := &events.Version{Reference: told.Reference, Build: told.Build, Commit: told.Commit}
	s.place(e.Ref.Key).tell(e.Sequence, s.version(v), told.Rollout)
}

// see takes in a report, and lets the steps it is about be looked at.
func (s *State) see(e es.Event, seen events.Seen, said report) {
	p := s.place(e.Ref.Key)
	if !p.see(seen, said, e.Effective) {
		return
	}
	for _, st := range p.steps {
		if st.rollout.id != p.rollout {
			continue
		}
		st.rollout.dirty = true
		if st.phase == pending {
			st.rollout.ends = append(st.rollout.ends, st)
		}
	}
}
