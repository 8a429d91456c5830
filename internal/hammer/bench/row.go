package main

import (
	"fmt"
	"slices"
	"time"

	"catenary/embedded"
)

// target is what a row must reach.
type target struct {
	// ratio is ours over bare that must be reached; 0 for none.
	ratio float64
	// rate is a rate of ours that is enough whatever the ratio; 0 for none.
	rate float64
	// p99 is what 99 of 100 latencies must not exceed while the rate is reached; 0 for none.
	p99 time.Duration
	// latency says that the ratio is of latencies, and must not be exceeded.
	latency bool
}

func (t target) String() string {
	switch {
	case t.p99 > 0 && t.rate == 0:
		return fmt.Sprintf("p99 at most %v", t.p99)
	case t.p99 > 0:
		return fmt.Sprintf("p99 at most %v at %s/s", t.p99, thousands(t.rate))
	case t.latency:
		return fmt.Sprintf("at most %.1f ×", t.ratio)
	case t.ratio == 0 && t.rate == 0:
		return ""
	case t.rate == 0 && t.ratio < 1:
		return fmt.Sprintf("at least %.0f %%", 100*t.ratio)
	case t.rate == 0:
		return fmt.Sprintf("at least %.0f ×", t.ratio)
	case t.ratio == 0:
		return fmt.Sprintf("at least %s/s", thousands(t.rate))
	default:
		return fmt.Sprintf("at least %s/s or %.0f %%", thousands(t.rate), 100*t.ratio)
	}
}

// commandRow is a row about commands: so many callers that wait for their answers.
type commandRow struct {
	name    string
	on      ground
	callers int
	// inFlight is how many commands of one caller wait; 0 means that it waits for each.
	inFlight int
	// hot sends all commands to one aggregate instead of 20,000.
	hot bool
	// bus sends them over the bus, in the people's account, instead of handing them to the writer.
	bus  bool
	bare baseline
	target
}

// The grounds.
var (
	synced     = ground{embedded.DurabilityFsync, 1}
	unsynced   = ground{embedded.DurabilityInterval, 1}
	replicated = ground{embedded.DurabilityInterval, 3}
)

// commandRows are the rows about commands. Rows on one ground stand together: they share a server.
func commandRows() []commandRow {
	return []commandRow{
		{name: "256 callers", on: synced, callers: 256, bare: oneByOne, target: target{ratio: 8}},
		{name: "1,024 callers", on: synced, callers: 1024, bare: oneByOne, target: target{ratio: 15}},
		{name: "1 caller, latency", on: synced, callers: 1, bare: oneByOne, target: target{ratio: 1.3, latency: true}},
		{name: "256 callers, over the bus", on: synced, callers: 256, bus: true, bare: oneByOne},
		{name: "64 callers", on: unsynced, callers: 64, bare: pipelined, target: target{ratio: 0.6}},
		{name: "64 callers, one hot aggregate", on: unsynced, callers: 64, hot: true, bare: pipelined, target: target{ratio: 0.6}},
		{name: "1,024 callers", on: unsynced, callers: 1024, bare: pipelined},
		{name: "64 callers, over the bus", on: unsynced, callers: 64, bus: true, bare: pipelined},
		{name: "1,024 callers", on: replicated, callers: 1024, bare: batches, target: target{ratio: 0.6, rate: 40_000}},
	}
}

// pair is one run of a row and of its bare counterpart, one after the other.
type pair struct{ ours, bare figure }

// line is a row as it stands in the table.
type line struct {
	name, ground string
	callers      int
	ours, bare   figure
	unit         string
	// ratio is the median of the pairs' ratios, not the ratio of the medians: what slows a pair down slows both of it.
	ratio    float64
	bareName string
	target   target
	// note says why a line has no figures, or what else it tells.
	note string
}

// passes says whether a line reaches its target, and whether it has one.
func (l line) passes() (passes, judged bool) {
	switch {
	case l.note != "" && l.ours.processed == 0, l.target == target{}:
		return false, false
	case l.target.p99 > 0:
		return l.ours.p99 <= l.target.p99 && l.ours.rate >= l.target.rate, true
	case l.target.latency:
		return l.ratio <= l.target.ratio, true
	}
	return l.target.ratio > 0 && l.ratio >= l.target.ratio || l.target.rate > 0 && l.ours.rate >= l.target.rate, true
}

// summed makes a line's figures of its pairs.
func (l line) summed(pairs []pair) line {
	l.ours, l.bare = medians(pairs, func(p pair) figure { return p.ours }), medians(pairs, func(p pair) figure { return p.bare })
	l.ratio = median(pairs, func(p pair) float64 {
		over, under := p.ours.rate, p.bare.rate
		if l.target.latency {
			over, under = float64(p.ours.p50), float64(p.bare.p50)
		}
		if under == 0 {
			return 0
		}
		return over / under
	})
	return l
}

func medians(pairs []pair, of func(pair) figure) figure {
	return figure{
		rate:      median(pairs, func(p pair) float64 { return of(p).rate }),
		p50:       time.Duration(median(pairs, func(p pair) float64 { return float64(of(p).p50) })),
		p99:       time.Duration(median(pairs, func(p pair) float64 { return float64(of(p).p99) })),
		cpu:       time.Duration(median(pairs, func(p pair) float64 { return float64(of(p).cpu) })),
		processed: int(median(pairs, func(p pair) float64 { return float64(of(p).processed) })),
	}
}

// median gives the middle value; of an even number of them the lower one in the middle.
func median(pairs []pair, of func(pair) float64) float64 {
	if len(pairs) == 0 {
		return 0
	}
	values := make([]float64, len(pairs))
	for i, p := range pairs {
		values[i] = of(p)
	}
	slices.Sort(values)
	return values[(len(values)-1)/2]
}
