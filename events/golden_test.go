package events_test

import (
	"testing"
	"time"

	"catenary/es/estest"
	"catenary/events"
)

// TestGolden pins the stored form of every event version.
func TestGolden(t *testing.T) {
	t.Parallel()
	estest.Golden(t, events.Registry(), "testdata/golden", samples())
}

// samples holds one of each event, with every field set that may be set together. A version's sample never changes once the
// version was released.
func samples() map[string]any {
	artifact := events.Reference{Artifact: "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"}
	pkg := events.Reference{Package: &events.Package{Name: "@shop/web", Version: "1.20"}}
	module := events.ModuleSpec{
		Module: "web", Repository: "git.example.org/shop", Seat: "shop", Path: "services/web", Kind: "service",
		Requires: []string{"db", "cache"}, Labels: map[string]string{"tier": "1", "team": "blau ä", "zone": ""},
		Delivery: &events.Delivery{
			Drivers: []string{"oci", "files"}, Timeout: "5m",
			Check: &events.Check{Exec: []string{"check", "-v"}, HTTP: "http://localhost/health", TCP: "localhost:80", Interval: "10s", Successes: 2, Failures: 300},
		},
	}
	build := events.BuildSpec{
		ID: "b1", Module: "web", Repository: "git.example.org/shop", Seat: "shop", Path: "services/web", Ref: "refs/heads/main", Commit: "0362525",
		For: events.ForMerge, On: "runner-1", Against: []string{"db@1.2"},
		Sources:           []events.Source{{Repository: "git.example.org/lib", Ref: "main", Paths: []string{"a", "b"}}, {Repository: "git.example.org/bare"}},
		SourceFingerprint: "f1", ReuseKey: "r1",
	}
	inputs := []events.Handed{{StepName: events.StepName{Node: "n1", Module: "db"}, Values: map[string]string{"port": "5432"}, Changed: []string{"port", "url"}}}
	told := events.Told{
		Node: "n1", Module: "web", Reference: pkg, Build: "b1", Commit: "0362525", Rollout: "r1", RequiredBy: []string{"api", "shop"},
		Provisioning: events.Raw(`{ "port": 8080, "version": 1.20, "note": null }`), Reason: "release",
		Inputs: inputs,
	}
	seen := events.Seen{Node: "n1", Module: "web", Reference: artifact, Build: "b1", Rollout: "r1", Source: 1 << 40, Outputs: map[string]string{"port": "80"}, Reason: "poll",
		Driver: &events.Driver{Name: "files", Version: "1.2", Configuration: "9f86d081"}}
	at := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	track := events.TrackSpec{Track: "shop", Modules: []string{"web", "db"}, Strategy: "canary", On: events.OnMerge}
	version := events.Version{Reference: pkg, Build: "b1", Commit: "0362525"}
	step := events.StepName{Node: "n1", Module: "web"}
	return map[string]any{
		events.TypeModuleRegistered: events.ModuleRegistered{ModuleSpec: module},
		events.TypeModuleChanged:    events.ModuleChanged{ModuleSpec: module},
		events.TypeModuleEnded:      events.ModuleEnded{Reason: "gone"},

		events.TypeNodeRegistered: events.NodeRegistered{Node: "n1", Labels: map[string]string{"zone": "a", "rack": "7"}, ManagedBy: events.ManagedByAgent},
		events.TypeNodeRelabelled: events.NodeRelabelled{Labels: map[string]string{"zone": "b"}},
		events.TypeNodeRetired:    events.NodeRetired{Reason: "sold"},

		events.TypeCommitRecorded: events.CommitRecorded{
			Repository: "git.example.org/shop", Branch: "main", Commit: "0362525", Author: "a-1",
			Merged: time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC), Heard: time.Date(2026, 5, 1, 12, 0, 0, 123456789, time.UTC),
		},

		events.TypeBuildAsked:          events.BuildAsked{BuildSpec: build, Reasks: "b0"},
		events.TypeBuildNotAsked:       events.BuildNotAsked{BuildSpec: build, Why: "no runner"},
		events.TypeBuildOutcomeUnknown: events.BuildOutcomeUnknown{Why: "no answer in an hour"},
		events.TypeBuildReaskPending:   events.BuildReaskPending{Reason: "try again"},
		events.TypeBuildReaskClaimed:   events.BuildReaskClaimed{By: "engine-1"},
		events.TypeBuildReasked:        events.BuildReasked{As: "b2"},
		events.TypeBuildSucceeded: events.BuildSucceeded{
			Made: []events.Made{{Name: "web", Kind: "image", Reference: "images/web"}}, Mirrored: []string{"mirror/web"},
			Read: []events.Read{{Repository: "git.example.org/lib", Ref: "main", Paths: []string{"a"}, Own: true}}, Manifest: events.Raw(`{"a": [1, 1e5, null]}`),
		},
		events.TypeBuildFailed:    events.BuildFailed{Failed: "exit 1"},
		events.TypeBuildPublished: events.BuildPublished{Reference: pkg},

		events.TypePublicationRecorded:   events.PublicationRecorded{Reference: artifact, Build: "b1", Commit: "0362525", Module: "web"},
		events.TypePublicationAttested:   events.PublicationAttested{Attestation: events.Attestation{Kind: "slsa", Reference: "store/1", Digest: "sha256:ff"}},
		events.TypePublicationVetoed:     events.PublicationVetoed{Reason: "breaks logins"},
		events.TypePublicationVetoLifted: events.PublicationVetoLifted{Reason: "was the database"},

		events.TypeAssignmentAssigned:     events.AssignmentAssigned{Told: told},
		events.TypeAssignmentEnded:        events.AssignmentEnded{Node: "n1", Module: "web", Rollout: "r1", Reason: "gone"},
		events.TypeAssignmentMovedIn:      events.AssignmentMovedIn{Told: told, From: "n0"},
		events.TypeAssignmentMovedOut:     events.AssignmentMovedOut{Node: "n0", Module: "web", To: "n1", Reason: "balance"},
		events.TypeAssignmentPended:       events.AssignmentPended{Told: told, State: events.StatePending},
		events.TypeAssignmentApplied:      events.AssignmentApplied{Seen: seen},
		events.TypeAssignmentApplyFailed:  events.AssignmentApplyFailed{Seen: seen},
		events.TypeAssignmentHealthy:      events.AssignmentHealthy{Seen: seen},
		events.TypeAssignmentUnhealthy:    events.AssignmentUnhealthy{Seen: seen},
		events.TypeAssignmentRemoved:      events.AssignmentRemoved{Seen: seen},
		events.TypeAssignmentRemoveFailed: events.AssignmentRemoveFailed{Seen: seen},
		events.TypeAssignmentDrifted:      events.AssignmentDrifted{Seen: seen, Drift: "web 1.19 runs"},

		events.TypeFreezeDeclared: events.FreezeDeclared{
			Name: "nights", Selector: events.Selector{Modules: []string{"web"}, Nodes: []string{"n1"}, Labels: map[string]string{"tier": "1"}},
			Window: &events.Window{
				Start: "2026-05-01T00:00:00Z", End: "2026-06-01T00:00:00Z",
				Recurring: &events.Recurring{Days: []string{"mon", "fri"}, From: "22:00", To: "06:00", Zone: "Europe/Berlin"},
			},
			Reason: "nobody is there",
		},
		events.TypeFreezeLifted: events.FreezeLifted{Reason: "over"},

		events.TypeLeaseTaken:    events.LeaseTaken{Name: "engine", Holder: "engine-1", TTL: "10s"},
		events.TypeLeaseReleased: events.LeaseReleased{Reason: "stopped"},

		events.TypeProjectionPaused:  events.ProjectionPaused{View: "chain-builds", Reason: "the disk is moved"},
		events.TypeProjectionResumed: events.ProjectionResumed{Reason: "it is moved"},
		events.TypeProjectionSkipped: events.ProjectionSkipped{View: "chain-builds", Event: 1 << 40, Reason: "it was recorded by mistake"},
		events.TypeMergeHeld: events.MergeHeld{
			Repository: "git.example.org/shop", Branch: "main", Commit: "0362525", Merged: at, Heard: at.Add(time.Second),
			Event: events.Raw(`{"number": 7}`), Alone: true, Waiting: "nobody has planned it",
		},
		events.TypeMergeTaken:    events.MergeTaken{Rollout: "r1"},
		events.TypeMergeReleased: events.MergeReleased{Placed: true, Reason: "finished"},

		events.TypeTrackDeclared: events.TrackDeclared{TrackSpec: track},
		events.TypeTrackChanged:  events.TrackChanged{TrackSpec: track},
		events.TypeTrackEnded:    events.TrackEnded{Reason: "by hand from now on"},

		events.TypeStrategyDeclared: events.StrategyDeclared{Name: "canary", Strategy: events.Raw(`{"tiers":[{"name":"all"}]}`), Digest: "77"},
		events.TypeStrategyEnded:    events.StrategyEnded{Reason: "replaced"},

		events.TypeRolloutPlanning: events.RolloutPlanning{ID: "r2", PlanHead: events.PlanHead{
			Strategy: events.Raw(`{"tiers":[{"name":"all"}]}`), StrategyName: "canary", StrategyDigest: "77", Reason: "release", Track: "shop",
			Reverts: "r1", Restores: at, Supersedes: []string{"r0"},
			Commits: []events.FixedCommit{{Repository: "git.example.org/shop", Branch: "main", Commit: "0362525", Merged: at}},
			Targets: []events.Target{{Module: "web", Version: version}},
		}},
		events.TypeRolloutStepsPlanned: events.RolloutStepsPlanned{Part: 1, Steps: []events.PlannedStep{
			{
				Tier: "all", StepName: step, Before: &version, After: &version, Refresh: true, Tried: 1,
				WaitsFor: []events.WaitFor{{StepName: step, Notify: true}},
			},
		}},
		events.TypeRolloutPlanned:     events.RolloutPlanned{Count: 300, Digest: "ab", Ends: 2, Approval: true},
		events.TypeRolloutApproved:    events.RolloutApproved{Tier: "all", Reason: "looked at it"},
		events.TypeRolloutStarted:     events.RolloutStarted{Reason: "now"},
		events.TypeRolloutTierEntered: events.RolloutTierEntered{Tier: "all", Open: []events.StepName{step}},
		events.TypeRolloutStepBegun:   events.RolloutStepBegun{Tier: "all", StepName: step, Attempt: 1, Refresh: 2, Inputs: inputs},
		events.TypeRolloutStepEnded: events.RolloutStepEnded{
			Tier: "all", StepName: step, Attempt: 1, By: events.SettledByReport, From: events.StepWaiting, Again: true, Notified: []events.StepName{step},
			StepResult: events.StepResult{
				Outcome: events.StepFailed, Reason: "exit 1", Reported: at, Outputs: map[string]string{"url": "http://n1", "port": "80"},
				Driver: &events.Driver{Name: "oci", Version: "1.2", Configuration: "sha256:1"},
			},
		},
		events.TypeRolloutStepRetried: events.RolloutStepRetried{Tier: "all", StepName: step, From: events.StepFailed, Reason: "the disk is free again"},
		events.TypeRolloutPaused:      events.RolloutPaused{Reason: "lunch"},
		events.TypeRolloutResumed:     events.RolloutResumed{Reason: "eaten"},
		events.TypeRolloutAborted:     events.RolloutAborted{Reason: "wrong one"},
		events.TypeRolloutSuperseded:  events.RolloutSuperseded{By: "r3", Reason: "newer"},
		events.TypeRolloutReverted:    events.RolloutReverted{By: "r3"},
		events.TypeRolloutFailed:      events.RolloutFailed{Tier: "all", Reason: "2 of 3 failed"},
		events.TypeRolloutFinished:    events.RolloutFinished{Done: 300, Failed: 2, Unknown: 1, Skipped: 4},
		events.TypeRolloutBlocked: events.RolloutBlocked{Holds: []events.Hold{
			{Reason: events.HoldFrozen, Tier: "all", Steps: []events.StepName{step}, Count: 12, WaitsFor: "the freeze nights", Until: at},
		}},

		events.TypeWriterStarted: events.WriterStarted{ID: "w1", Program: "1.0.0", Rules: 1},
		events.TypeWriterLossAccepted: events.WriterLossAccepted{
			Found: 50, FoundHash: "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
			Witnesses: []events.Witness{{Name: "bucket chain-nodes", Sequence: 100, Hash: "0a", Event: "e1"}, {Name: "checkpoint", Sequence: 99}},
			Reason:    "the disk is gone",
		},

		events.TypeActorForgotten: events.ActorForgotten{Reason: "asked to be"},
	}
}
