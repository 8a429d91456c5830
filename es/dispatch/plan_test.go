package dispatch

import (
	"testing"

	"pgregory.net/rapid"

	"catenary/es"
)

func TestChoose(t *testing.T) {
	synced, unsynced, replicated := priorCosts(Durability{Fsync: true}).now, priorCosts(Durability{}).now, priorCosts(Durability{Fsync: true, Replicas: 3}).now
	fastDisk, slowBatch := synced, unsynced
	fastDisk.single = 40e-6
	slowBatch.single = 30e-6
	tests := []struct {
		name   string
		prices prices
		load   load
		want   mode
	}{
		{"nothing waits", synced, load{pipelines: true}, hold},
		{"nothing waits, but much is on its way", synced, load{inFlight: 500, pipelines: true}, hold},

		{"synced: a lone command", synced, load{commands: 1, messages: 1, pipelines: true}, single},
		{"synced: a second one, while the first is on its way", synced, load{commands: 1, messages: 1, inFlight: 1, pipelines: true}, single},
		{"synced: a burst of few", synced, load{commands: 4, messages: 4, inFlight: 7, pipelines: true}, single},
		{"synced: enough to share a sync, were all to wait", synced, load{commands: 4, messages: 4, inFlight: 8, pipelines: true}, hold},
		{"synced: enough waits", synced, load{commands: 12, messages: 12, pipelines: true}, batch},
		{"synced: enough waits, and more is queued", synced, load{commands: 12, messages: 12, queued: 1, pipelines: true}, hold},
		{"synced: few are decided, many queued", synced, load{commands: 1, messages: 1, queued: 200, pipelines: true}, hold},
		{"synced: a full batch waits for nobody", synced, load{commands: 900, messages: 1000, queued: 200, pipelines: true}, batch},
		{"synced: one batch at a time", synced, load{commands: 900, messages: 1000, inFlight: 1, pipelines: true}, hold},
		{"synced: many have just been answered", synced, load{commands: 1, messages: 1, expected: 200, pipelines: true}, hold},
		{"synced: and have come back", synced, load{commands: 200, messages: 200, expected: 200, pipelines: true}, batch},
		{"synced: few have just been answered", synced, load{commands: 1, messages: 1, expected: 5, pipelines: true}, single},
		{"synced, on a disk that syncs at once", fastDisk, load{commands: 100, messages: 100, pipelines: true}, single},
		{"synced, on a disk that syncs at once, under great load", fastDisk, load{commands: 300, messages: 300, pipelines: true}, batch},

		{"unsynced: a pipeline", unsynced, load{commands: 1, messages: 1, queued: 64, inFlight: 900, pipelines: true}, single},
		{"unsynced: the pipeline is full", unsynced, load{commands: 1, messages: 1, inFlight: maxInFlight, pipelines: true}, hold},
		{"unsynced: where singles are dear", slowBatch, load{commands: 1000, messages: 1000, pipelines: true}, batch},

		{"a lone command of many events", unsynced, load{commands: 1, messages: 900, several: true, pipelines: true}, single},
		{"a command of many events waits for the pipeline", unsynced, load{commands: 1, messages: 2, several: true, inFlight: 1, pipelines: true}, hold},
		{"what comes behind it shares its batch", unsynced, load{commands: 3, messages: 4, several: true, pipelines: true}, batch},
		{"and so does what is queued", unsynced, load{commands: 3, messages: 4, several: true, queued: 1, pipelines: true}, hold},
		{"more than fits into a batch", unsynced, load{commands: 2, messages: 1800, several: true, queued: 1, pipelines: true}, batch},

		{"replicas: a lone command", replicated, load{commands: 1, messages: 1}, single},
		{"replicas: one append at a time", replicated, load{commands: 1, messages: 1, inFlight: 1}, hold},
		{"replicas: two share a round", replicated, load{commands: 2, messages: 2}, batch},
	}
	for _, tt := range tests {
		if got := choose(tt.prices, tt.load); got != tt.want {
			t.Errorf("%s: got %d, want %d", tt.name, got, tt.want)
		}
	}
}

// TestChooseNeverStalls demands that something goes out whenever nothing is on its way and nothing more can be waited for.
func TestChooseNeverStalls(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		price := rapid.Float64Range(1e-7, 10)
		p := prices{single: price.Draw(t, "single"), batch: price.Draw(t, "batch"), message: price.Draw(t, "message")}
		l := load{commands: rapid.IntRange(1, 1000).Draw(t, "commands"), pipelines: rapid.Bool().Draw(t, "pipelines")}
		l.messages = l.commands + rapid.IntRange(0, 3000).Draw(t, "more")
		l.several = l.messages > l.commands
		if choose(p, l) == hold {
			t.Fatalf("%+v is held", l)
		}
		l.queued, l.expected, l.messages = rapid.IntRange(0, 9000).Draw(t, "queued"), rapid.IntRange(0, 1000).Draw(t, "expected"), max(l.messages, es.MaxAppendMessages)
		if choose(p, l) == hold {
			t.Fatalf("%+v is held, though it fills a batch", l)
		}
	})
}

func TestFitsKeepsCommandsWhole(t *testing.T) {
	jobsOf := func(sizes ...int) (jobs []*job) {
		for _, n := range sizes {
			jobs = append(jobs, &job{messages: make([]es.Message, n)})
		}
		return jobs
	}
	apart := jobsOf(1, 1, 1)
	apart[1].apart = true
	if got := fits(apart); got != 1 {
		t.Errorf("%d commands fit before one that goes alone", got)
	}
	tests := []struct {
		sizes []int
		want  int
	}{
		{[]int{1}, 1},
		{[]int{1000}, 1},
		{[]int{999, 1, 1}, 2},
		{[]int{999, 2}, 1},
		{[]int{500, 400, 200}, 2},
	}
	for _, tt := range tests {
		if got := fits(jobsOf(tt.sizes...)); got != tt.want {
			t.Errorf("%v: %d commands fit, want %d", tt.sizes, got, tt.want)
		}
	}
}

func TestPlace(t *testing.T) {
	for _, n := range []uint64{1, 2, 1 << 40} {
		for _, count := range []int{1, 2, es.MaxAppendMessages} {
			p := placeOf(n, count)
			if p.sequence() != n || p.count() != count || p.last() != n+uint64(count)-1 {
				t.Errorf("place of %d events at %d: %d at %d", count, n, p.count(), p.sequence())
			}
		}
	}
}
