package dispatch

import (
	"maps"
	"slices"
	"time"

	"catenary/es"
)

// memory knows which commands have events. Ids that carry a time (UUIDv7) are forgotten after their horizon; all others
// never are.
type memory struct {
	// first is the earliest day whose ids are still remembered.
	first   int64
	timed   map[int64]*places // by day of the id
	forever *places
}

func newMemory() *memory { return &memory{timed: map[int64]*places{}, forever: &places{}} }

func day(t time.Time) int64 { return t.Unix() / (24 * 60 * 60) }

func (m *memory) find(ref es.Ref, id string) (place, bool) {
	if ids := m.idsOf(id); ids != nil {
		return ids.find(identify(ref, id))
	}
	return 0, false
}

func (m *memory) put(ref es.Ref, id string, p place) {
	if ids := m.makeIDsOf(id); ids != nil {
		ids.put(identify(ref, id), p)
	}
}

// extend takes in one more event of a command. A command's events stand side by side; a base may end between them.
func (m *memory) extend(ref es.Ref, id string, sequence uint64) {
	ids := m.makeIDsOf(id)
	if ids == nil {
		return
	}
	k, p := identify(ref, id), placeOf(sequence, 1)
	if before, ok := ids.find(k); ok && before.last()+1 == sequence {
		p = placeOf(before.sequence(), before.count()+1)
	}
	ids.put(k, p)
}

// drop forgets a command that was put and turned out to have left no events.
func (m *memory) drop(ref es.Ref, id string) {
	if ids := m.idsOf(id); ids != nil {
		ids.drop(identify(ref, id))
	}
}

// forget drops whole days of ids that are past the horizon.
func (m *memory) forget(now time.Time) {
	m.first = day(now.Add(-IDRememberedFor))
	maps.DeleteFunc(m.timed, func(d int64, _ *places) bool { return d < m.first })
}

// idsOf gives the places among which an id is looked for, or nil.
func (m *memory) idsOf(id string) *places {
	if t, ok := idTime(id); ok {
		return m.timed[day(t)]
	}
	return m.forever
}

// makeIDsOf gives the places among which an id is kept, or nil for one that is past the horizon.
func (m *memory) makeIDsOf(id string) *places {
	t, ok := idTime(id)
	if !ok {
		return m.forever
	}
	d := day(t)
	ids := m.timed[d]
	if ids == nil && d >= m.first {
		ids = &places{}
		m.timed[d] = ids
	}
	return ids
}

// days gives the days of the timed ids, in order.
func (m *memory) days() []int64 { return slices.Sorted(maps.Keys(m.timed)) }

// places knows where the events of commands stand: those that came with a snapshot in a packed list, and those since then.
type places struct {
	packed packedPlaces
	since  map[identity]place
}

func (s *places) find(k identity) (place, bool) {
	if p, ok := s.since[k]; ok {
		return p, true
	}
	return s.packed.find(k)
}

func (s *places) put(k identity, p place) {
	if s.since == nil {
		s.since = map[identity]place{}
	}
	s.since[k] = p
}

func (s *places) drop(k identity) { delete(s.since, k) }
