package simulate

import (
	"hash/fnv"
	"math/rand/v2"
	"time"
)

// luck is the chance of one engine, one node, or all people. Each has its own, so that what is left out of a run changes little of the rest.
type luck struct{ *rand.Rand }

func (s *simulation) luckOf(who string) luck {
	l, ok := s.lucks[who]
	if !ok {
		h := fnv.New64a()
		h.Write([]byte(who)) // it never fails
		l = luck{rand.New(rand.NewPCG(s.config.Seed, h.Sum64()))}
		s.lucks[who] = l
	}
	return l
}

// percent is true so often.
func (l luck) percent(n int) bool { return l.IntN(100) < n }

// span gives a time between two.
func (l luck) span(least, most time.Duration) time.Duration {
	return least + time.Duration(l.Int64N(int64(most-least)+1))
}
