package dispatch

import (
	"crypto/sha256"
	"fmt"
	"strconv"
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

// identify gives the identity of a command. It stands in snapshots: another way to make it needs another [baseFormat].
func identify(ref es.Ref, id string) identity {
	b := make([]byte, 0, 512)
	b = strconv.AppendInt(b, int64(len(ref.Aggregate)), 10)
	b = append(b, '.')
	b = strconv.AppendInt(b, int64(len(ref.Key)), 10)
	b = append(b, '.')
	b = append(b, ref.Aggregate...)
	b = append(b, ref.Key...)
	b = append(b, id...)
	sum := sha256.Sum256(b)
	return identity(sum[:len(identity{})])
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
	if u == uuid.Nil {
		return &es.Refusal{Status: es.StatusInvalid, Code: "bad-id", Message: "command id " + id + " is the nil UUID, which every sender that sets none would share",
			Hint: "use a new UUIDv7, or leave the id out and one is made"}
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
