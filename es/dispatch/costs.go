package dispatch

import (
	"math"
	"time"
)

// costs are what appends have lately cost, as moving averages. The zero value is of no use: see [priorCosts].
type costs struct {
	now, prior prices
	// some are single messages that are not in the averages yet, and the seconds that they took: what lands together in one
	// moment and not in the next tells something only in sum.
	some        int
	someSeconds float64
}

// prices are in seconds.
type prices struct {
	single  float64 // a message that is an append of its own, in a pipeline where there can be one
	batch   float64 // a batch, whatever its size
	message float64 // each message of a batch
}

// priorCosts are what appends cost on an ordinary disk: where the averages start, and what an average goes back to while
// nothing is measured for it.
func priorCosts(d Durability) costs {
	const us, ms = 1e-6, 1e-3
	var p prices
	switch {
	case d.pipelines() && d.Fsync:
		p = prices{single: 450 * us, batch: 5 * ms, message: 14 * us}
	case d.pipelines():
		p = prices{single: 14 * us, batch: 4.5 * ms, message: 13 * us}
	case d.Fsync:
		p = prices{single: 1.9 * ms, batch: 1.7 * ms, message: 25 * us}
	default:
		p = prices{single: 250 * us, batch: 300 * us, message: 10 * us}
	}
	return costs{now: p, prior: p}
}

// How fast the averages follow.
const (
	// sample is how many single messages make one measurement, or sampleSeconds, whichever comes first.
	sample        = 64
	sampleSeconds = 0.02
	// learning is the weight of one measurement: after a change of the disk's speed a dozen tell the new one.
	learning = 1. / 12
	// surprise bounds one measurement to so many times what was expected: one hiccup of a disk is no new speed.
	surprise = 4
	// forgetting is how far a measurement of one mode, for each sample of its messages, moves the other mode's average
	// towards what it is likely to be by now: as many times its prior as the measured one is of its own. So a mode that looked
	// dear on a bad moment is tried again, and a machine that is slow in all does not make the mode look cheap that is not
	// measured.
	forgetting = 1. / 50
	// alike bounds how many times slower a machine can be in all; beyond it, it is the mode.
	alike = 16
)

// singles says what so many messages cost as appends of their own.
func (p prices) singles(messages int) float64 { return float64(messages) * p.single }

// batched says what so many messages cost as one batch.
func (p prices) batched(messages int) float64 { return p.batch + float64(messages)*p.message }

// sawSingles takes in how long so many single messages took.
func (c *costs) sawSingles(messages int, took time.Duration) {
	c.some += messages
	c.someSeconds += took.Seconds()
	if c.some < sample && c.someSeconds < sampleSeconds {
		return
	}
	each := within(c.someSeconds/float64(c.some), c.now.single, surprise)
	c.now.single += learning * (each - c.now.single)
	slower := within(c.now.single/c.prior.single, 1, alike)
	part := forgotten(c.some)
	c.now.batch += part * (slower*c.prior.batch - c.now.batch)
	c.now.message += part * (slower*c.prior.message - c.now.message)
	c.some, c.someSeconds = 0, 0
}

// sawBatch takes in how long a batch took. What was wrong with the expectation is put down to the batch itself and to its
// messages by their parts in it: small batches tell what a batch costs, large ones what a message does.
func (c *costs) sawBatch(messages int, took time.Duration) {
	expected := c.now.batched(messages)
	wrong := learning * (within(took.Seconds(), expected, surprise)/expected - 1)
	fixed := c.now.batch / expected
	c.now.batch *= 1 + wrong*fixed
	c.now.message *= 1 + wrong*(1-fixed)
	slower := within(c.now.batched(messages)/c.prior.batched(messages), 1, alike)
	c.now.single += forgotten(messages) * (slower*c.prior.single - c.now.single)
}

// forgotten is how far so many messages of one mode move the other mode's averages.
func forgotten(messages int) float64 {
	return 1 - math.Pow(1-forgetting, max(1, float64(messages)/sample))
}

// within bounds a measurement to so many times what was expected, or as small a part of it.
func within(measured, expected, times float64) float64 {
	return min(max(measured, expected/times), expected*times)
}
