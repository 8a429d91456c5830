//go:build failpoints

package integration

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"catenary/audit"
	"catenary/events"
	"catenary/internal/failpoint"
)

// TestAgentWithAWrongClock lets the clock of a node be wrong, by more and less and the other way round, while it is told one version after another
// and its agent is started again and again. It ends at what is told now, goes back to a release that it has kept, and what it reports comes once,
// in the order in which it was told, recorded at the writer's time.
func TestAgentWithAWrongClock(t *testing.T) {
	c := on(t, shared)
	c.node("wrong-clock")
	c.module("clocked")
	a := newAgent(t, c, "wrong-clock")
	clock := filepath.Join(a.dir, "clock")
	a.env = []string{failpoint.EnvClock + "=" + clock}
	var artifacts []string
	begun := time.Now().Add(-time.Second)
	for n, off := range []time.Duration{time.Hour, -time.Hour, 0, -40 * 24 * time.Hour, 10 * 365 * 24 * time.Hour, time.Minute, -time.Hour, time.Hour} {
		if err := os.WriteFile(clock, []byte(off.String()), 0o600); err != nil {
			t.Fatal(err)
		}
		if n%2 == 0 {
			if n > 0 {
				a.kill()
			}
			a.start()
		}
		version := fmt.Sprint(n)
		artifacts = append(artifacts, a.artifact(version))
		c.must(0, "assign", "wrong-clock", "clocked", "--artifact", artifacts[n])
		c.must(0, "node", "wait-converged", "wrong-clock", "--timeout", "60s")
		if found := a.runs("clocked"); found != version {
			t.Fatalf("off by %s it runs %q, want %s", off, found, version)
		}
	}
	back := len(artifacts) - 2
	c.must(0, "assign", "wrong-clock", "clocked", "--artifact", artifacts[back])
	c.must(0, "node", "wait-converged", "wrong-clock", "--timeout", "60s")
	if found := a.runs("clocked"); found != fmt.Sprint(back) {
		t.Errorf("back, it runs %q, want %d", found, back)
	}
	a.stop()
	var told, done []uint64
	for _, item := range slices.Backward(read[[]audit.Item](c, "log", "--node", "wrong-clock", "--module", "clocked", "--events")) {
		if item.Recorded.Before(begun) || item.Recorded.After(time.Now()) || !item.Effective.IsZero() && !item.Effective.Equal(item.Recorded) {
			t.Errorf("event %d is of %s, recorded at %s", item.Sequence, item.Effective, item.Recorded)
		}
		switch item.Type {
		case events.TypeAssignmentAssigned:
			told = append(told, item.Sequence)
		case events.TypeAssignmentApplied:
			var seen events.AssignmentApplied
			if err := json.Unmarshal(item.Data, &seen); err != nil {
				t.Fatal(err)
			}
			done = append(done, seen.Source)
		}
	}
	if len(told) != len(artifacts)+1 || !slices.Equal(told, done) {
		t.Errorf("it was told by events %v, and has reported %v", told, done)
	}
}
