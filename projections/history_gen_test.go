package projections_test

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"pgregory.net/rapid"

	"catenary/es"
	"catenary/es/project/projecttest"
	"catenary/events"
)

// history draws facts in an order that the deciders allow: over few instances, so that each lives through a lot.
type history struct {
	t     *rapid.T
	state map[es.Ref]string
	facts []projecttest.Fact
	// told counts what was told, so that no two assignments are equal by chance.
	told int
}

func drawHistory(t *rapid.T, longest int) []projecttest.Fact {
	h := &history{t: t, state: map[es.Ref]string{}}
	for range rapid.IntRange(1, longest).Draw(t, "length") {
		h.step()
	}
	return h.facts
}

var aggregates = []string{
	events.AggregateModule, events.AggregateNode, events.AggregateCommit, events.AggregateBuild, events.AggregatePublication,
	events.AggregateAssignment, events.AggregateAssignment, events.AggregateAssignment, events.AggregateFreeze, events.AggregateLease,
	events.AggregateMerge, events.AggregateTrack, events.AggregateStrategy, events.AggregateRollout, events.AggregateRollout, events.AggregateRollout,
	events.AggregateWriter,
}

var names = []string{"web", "a.b/ä 1"}

func (h *history) step() {
	aggregate := rapid.SampledFrom(aggregates).Draw(h.t, "aggregate")
	name := rapid.SampledFrom(names).Draw(h.t, "name")
	ref := es.Ref{Aggregate: aggregate, Key: es.Key(name)}
	switch aggregate {
	case events.AggregateCommit:
		ref.Key = es.Key(name, "c1")
	case events.AggregateMerge:
		ref.Key = es.Key(name, "main", "c1")
	case events.AggregatePublication:
		ref.Key = es.Key(name, "1.20")
	case events.AggregateAssignment:
		ref.Key = es.Key(name, "db")
	}
	h.draw(ref, name)
}

// draw adds a fact about the instance that its state allows. The names of states are those of the last deciding event.
func (h *history) draw(ref es.Ref, name string) {
	text := rapid.SampledFrom([]string{"", "1.20", "<&>", "節点"}).Draw(h.t, "text")
	labels := rapid.SampledFrom([]map[string]string{nil, {}, {"b": "1", "a": "<"}}).Draw(h.t, "labels")
	list := rapid.SampledFrom([][]string{nil, {}, {"x", "y"}}).Draw(h.t, "list")
	raw := rapid.SampledFrom([]events.Raw{nil, {}, events.Raw("{ \"a\": 1.0 }\n"), events.Raw("null")}).Draw(h.t, "raw")
	state := h.state[ref]
	known := state != ""
	switch ref.Aggregate {
	case events.AggregateModule:
		spec := events.ModuleSpec{Module: name, Kind: text, Labels: labels, Requires: list}
		h.choose(ref, map[string]any{
			"registered": events.ModuleRegistered{ModuleSpec: spec},
			"changed":    when(state == "registered" || state == "changed", events.ModuleChanged{ModuleSpec: spec}),
			"ended":      when(known, events.ModuleEnded{Reason: text}),
		})
	case events.AggregateNode:
		h.choose(ref, map[string]any{
			"registered": events.NodeRegistered{Node: name, Labels: labels, ManagedBy: events.ManagedByAgent},
			"relabelled": when(known, events.NodeRelabelled{Labels: labels}),
			"retired":    when(known, events.NodeRetired{Reason: text}),
		})
	case events.AggregateCommit:
		h.choose(ref, map[string]any{"recorded": events.CommitRecorded{Repository: name, Commit: "c1", Branch: text, Heard: time.Unix(int64(len(h.facts)), 1)}})
	case events.AggregateBuild:
		spec := events.BuildSpec{ID: name, Module: text, Against: list, Sources: []events.Source{{Repository: text, Paths: list}}}
		h.choose(ref, map[string]any{
			"asked":     events.BuildAsked{BuildSpec: spec},
			"not-asked": events.BuildNotAsked{BuildSpec: spec, Why: text},
			"unknown":   when(state == "asked", events.BuildOutcomeUnknown{Why: text}),
			"pending":   when(state == "unknown" || state == "not-asked", events.BuildReaskPending{Reason: text}),
			"claimed":   when(state == "pending", events.BuildReaskClaimed{By: text}),
			"reasked":   when(state == "claimed", events.BuildReasked{As: text}),
			"succeeded": when(known && state != "succeeded", events.BuildSucceeded{Manifest: raw, Mirrored: list}),
			"failed":    when(known && state != "succeeded", events.BuildFailed{Failed: text}),
			"published": when(state == "succeeded", events.BuildPublished{Reference: events.Reference{Artifact: text}}),
		})
	case events.AggregatePublication:
		h.choose(ref, map[string]any{
			"recorded": events.PublicationRecorded{Reference: events.Reference{Package: &events.Package{Name: name, Version: "1.20"}}, Build: text},
			"attested": when(known, events.PublicationAttested{Attestation: events.Attestation{Kind: text}}),
			"vetoed":   when(known, events.PublicationVetoed{Reason: text}),
			"lifted":   when(state == "vetoed", events.PublicationVetoLifted{}),
		})
	case events.AggregateAssignment:
		h.drawAssignment(ref, name, list, raw)
	case events.AggregateFreeze:
		h.choose(ref, map[string]any{
			"declared": events.FreezeDeclared{Name: name, Selector: events.Selector{Modules: list, Labels: labels}, Reason: text},
			"lifted":   when(known, events.FreezeLifted{}),
		})
	case events.AggregateMerge:
		h.choose(ref, map[string]any{
			"held":     events.MergeHeld{Repository: name, Branch: "main", Commit: "c1", Event: raw, Waiting: text, Heard: time.Unix(int64(len(h.facts)), 1)},
			"taken":    when(known, events.MergeTaken{Rollout: text}),
			"released": when(known, events.MergeReleased{Placed: text == ""}),
		})
	case events.AggregateTrack:
		spec := events.TrackSpec{Track: name, Modules: list, Strategy: text}
		h.choose(ref, map[string]any{
			"declared": events.TrackDeclared{TrackSpec: spec},
			"changed":  when(known, events.TrackChanged{TrackSpec: spec}),
			"ended":    when(known, events.TrackEnded{Reason: text}),
		})
	case events.AggregateStrategy:
		h.choose(ref, map[string]any{
			"declared": events.StrategyDeclared{Name: name, Strategy: events.Raw(`{"tiers":[{"name":"all"}]}`), Digest: text},
			"ended":    when(known, events.StrategyEnded{Reason: text}),
		})
	case events.AggregateRollout:
		h.drawRollout(ref, name, text)
	case events.AggregateLease:
		h.choose(ref, map[string]any{"taken": events.LeaseTaken{Name: name, Holder: text}, "released": events.LeaseReleased{}})
	case events.AggregateWriter:
		h.choose(ref, map[string]any{"started": events.WriterStarted{ID: text}})
	}
}

func (h *history) drawAssignment(ref es.Ref, node string, list []string, raw events.Raw) {
	h.told++
	build := fmt.Sprint("b", h.told)
	told := events.Told{Node: node, Module: "db", Build: build, RequiredBy: list, Provisioning: raw}
	seen := events.Seen{Node: node, Module: "db", Build: rapid.SampledFrom([]string{"", "b1", build}).Draw(h.t, "seen")}
	state := h.state[ref]
	known, stands := state != "", state == "assigned" || state == "moved-in"
	if known && rapid.IntRange(0, 4).Draw(h.t, "backfill") == 0 {
		earlier := time.Unix(int64(h.told), 0)
		data := rapid.SampledFrom([]any{events.AssignmentAssigned{Told: told}, events.AssignmentEnded{Node: node, Module: "db"}}).Draw(h.t, "added")
		h.facts = append(h.facts, projecttest.Fact{Ref: ref, Data: data, Effective: earlier, Backfill: true})
		return
	}
	// Reports leave what was told as it is: their names keep the state.
	h.choose(ref, map[string]any{
		"assigned":       events.AssignmentAssigned{Told: told},
		"moved-in":       when(!stands, events.AssignmentMovedIn{Told: told, From: "n9"}),
		"pended":         when(!stands, events.AssignmentPended{Told: told, State: events.StatePending}),
		"ended":          when(known, events.AssignmentEnded{Node: node, Module: "db"}),
		"moved-out":      when(stands, events.AssignmentMovedOut{Node: node, Module: "db", To: "n9"}),
		"~applied":       when(known, events.AssignmentApplied{Seen: seen}),
		"~apply-failed":  when(known, events.AssignmentApplyFailed{Seen: seen}),
		"~healthy":       when(known, events.AssignmentHealthy{Seen: seen}),
		"~unhealthy":     when(known, events.AssignmentUnhealthy{Seen: seen}),
		"~removed":       when(known, events.AssignmentRemoved{Seen: seen}),
		"~remove-failed": when(known, events.AssignmentRemoveFailed{Seen: seen}),
		"~drifted":       when(known, events.AssignmentDrifted{Seen: seen, Drift: "by hand"}),
	})
}

// drawRollout draws what happens to a rollout of two steps. Those that change no state keep it.
func (h *history) drawRollout(ref es.Ref, id, text string) {
	state := h.state[ref]
	step := rapid.SampledFrom([]events.StepName{{Node: "n1", Module: "db"}, {Node: "n.2", Module: "db"}}).Draw(h.t, "step")
	version := &events.Version{Reference: events.Reference{Artifact: "a" + text}, Build: text}
	outcome := rapid.SampledFrom([]string{events.StepDone, events.StepFailed, events.StepUnknown, events.StepSkipped}).Draw(h.t, "outcome")
	from := rapid.SampledFrom([]string{"", events.StepWaiting, events.StepUnknown}).Draw(h.t, "from")
	written := state != "" && state != "planning"
	h.choose(ref, map[string]any{
		"planning": when(state == "", events.RolloutPlanning{ID: id, PlanHead: events.PlanHead{
			Strategy: events.Raw(`{"tiers":[{"name":"b","after":["a"],"approval":true},{"name":"a","concurrency":"25%","limit":{"per-minute":3}}]}`), Reason: text,
			Commits: []events.FixedCommit{{Repository: text, Commit: "c1"}}, Targets: []events.Target{{Module: "db", Version: *version}}, Supersedes: []string{text},
		}}),
		"written": when(state == "planning", events.RolloutStepsPlanned{Part: 1, Steps: []events.PlannedStep{
			{Tier: "a", StepName: events.StepName{Node: "n1", Module: "db"}, After: version},
			{Tier: "b", StepName: events.StepName{Node: "n.2", Module: "db"}, Before: version, WaitsFor: []events.WaitFor{{StepName: step}}},
		}}),
		"planned":       when(written, events.RolloutPlanned{Count: 2, Digest: text, Approval: text != ""}),
		"~approved":     when(written, events.RolloutApproved{Tier: "a", Reason: text}),
		"~started":      when(written, events.RolloutStarted{}),
		"~tier-entered": when(written, events.RolloutTierEntered{Tier: "a"}),
		"~begun":        when(written, events.RolloutStepBegun{Tier: tierOf(step), StepName: step, Attempt: len(h.facts)}),
		"~ended": when(written, events.RolloutStepEnded{
			Tier: tierOf(step), StepName: step, From: from, By: events.SettledByReport, Again: text == "",
			StepResult: events.StepResult{Outcome: outcome, Reason: text, Outputs: map[string]string{"a": text}},
		}),
		"~retried":    when(written, events.RolloutStepRetried{Tier: tierOf(step), StepName: step, From: outcome}),
		"~paused":     when(written, events.RolloutPaused{}),
		"~resumed":    when(written, events.RolloutResumed{}),
		"~aborted":    when(written, events.RolloutAborted{Reason: text}),
		"~superseded": when(written, events.RolloutSuperseded{By: text}),
		"~reverted":   when(written, events.RolloutReverted{By: text}),
		"~failed":     when(written, events.RolloutFailed{Tier: "a", Reason: text}),
		"~finished":   when(written, events.RolloutFinished{Done: 2}),
		"~blocked":    when(written || state == "planning", events.RolloutBlocked{Holds: []events.Hold{{Reason: events.HoldFrozen, Until: time.Unix(int64(len(h.facts)), 0).UTC()}}}),
	})
}

func tierOf(n events.StepName) string { return map[string]string{"n1": "a", "n.2": "b"}[n.Node] }

// when gives the fact if it is allowed.
func when(allowed bool, data any) any {
	if allowed {
		return data
	}
	return nil
}

func (h *history) choose(ref es.Ref, facts map[string]any) {
	var allowed []string
	for name, data := range facts {
		if data != nil {
			allowed = append(allowed, name)
		}
	}
	slices.Sort(allowed)
	name := rapid.SampledFrom(allowed).Draw(h.t, "event")
	h.facts = append(h.facts, projecttest.Fact{Ref: ref, Data: facts[name], Actor: "a1"})
	if !strings.HasPrefix(name, "~") {
		h.state[ref] = name
	}
}
