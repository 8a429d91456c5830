package hammer

import (
	"math/bits"
	"sync/atomic"
	"time"
)

// Each power of two is cut into 2^precisionBits parts, so that what is read from a [Latency] is at most 3 % off.
const (
	precisionBits = 5
	parts         = 1 << precisionBits
)

// Latency is a histogram of durations, of fixed size however many they are. It is safe for many goroutines; its zero value
// is ready.
type Latency struct {
	counts [(64 - precisionBits) * parts]atomic.Uint64
	total  atomic.Uint64
}

// Add counts a duration. Those below zero count as zero.
func (l *Latency) Add(d time.Duration) {
	l.counts[slot(uint64(max(d, 0)))].Add(1)
	l.total.Add(1)
}

// Count is how many durations were added.
func (l *Latency) Count() uint64 { return l.total.Load() }

// Quantile gives the duration that the given part of all does not exceed, such as 0.99; 0 for an empty histogram.
func (l *Latency) Quantile(q float64) time.Duration {
	total := l.total.Load()
	if total == 0 {
		return 0
	}
	rank := min(uint64(q*float64(total)), total-1)
	for i := range l.counts {
		n := l.counts[i].Load()
		if rank < n {
			return time.Duration(middle(i))
		}
		rank -= n
	}
	return 0
}

// slot gives a value's place. Values below parts have one each; above, each power of two has parts places.
func slot(v uint64) int {
	if v < parts {
		return int(v)
	}
	shift := bits.Len64(v) - precisionBits - 1
	return shift*parts + int(v>>shift)
}

// middle is the value in the middle of a place.
func middle(slot int) uint64 {
	if slot < 2*parts {
		return uint64(slot)
	}
	shift := slot/parts - 1
	return (uint64(slot%parts+parts)*2 + 1) << shift >> 1
}
