package main

import (
	"context"
	"crypto/sha256"
	"fmt"
	"log/slog"
	"time"

	"github.com/cockroachdb/errors"
	"github.com/google/uuid"

	"catenary/agent/driver/sim"
	"catenary/commands"
	"catenary/es"
	"catenary/es/dispatch"
	"catenary/events"
	"catenary/internal/natsconn"
	"catenary/internal/run"
)

// demoDays is how long ago the demo's history begins.
const demoDays = 14

// demoStep is one command of the demo, and how long after the beginning it became true.
type demoStep struct {
	after   time.Duration
	payload es.Payload
	// person is on whose behalf it was done.
	person string
}

// bringDemo sends the demo's commands like anybody's. Their ids are always the same, so a second start changes nothing. What
// does not fit a chain that holds other things already is passed over.
func (a *app) bringDemo(ctx context.Context, s *session, log *slog.Logger) error {
	begin := a.Now().UTC().Truncate(time.Hour).AddDate(0, 0, -demoDays)
	var last uint64
	fresh := 0
	for i, step := range demoSteps() {
		r, err := commands.Request(step.payload, dispatch.Options{
			ID: demoID(i), Effective: begin.Add(step.after), OnBehalfOf: step.person,
		})
		if err != nil {
			return errors.Wrapf(err, "demo: step %d", i+1)
		}
		answer, err := s.bus.Send(ctx, r)
		if err != nil {
			return errors.Wrapf(err, "demo: step %d", i+1)
		}
		switch {
		case statusCode(answer.Status) != exitOK:
			skipped := &notDone{what: fmt.Sprintf("%s %s", r.Aggregate, r.Verb), answer: answer}
			log.Warn("demo: a step does not fit this chain", "step", i+1, "reason", skipped)
		case answer.Status == es.StatusAccepted && !answer.Repeated:
			fresh++
		}
		last = max(last, answer.Sequence)
	}
	log.Info("demo", "recorded", fresh, "there already", len(demoSteps())-fresh)
	a.awaitShown(ctx, s, last, defaultWait)
	return nil
}

// demoID gives the id of a step: a hash, since an id with a time would be too old some day.
func demoID(step int) string {
	return uuid.NewHash(sha256.New(), uuid.NameSpaceURL, fmt.Appendf(nil, "catenary demo 1 step %d", step), 8).String()
}

// demoSteps is the demo's history. Its order is part of the ids: change it, and the ids' number above.
func demoSteps() []demoStep {
	const day = 24 * time.Hour
	var steps []demoStep
	at := func(after time.Duration, person string, payloads ...es.Payload) {
		for _, p := range payloads {
			steps = append(steps, demoStep{after: after, payload: p, person: person})
		}
	}
	shop := func(name string, requires ...string) es.Payload {
		return commands.RegisterModule{ModuleSpec: events.ModuleSpec{
			Module: name, Repository: "acme/shop", Path: "services/" + name, Kind: "service", Requires: requires,
		}}
	}
	node := func(name, zone, role string) es.Payload {
		return commands.RegisterNode{Node: name, Labels: map[string]string{"zone": zone, "role": role}, ManagedBy: events.ManagedByExternal}
	}
	assign := func(node, module, version, reason string) es.Payload {
		return commands.Assign{Node: node, Module: module, Reference: demoPackage(module, version), Reason: reason}
	}
	at(0, "ann",
		node("edge-1", "north", "front"), node("edge-2", "south", "front"), node("core-1", "north", "back"), node("lab", "north", "try-out"),
		shop("proxy"), shop("web", "proxy"), shop("api"), shop("db"),
	)
	for i, module := range []string{"proxy", "web", "api", "db"} {
		at(time.Duration(i+1)*time.Hour, "ci", demoBuild(module, "1.0", i)...)
	}
	at(day, "ann",
		assign("core-1", "db", "1.0", "first installation"), assign("core-1", "api", "1.0", "first installation"),
		assign("edge-1", "web", "1.0", "first installation"), assign("edge-2", "web", "1.0", "first installation"),
	)
	at(5*day, "ci", demoBuild("web", "1.1", 4)...)
	at(6*day, "ben", assign("lab", "web", "1.1", "try the new start page"))
	at(7*day, "ben", assign("edge-1", "web", "1.1", "the new start page"), assign("edge-2", "web", "1.1", "the new start page"))
	at(8*day, "ci", demoBuild("api", "1.1", 5)...)
	at(9*day, "ann", assign("core-1", "api", "1.1", "faster search"))
	at(9*day+2*time.Hour, "ann",
		commands.Observe{Seen: events.Seen{Node: "core-1", Module: "api", Reference: demoPackage("api", "1.1"), Reason: "answers slowly"}, Outcome: commands.OutcomeUnhealthy},
		commands.VetoPublication{Reference: demoPackage("api", "1.1"), Reason: "search times out"},
		assign("core-1", "api", "1.0", "back to the one that works"),
	)
	at(10*day, "ci", commands.FailBuild{
		ID: "demo/api/7", Failed: "a test of the search failed", Request: demoRequest("api", 6),
	})
	at(11*day, "ben", commands.Unassign{Node: "lab", Module: "web", Reason: "try-out is over"})
	at(12*day, "ann", commands.DeclareFreeze{
		Name: "weekends", Selector: events.Selector{Labels: map[string]string{"role": "front"}}, Reason: "nobody is at the desk",
		Window: &events.Window{Recurring: &events.Recurring{Days: []string{"sat", "sun"}, From: "00:00", To: "23:59", Zone: "Europe/Berlin"}},
	})
	at(13*day, "ben",
		commands.RegisterNode{Node: "stage", Labels: map[string]string{"zone": "north", "role": "stage"}},
		assign("stage", "web", "1.0", "a place to try things"),
		commands.DeclareStrategy{Name: "careful", Strategy: events.Raw(demoStrategy)},
		commands.DeclareTrack{TrackSpec: events.TrackSpec{Track: "front", Modules: []string{"web"}, Strategy: "careful", On: events.OnManual}},
		demoRollout(),
		commands.HoldMerge{Repository: "acme/shop", Branch: "main", Commit: demoRequest("web", 4).Commit, Waiting: "the rollout start-page waits for somebody to start it"},
		commands.TakeMerge{Repository: "acme/shop", Branch: "main", Commit: demoRequest("web", 4).Commit, Rollout: demoRolloutID},
	)
	var fleet []es.Payload
	for _, name := range demoFleet() {
		fleet = append(fleet, commands.RegisterNode{Node: name, Labels: map[string]string{"zone": "south", "role": "store"}}, assign(name, "web", "1.0", "a shop window in each store"))
	}
	at(13*day+time.Hour, "ben", fleet...)
	return steps
}

// demoFleet are nodes with simulated agents, which take what they are told.
func demoFleet() []string {
	return []string{"store-1", "store-2", "store-3", "store-4", "store-5"}
}

// demoAgents acts for the demo's nodes until the context ends, with agents that only remember. An apply takes long enough to be seen.
func demoAgents(ctx context.Context, conn *natsconn.Conn, log *slog.Logger) error {
	return run.Simulate(ctx, conn, run.SimulateConfig{Nodes: append(demoFleet(), "stage"), Sim: sim.Config{Takes: "500ms"}, Logger: log})
}

// demoRolloutID names the demo's rollout, which waits for somebody to start it.
const demoRolloutID = "start-page"

// demoStrategy is canonical, so that its digest is that of its bytes.
const demoStrategy = `{"description":"One place first.","tiers":[{"name":"stage","selector":{"labels":{"role":"stage"}},"bake":"10m"},{"name":"all"}]}`

// demoRollout plans the new start page for the stage. It is the same every time, digests included.
func demoRollout() es.Payload {
	version := func(v string) *events.Version { return &events.Version{Reference: demoPackage("web", v)} }
	step := events.PlannedStep{Tier: "stage", StepName: events.StepName{Node: "stage", Module: "web"}, Before: version("1.0"), After: version("1.1")}
	digest, err := events.PlanDigest{}.With(step)
	if err != nil {
		panic(err) // a step always has a stored form
	}
	return commands.PlanRollout{
		ID: demoRolloutID, Part: 1, Count: 1, Digest: digest.String(), Steps: []events.PlannedStep{step},
		Head: &events.PlanHead{
			Strategy: events.Raw(demoStrategy), StrategyName: "careful", StrategyDigest: es.Digest([]byte(demoStrategy)), Reason: "the new start page", Track: "front",
			Targets: []events.Target{{Module: "web", Version: *version("1.1")}},
		},
	}
}

// demoBuild gives what a pipeline records: commit, build, and what it published.
func demoBuild(module, version string, number int) []es.Payload {
	request := demoRequest(module, number)
	id := fmt.Sprintf("demo/%s/%d", module, number+1)
	return []es.Payload{
		commands.RecordCommit{Repository: request.Repository, Commit: request.Commit, Branch: request.Ref, Author: []string{"ann", "ben"}[number%2]},
		commands.SucceedBuild{ID: id, Request: request, Made: []events.Made{{Name: module, Kind: "package", Reference: module + "@" + version}}},
		commands.PublishBuild{ID: id, Reference: demoPackage(module, version)},
	}
}

func demoRequest(module string, number int) *commands.RecordedBuild {
	commit := fmt.Sprintf("%x", sha256.Sum256(fmt.Appendf(nil, "demo commit %d", number)))[:40]
	return &commands.RecordedBuild{
		Module: module, Repository: "acme/shop", Path: "services/" + module, Ref: "main", Commit: commit, For: events.ForMerge, On: "runner-1",
	}
}

func demoPackage(name, version string) events.Reference {
	return events.Reference{Package: &events.Package{Name: name, Version: version}}
}

// sayGuide says what a newcomer may try.
func (a *app) sayGuide(url string) {
	at := ""
	if url != "nats://"+defaultListen {
		at = "  export NATS_URL=" + url + "\n"
	}
	back := a.Now().UTC().Truncate(time.Hour).AddDate(0, 0, -demoDays/2).Format(time.RFC3339)
	a.sayf(`
A chain with a small fleet is running. Try, in a second terminal:

%[1]s  %[2]s get assignments
  %[2]s history assignment core-1 api
  %[2]s get assignment lab web --as-of %[3]s
  %[2]s assign lab api --package api@1.0 --reason "see what happens"
  %[2]s send module forget --data '{"module":"web"}'
  %[2]s log --limit 10
  %[2]s rollout show start-page
  %[2]s node ls
  %[2]s assign store-1 web --package web@1.1
  %[2]s node show store-1
  %[2]s verify

^C ends it. What was recorded stays in the store.`, at, shellWord(a.Program), back)
}
