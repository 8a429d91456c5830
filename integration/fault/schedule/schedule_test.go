package schedule_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"catenary/integration/fault/schedule"
	"catenary/internal/failpoint"
)

func shape(servers int) schedule.Shape {
	return schedule.Shape{Servers: servers, Span: 8 * time.Second, Faults: 20, Disk: true, Views: []string{"chain-assignments", "chain-nodes"}}
}

// TestSeedGivesAll draws twice, and demands that faults have their places, targets and an end.
func TestSeedGivesAll(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		seed, servers := rapid.Uint64().Draw(t, "seed"), rapid.SampledFrom([]int{1, 3}).Draw(t, "servers")
		s := schedule.Of(seed, shape(servers))
		if diff := cmp.Diff(s, schedule.Of(seed, shape(servers))); diff != "" {
			t.Fatalf("drawn twice (-first +second):\n%s", diff)
		}
		known := slices.Concat(schedule.Servers(servers), schedule.Writers(), schedule.Engines(), schedule.Agents(), []string{schedule.Server, schedule.Projector, schedule.Clients})
		for i, f := range s.Faults {
			switch {
			case f.At < 0 || f.At+f.For > s.Shape.Span:
				t.Errorf("%s is not over after %s", f, s.Shape.Span)
			case i > 0 && f.At < s.Faults[i-1].At:
				t.Errorf("%s comes too late", f)
			case !slices.Contains(known, f.Target):
				t.Errorf("%s strikes nobody", f)
			}
			if got, err := failpoint.ParseOrders(f.Orders.String()); err != nil || len(got) != len(f.Orders) {
				t.Errorf("%s: the process would not understand its orders: %v", f, err)
			}
		}
	})
}

// TestAllKindsAreDrawn demands that no kind of fault, harm or point is forgotten.
func TestAllKindsAreDrawn(t *testing.T) {
	t.Parallel()
	kinds, harms, points := map[schedule.Kind]bool{}, map[string]bool{}, map[failpoint.Name]bool{}
	for seed := range uint64(400) {
		for _, servers := range []int{1, 3} {
			for _, f := range schedule.Of(seed, shape(servers)).Faults {
				kinds[f.Kind], harms[f.Harm] = true, true
				for _, o := range f.Orders {
					points[o.Name] = true
				}
			}
		}
	}
	for _, k := range []schedule.Kind{
		schedule.Kill, schedule.Stop, schedule.Point, schedule.Cut, schedule.Mute, schedule.Deaf, schedule.Slow, schedule.Lost, schedule.Clock, schedule.Damage,
		schedule.Full, schedule.ReadOnly, schedule.Poison, schedule.Storm, schedule.Apart, schedule.Roll, schedule.Leader, schedule.Rebuild,
	} {
		if !kinds[k] {
			t.Errorf("%s is never drawn", k)
		}
	}
	for _, h := range []string{
		schedule.HarmAudit, schedule.HarmBucket, schedule.HarmCopy, schedule.HarmSnapshots, schedule.HarmIndex, schedule.HarmEvents, schedule.HarmEventsEarlier,
		schedule.HarmStore, schedule.HarmServer, schedule.HarmAgentForgotten,
	} {
		if !harms[h] {
			t.Errorf("harm to %s is never drawn", h)
		}
	}
	for _, p := range failpoint.Points() {
		if !points[p.Name] {
			t.Errorf("point %s is never drawn", p.Name)
		}
	}
}
