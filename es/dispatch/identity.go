package dispatch

import (
	"crypto/sha256"
	"fmt"
	"time"

	"github.com/google/uuid"

	"catenary/es"
)

// How long command ids that carry a time are good for. They are remembered a day longer than they are accepted, so that no
// accepted id can have been forgotten.
const (
	IDAcceptedFor   = 30 * 24 * time.Hour
	IDRememberedFor = 31 * 24 * time.Hour
	// IDMaxAhead is how far a sender's clock may be ahead of the writer's.
	IDMaxAhead = 5 * time.Minute
)

// identity is (aggregate, key, id) of a command, shortened to what memory must hold for ever.
type identity [16]byte

func identify(ref es.Ref, id string) identity {
	h := sha256.New()
	fmt.Fprintf(h, "%d.%d.%s%s%s", len(ref.Aggregate), len(ref.Key), ref.Aggregate, ref.Key, id)
	var out identity
	copy(out[:], h.Sum(nil))
	return out
}

// place is where a command's events stand: the first one's sequence, and how many there are.
type place uint64

const placeCountBits = 11 // a command has at most es.MaxAppendMessages events

func placeOf(sequence uint64, count int) place {
	return place(sequence<<placeCountBits | uint64(count))
}

func (p place) sequence() uint64 { return uint64(p) >> placeCountBits }
func (p place) count() int       { return int(p & (1<<placeCountBits - 1)) }
func (p place) last() uint64     { return p.sequence() + uint64(p.count()) - 1 }

// memory knows which commands have events. Ids that carry a time (UUIDv7) are forgotten after their horizon; all others
// never are.
type memory struct {
	timed   map[int64]map[identity]place // by day of the id
	forever map[identity]place
}

func newMemory() *memory {
	return &memory{timed: map[int64]map[identity]place{}, forever: map[identity]place{}}
}

func day(t time.Time) int64 { return t.Unix() / (24 * 60 * 60) }

func (m *memory) find(ref es.Ref, id string) (place, bool) {
	k := identify(ref, id)
	if t, ok := idTime(id); ok {
		p, ok := m.timed[day(t)][k]
		return p, ok
	}
	p, ok := m.forever[k]
	return p, ok
}

func (m *memory) put(ref es.Ref, id string, p place) {
	k := identify(ref, id)
	t, ok := idTime(id)
	if !ok {
		m.forever[k] = p
		return
	}
	ids := m.timed[day(t)]
	if ids == nil {
		ids = map[identity]place{}
		m.timed[day(t)] = ids
	}
	ids[k] = p
}

func (m *memory) drop(ref es.Ref, id string) {
	k := identify(ref, id)
	if t, ok := idTime(id); ok {
		delete(m.timed[day(t)], k)
		return
	}
	delete(m.forever, k)
}

// forget drops whole days of ids that are past the horizon.
func (m *memory) forget(now time.Time) {
	for d := range m.timed {
		if d < day(now.Add(-IDRememberedFor)) {
			delete(m.timed, d)
		}
	}
}

// idTime gives the time a UUIDv7 carries. Ids of other versions carry none that counts.
func idTime(id string) (time.Time, bool) {
	u, err := uuid.Parse(id)
	if err != nil || u.Version() != 7 {
		return time.Time{}, false
	}
	sec, nsec := u.Time().UnixTime()
	return time.Unix(sec, nsec), true
}

// checkID refuses ids that can't be kept apart for ever. The form must be canonical, since the same id written in two ways
// would be two commands.
func checkID(id string, now time.Time) *es.Refusal {
	u, err := uuid.Parse(id)
	if err != nil || u.String() != id {
		return &es.Refusal{Status: es.StatusInvalid, Code: "bad-id", Message: fmt.Sprintf("command id %.80q is not a UUID in its canonical form", id),
			Hint: "use a new UUIDv7, or a UUIDv8 made of a hash when the same input must give the same command"}
	}
	t, ok := idTime(id)
	switch {
	case ok && t.After(now.Add(IDMaxAhead)):
		return &es.Refusal{Status: es.StatusInvalid, Code: "id-ahead", Message: fmt.Sprintf("command id %s is from %s, which is more than %s ahead of %s",
			id, t.UTC().Format(time.RFC3339), IDMaxAhead, now.UTC().Format(time.RFC3339)), Hint: "set the sender's clock"}
	case ok && t.Before(now.Add(-IDAcceptedFor)):
		return &es.Refusal{Status: es.StatusExpired, Code: "id-expired", Message: fmt.Sprintf("command id %s is from %s: ids with a time are good for %d days, after which it can't be told whether the command was done",
			id, t.UTC().Format(time.RFC3339), IDAcceptedFor/(24*time.Hour)), Hint: "look whether it was done; if not, send it with a new id"}
	}
	return nil
}
