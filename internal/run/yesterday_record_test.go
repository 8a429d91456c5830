package run

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"catenary/audit"
	"catenary/commands"
	"catenary/es"
	"catenary/es/dispatch"
	"catenary/es/estest"
	"catenary/es/natsstore"
	"catenary/events"
	"catenary/internal/topology"
)

// lifetimes are commands that lead to every type of event, and to values of every bucket.
func lifetimes(began time.Time) []step {
	web := events.Reference{Package: &events.Package{Name: "@shop/web", Version: "1.20"}}
	artifact := events.Reference{Artifact: "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"}
	spec := func(id string) events.BuildSpec {
		return events.BuildSpec{
			ID: id, Module: "web", Repository: "git.example.org/shop", Seat: "shop", Path: "services/web", Ref: "refs/heads/main", Commit: "c0ffee",
			For: "merge", On: "builder 1", Against: []string{"db@2"}, Sources: []events.Source{{Repository: "git.example.org/lib", Ref: "v1", Paths: []string{"a"}}},
			SourceFingerprint: "f1", ReuseKey: "r-" + id,
		}
	}
	seen := func(outcome, drift string) es.Payload {
		return commands.Observe{Seen: events.Seen{Node: "node ä", Module: "web", Reference: web, Build: "b2", Reason: "so it is"}, Outcome: outcome, Drift: drift}
	}
	steps := []step{
		{payload: commands.RegisterNode{Node: "node ä", Labels: map[string]string{"zone": "a", "empty": ""}, ManagedBy: "external"}},
		{payload: commands.RegisterNode{Node: "n2"}},
		{payload: commands.RelabelNode{Node: "node ä", Labels: map[string]string{"zone": "b"}}},
		{payload: commands.RegisterModule{ModuleSpec: events.ModuleSpec{Module: "db", Repository: "git.example.org/shop"}}},
		{payload: commands.RegisterModule{ModuleSpec: events.ModuleSpec{Module: "old", Repository: "git.example.org/shop"}}},
		{payload: commands.RegisterModule{ModuleSpec: events.ModuleSpec{
			Module: "web", Repository: "git.example.org/shop", Seat: "shop", Path: "services/web", Kind: "service", Requires: []string{"db"},
			Labels:   map[string]string{"team": "blau"},
			Delivery: &events.Delivery{Drivers: []string{"files"}, Check: &events.Check{HTTP: "http://localhost/health", Interval: "10s", Successes: 2}, Timeout: "5m"},
		}}},
		{payload: commands.ChangeModule{ModuleSpec: events.ModuleSpec{Module: "old", Kind: "library"}}},
		{payload: commands.ForgetModule{Module: "old", Reason: "gone"}},
		{payload: commands.RecordCommit{Repository: "git.example.org/shop", Branch: "main", Commit: "c0ffee", Merged: began, Heard: began, Author: "ann"}},
		{payload: commands.NotAskedBuild{BuildSpec: spec("b0"), Why: "no builder"}},
		{payload: commands.AskBuild{BuildSpec: spec("b1")}},
		{payload: commands.UnknownBuild{ID: "b1", Why: "it took too long"}},
		{payload: commands.ReaskBuild{ID: "b1", Reason: "try again"}},
		{payload: commands.ClaimBuild{ID: "b1", By: "asker"}},
		{payload: commands.AskBuild{BuildSpec: spec("b2"), Reasks: "b1"}},
		{payload: commands.SucceedBuild{
			ID: "b2", Made: []events.Made{{Name: "web", Kind: "package", Reference: "@shop/web@1.20"}}, Mirrored: []string{"m1"},
			Read: []events.Read{{Repository: "git.example.org/shop", Ref: "c0ffee", Paths: []string{"x"}, Own: true}}, Manifest: events.Raw("{ \"n\": 1.0 }\n"),
		}},
		{payload: commands.PublishBuild{ID: "b2", Reference: web}},
		{payload: commands.FailBuild{ID: "b3", Failed: "a test failed", Request: &commands.RecordedBuild{Module: "web", Repository: "git.example.org/shop", Commit: "c0ffee"}}},
		{payload: commands.RecordPublication{Reference: artifact, Module: "db"}},
		{payload: commands.AttestPublication{Reference: web, Attestation: events.Attestation{Kind: "provenance", Reference: "https://example.org/a", Digest: "sha256:aa"}}},
		{payload: commands.VetoPublication{Reference: artifact, Reason: "it leaks"}},
		{payload: commands.LiftVeto{Reference: artifact, Reason: "it does not"}},
		{payload: commands.Pend{Node: "n2", Module: "web", Reference: web, Build: "b2", Reason: "for later"}},
		{payload: commands.Assign{Node: "node ä", Module: "db", Reference: artifact}},
		{payload: commands.Assign{Node: "node ä", Module: "web", Reference: web, Build: "b2", Commit: "c0ffee", Provisioning: events.Raw(`{ "size": 1e5 }`), Reason: "first"}},
	}
	for _, outcome := range []string{
		commands.OutcomeApplyFailed, commands.OutcomeApplied, commands.OutcomeUnhealthy, commands.OutcomeHealthy, commands.OutcomeDrifted,
		commands.OutcomeRemoveFailed, commands.OutcomeRemoved,
	} {
		drift := ""
		if outcome == commands.OutcomeDrifted {
			drift = "runs 1.19"
		}
		steps = append(steps, step{payload: seen(outcome, drift)})
	}
	steps = append(steps,
		step{payload: commands.Assign{Node: "node ä", Module: "web", Reference: web, Reason: "it was so before"}, options: dispatch.Options{Effective: began.AddDate(-1, 0, 0), Backfill: true}},
		step{payload: commands.Unassign{Node: "node ä", Module: "web", Reason: "done"}, options: dispatch.Options{OnBehalfOf: "ann"}},
		step{payload: commands.Move{Node: "node ä", Module: "db", To: "n2", Reason: "more room"}},
		step{payload: commands.DeclareFreeze{Name: "night", Selector: events.Selector{Nodes: []string{"n2"}}, Window: &events.Window{Start: began.Format(time.RFC3339), End: began.AddDate(1, 0, 0).Format(time.RFC3339)}, Reason: "rest"}},
		step{payload: commands.LiftFreeze{Name: "night", Reason: "morning"}},
		step{payload: commands.TakeLease{Name: "engine", Holder: "e1", TTL: "1m"}},
		step{payload: commands.ReleaseLease{Name: "engine", Holder: "e1", Reason: "bye"}},
		step{payload: commands.PauseProjection{View: topology.BucketFreezes, Reason: "look at it"}},
		step{payload: commands.ResumeProjection{View: topology.BucketFreezes, Reason: "looked"}},
		step{payload: commands.SkipProjection{View: topology.BucketFreezes, Event: 1, Reason: "to have one"}},
	)
	return append(append(steps, carried(web)...), step{payload: commands.RetireNode{Node: "node ä", Reason: "scrap"}})
}

type step struct {
	payload es.Payload
	options dispatch.Options
}

// rarities appends the events that follow a loss, or the erasure of a person, which this chain has not gone through.
func rarities(t *testing.T, c *storedChain) {
	t.Helper()
	store, err := natsstore.Open(t.Context(), c.nc, natsstore.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	registry := events.Registry()
	chain := estest.Chain{Label: "rare"}
	for _, fact := range []es.KeyedEvent{
		{Ref: commands.StartWriter{}.Ref(), Data: events.WriterLossAccepted{Found: 3, FoundHash: "9f86", Witnesses: []events.Witness{{Name: "snapshot", Sequence: 5}}, Reason: "the disk broke"}},
		{Ref: es.Ref{Aggregate: "actor", Key: "3f1f6f5b-1a22-4e4f-8a9b-3f1f6f5b1a22"}, Data: events.ActorForgotten{Reason: "she asked for it"}},
	} {
		name, body, err := registry.Encode(fact.Data)
		if err != nil {
			t.Fatal(err)
		}
		after := chain.Head
		m := chain.Seal(&es.Event{Ref: fact.Ref, Type: name, Version: 1, Body: body})
		if err := es.Wait(t.Context(), store.Append(t.Context(), after, []es.Message{m})); err != nil {
			t.Fatal(err)
		}
	}
}

// record runs a chain of today through the commands, and keeps what it has stored.
func record(t *testing.T, dir string) {
	t.Helper()
	c := startStored(t)
	rarities(t, c)
	c.write(t)
	client := commands.NewClient(dispatch.NewClient(c.nc))
	var last uint64
	for i, s := range lifetimes(time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)) {
		answer, err := client.Send(t.Context(), s.payload, s.options)
		if err != nil || answer.Status != es.StatusAccepted {
			t.Fatalf("step %d: answer %+v (%+v), error %v", i+1, answer, answer.Error, err)
		}
		last = answer.Sequence
	}
	c.project(t)
	p, err := audit.NewClient(c.nc, nil).Position(t.Context(), audit.PositionQuestion{Sequence: last, Wait: audit.Duration(audit.MaxWait)})
	if err != nil || !p.Reached {
		t.Fatalf("positions %+v, error %v", p, err)
	}
	store, err := natsstore.Open(t.Context(), c.nc, natsstore.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	var all []stored
	for m, err := range store.Read(t.Context(), 0) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, stored{Stream: topology.EventStream, Subject: m.Subject, Header: m.Header, Data: m.Body})
	}
	for _, bucket := range topology.ChainBuckets() {
		all = append(all, c.raw(t, topology.BucketStream(bucket))...)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	writeLines(t, filepath.Join(dir, "stored.jsonl"), all)
}

func writeLines[T any](t *testing.T, path string, all []T) {
	t.Helper()
	var text []byte
	for _, v := range all {
		line, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		text = append(append(text, line...), '\n')
	}
	if err := os.WriteFile(path, text, 0o644); err != nil {
		t.Fatal(err)
	}
}

// typesIn lists the event types of what is stored.
func typesIn(all []stored) []string {
	var types []string
	for _, s := range all {
		if s.Stream == topology.EventStream {
			types = append(types, s.Header[es.HeaderType]...)
		}
	}
	slices.Sort(types)
	return slices.Compact(types)
}
