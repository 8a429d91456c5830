package dispatch

import (
	"math/rand/v2"
	"testing"
	"time"
)

// TestCostsFollowTheDisk feeds the averages with what a disk unlike the expected one takes, and one hiccup a hundred appends:
// they come to tell what the next append will take.
func TestCostsFollowTheDisk(t *testing.T) {
	t.Parallel()
	real := prices{single: 2e-3, batch: 20e-3, message: 30e-6}
	c := priorCosts(Durability{Fsync: true})
	random := rand.New(rand.NewPCG(1, 2))
	took := func(seconds float64) time.Duration {
		if random.IntN(100) == 0 {
			seconds *= 50
		}
		return time.Duration(seconds * (0.8 + 0.4*random.Float64()) * float64(time.Second))
	}
	for range 2000 {
		if n := 1 + random.IntN(1000); random.IntN(2) == 0 {
			c.sawBatch(n, took(real.batch+float64(n)*real.message))
		} else {
			c.sawSingles(1+n%8, took(real.single*float64(1+n%8)))
		}
	}
	near := func(what string, got, want float64) {
		if got < want*0.7 || got > want*1.5 {
			t.Errorf("%s is thought to cost %.6f s, it costs %.6f", what, got, want)
		}
	}
	near("a single", c.now.singles(1), real.single)
	near("a batch of 2", c.now.batched(2), real.batch+2*real.message)
	near("a batch of 200", c.now.batched(200), real.batch+200*real.message)
	near("a batch of 1000", c.now.batched(1000), real.batch+1000*real.message)
}

// A machine that is slow in all makes no mode look cheap.
func TestCostsOfASlowMachine(t *testing.T) {
	t.Parallel()
	c := priorCosts(Durability{})
	for range 100_000 {
		c.sawSingles(1, 140*time.Microsecond)
		if l := (load{commands: 64, messages: 64, pipelines: true}); choose(c.now, l) != single {
			t.Fatalf("batches are chosen at %+v", c.now)
		}
	}
}

// What lands in one moment, and not for a while before, counts in sum.
func TestCostsOfUnevenLandings(t *testing.T) {
	t.Parallel()
	c := priorCosts(Durability{})
	for range 3000 {
		c.sawSingles(1, 990*time.Microsecond)
		c.sawSingles(99, 10*time.Microsecond)
	}
	if got := c.now.singles(1); got < 9e-6 || got > 11e-6 {
		t.Errorf("a single is thought to cost %.7f s, it costs 0.00001", got)
	}
}

// A mode that once looked dear is tried again.
func TestCostsForget(t *testing.T) {
	t.Parallel()
	c := priorCosts(Durability{Fsync: true})
	many := load{commands: 100, messages: 100, pipelines: true}
	for range 200 {
		c.sawBatch(100, 5*time.Second)
	}
	if choose(c.now, many) != single {
		t.Fatalf("batches are chosen at %+v", c.now)
	}
	for range 30_000 { // a dozen seconds of them
		c.sawSingles(1, 450*time.Microsecond)
	}
	if choose(c.now, many) != batch {
		t.Errorf("batches are not tried again at %+v", c.now)
	}
}
