package dispatch

import (
	"testing"

	"catenary/es"
)

func TestChoose(t *testing.T) {
	synced, unsynced, replicated := Durability{Fsync: true}, Durability{}, Durability{Fsync: true, Replicas: 3}
	tests := []struct {
		name                         string
		durability                   Durability
		commands, messages, inFlight int
		want                         mode
	}{
		{"nothing waits", synced, 0, 0, 0, hold},
		{"one append at a time", unsynced, 1, 1, 1, hold},
		{"a lone command", synced, 1, 1, 0, single},
		{"a lone command of many events", synced, 1, 900, 0, single},
		{"too few to share a batch", synced, 15, 15, 0, single},
		{"enough to share a sync", synced, 16, 16, 0, batch},
		{"few commands of many events", synced, 2, 16, 0, batch},
		{"without sync a batch must be larger", unsynced, 63, 63, 0, single},
		{"and pays then too", unsynced, 64, 64, 0, batch},
		{"replicas always share a round", replicated, 2, 2, 0, batch},
	}
	for _, tt := range tests {
		if got := choose(tt.durability, tt.commands, tt.messages, tt.inFlight); got != tt.want {
			t.Errorf("%s: got %d, want %d", tt.name, got, tt.want)
		}
	}
}

func TestFitsKeepsCommandsWhole(t *testing.T) {
	jobsOf := func(sizes ...int) (jobs []*job) {
		for _, n := range sizes {
			jobs = append(jobs, &job{messages: make([]es.Message, n)})
		}
		return jobs
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
