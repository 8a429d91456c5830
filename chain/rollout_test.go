package chain_test

import (
	"encoding/json"
	"testing"

	"github.com/cockroachdb/errors"
	"github.com/google/go-cmp/cmp"

	"catenary/chain"
	"catenary/es"
	"catenary/events"
)

func TestRolloutJoinsItsSteps(t *testing.T) {
	t.Parallel()
	b := newBuckets()
	version := &events.Version{Reference: events.Reference{Artifact: "sha256:1"}}
	put(b, chain.Rollouts, 1, 0, chain.Rollout{ID: "r.1", State: chain.RolloutRunning, Changed: 3, Tiers: []chain.Tier{{Name: "z first"}, {Name: "a rest"}, {Name: "nobody"}}})
	put(b, chain.Rollouts, 1, 1, chain.Rollout{ID: "r2"})
	put(b, chain.Steps, 1, 2, chain.Step{Rollout: "r.1", Tier: "a rest", Node: "n1", Module: "web", After: version})
	put(b, chain.Steps, 1, 3, chain.Step{Rollout: "r.1", Tier: "a rest", Node: "n1", Module: "db", Before: version})
	put(b, chain.Steps, 1, 4, chain.Step{Rollout: "r.1", Tier: "z first", Node: "n2", Module: "web", After: version})
	put(b, chain.Steps, 2, 5, chain.Step{Rollout: "r.1", Tier: "z first", Node: "n2", Module: "web", After: version, Sent: noon, Reported: noon, Outcome: events.StepDone})
	put(b, chain.Steps, 1, 6, chain.Step{Rollout: "r2", Tier: "z first", Node: "n9", Module: "web"})
	whole, err := b.reader().Rollout(t.Context(), "r.1")
	if err != nil {
		t.Fatal(err)
	}
	body, err := json.Marshal(whole)
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"id":"r.1","state":"running","tiers":[{"name":"z first","nodes":["n2"]},{"name":"a rest","nodes":["n1"]},{"name":"nobody","nodes":[]}],` +
		`"steps":[{"tier":"z first","node":"n2","module":"web","sent":"2026-05-07T12:00:00Z","reported":"2026-05-07T12:00:00Z","state":"done"},` +
		`{"tier":"a rest","node":"n1","module":"db","state":"waiting"},{"tier":"a rest","node":"n1","module":"web","state":"waiting"}],` +
		`"changed":[{"node":"n2","module":"web","after":{"artifact":"sha256:1"}},{"node":"n1","module":"db","before":{"artifact":"sha256:1"}},{"node":"n1","module":"web","after":{"artifact":"sha256:1"}}]}`
	if diff := cmp.Diff(want, string(body)); diff != "" {
		t.Errorf("the whole (-want +got):\n%s", diff)
	}
	if _, err := b.reader().Rollout(t.Context(), "r9"); !errors.Is(err, es.ErrNotFound) {
		t.Errorf("a rollout that is not there: %v", err)
	}
}
