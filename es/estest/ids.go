package estest

import (
	"encoding/binary"
	"sync"
	"time"

	"github.com/google/uuid"
)

// IDs gives ids that are the same in every run: UUIDs of version 7 whose time is the clock's and whose random part
// counts. It is safe for use by many goroutines.
type IDs struct {
	now func() time.Time

	mu sync.Mutex
	n  uint64
}

// NewIDs returns ids that take their time from a clock.
func NewIDs(now func() time.Time) *IDs { return &IDs{now: now} }

// Next gives the next id.
func (i *IDs) Next() string {
	i.mu.Lock()
	i.n++
	n := i.n
	i.mu.Unlock()
	var id uuid.UUID
	binary.BigEndian.PutUint64(id[:8], uint64(i.now().UnixMilli())<<16)
	binary.BigEndian.PutUint64(id[8:], n)
	id[6] = 0x70              // version 7
	id[8] = 0x80 | id[8]&0x3F // the RFC's variant
	return id.String()
}
