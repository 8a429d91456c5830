package commands_test

import (
	"strings"
	"time"

	"catenary/commands"
	"catenary/es"
	"catenary/events"
)

func ptr[T any](v T) *T { return &v }

// samples holds one payload a command of the bus, with every field set that may be set together.
func samples() []es.Payload {
	spec := events.ModuleSpec{
		Module: "web", Repository: "git.example.org/shop", Seat: "shop", Path: "services/web", Kind: "service",
		Requires: []string{"db"}, Labels: map[string]string{"team": "blue", "tier": "1"},
		Delivery: &events.Delivery{
			Drivers: []string{"oci", "files"}, Timeout: "5m",
			Check: &events.Check{HTTP: "http://localhost/health", Interval: "10s", Successes: 2, Failures: 3},
		},
	}
	build := events.BuildSpec{
		ID: "b1", Module: "web", Repository: "git.example.org/shop", Seat: "shop", Path: "services/web", Ref: "main",
		Commit: "c1", For: events.ForMerge, On: "runner-1", Against: []string{"db@1"},
		Sources:           []events.Source{{Repository: "git.example.org/lib", Ref: "main", Paths: []string{"a", "b"}}},
		SourceFingerprint: "f1", ReuseKey: "r1",
	}
	request := &commands.RecordedBuild{
		Module: "web", Repository: "git.example.org/shop", Seat: "shop", Path: "services/web", Ref: "main", Commit: "c1",
		For: events.ForMerge, On: "runner-1", Against: []string{"db@1"}, Sources: build.Sources, SourceFingerprint: "f1", ReuseKey: "r1",
	}
	artifact := events.Reference{Artifact: "sha256:0a1b"}
	pkg := events.Reference{Package: &events.Package{Name: "web", Version: "1.20"}}
	at := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	track := events.TrackSpec{Track: "shop", Modules: []string{"web", "db"}, Strategy: "canary", On: events.OnMerge}
	strategy := events.Raw(`{"tiers":[{"name":"all"}]}`)
	version := events.Version{Reference: pkg, Build: "b1", Commit: "c1"}
	step := events.StepName{Node: "n1", Module: "web"}
	return []es.Payload{
		commands.ForgetActor{Actor: "a-1", Reason: "asked to be"},
		commands.RegisterModule{ModuleSpec: spec},
		commands.ChangeModule{ModuleSpec: spec},
		commands.ForgetModule{Module: "web", Reason: "gone"},
		commands.RegisterNode{Node: "n1", Labels: map[string]string{"zone": "a"}, ManagedBy: events.ManagedByExternal},
		commands.RelabelNode{Node: "n1", Labels: map[string]string{"zone": "b"}},
		commands.RetireNode{Node: "n1", Reason: "sold", Confirm: ptr(2)},
		commands.RecordCommit{
			Repository: "git.example.org/shop", Branch: "main", Commit: "c1", Author: "Ann",
			Merged: time.Date(2026, 5, 1, 12, 0, 0, 5000, time.UTC), Heard: time.Date(2026, 5, 1, 12, 0, 1, 0, time.UTC),
		},
		commands.AskBuild{BuildSpec: build, Reasks: "b0"},
		commands.NotAskedBuild{BuildSpec: build, Why: "no runner"},
		commands.UnknownBuild{ID: "b1", Why: "no answer in an hour"},
		commands.ReaskBuild{ID: "b1", Reason: "try again"},
		commands.ClaimBuild{ID: "b1", By: "engine-1"},
		commands.SucceedBuild{
			ID: "b1", Made: []events.Made{{Name: "web", Kind: "image", Reference: "registry/web"}}, Mirrored: []string{"mirror/web"},
			Read:     []events.Read{{Repository: "git.example.org/lib", Ref: "main", Paths: []string{"a"}, Own: true}},
			Manifest: events.Raw(`{"a": [1, null, 1.20]}`), Request: request,
		},
		commands.FailBuild{ID: "b1", Failed: "exit 1", Request: request},
		commands.PublishBuild{ID: "b1", Reference: pkg},
		commands.RecordPublication{Reference: artifact, Build: "b1", Commit: "c1", Module: "web"},
		commands.AttestPublication{Reference: pkg, Attestation: events.Attestation{Kind: "slsa", Reference: "store/1", Digest: "sha256:ff"}},
		commands.VetoPublication{Reference: pkg, Reason: "breaks logins"},
		commands.LiftVeto{Reference: artifact, Reason: "was the database"},
		commands.Assign{
			Node: "n1", Module: "web", Reference: pkg, Build: "b1", Commit: "c1",
			Provisioning: events.Raw(`{"port": 8080, "note": null}`), Reason: "release",
		},
		commands.Unassign{Node: "n1", Module: "web", Reason: "gone"},
		commands.Move{Node: "n1", Module: "web", To: "n2", Reason: "balance"},
		commands.Pend{Node: "n1", Module: "web", Reference: artifact, Build: "b1", Reason: "waits"},
		commands.Observe{
			Seen: events.Seen{
				Node: "n1", Module: "web", Reference: pkg, Build: "b1", Rollout: "r1", Source: 42, Outputs: map[string]string{"port": "80"}, Reason: "poll",
				Driver: &events.Driver{Name: "files", Version: "1.2", Configuration: "9f86d081"},
			},
			Outcome: commands.OutcomeDrifted, Drift: "web 1.19 runs",
		},
		commands.DeclareFreeze{
			Name: "nights", Selector: events.Selector{Modules: []string{"web"}, Nodes: []string{"n1"}, Labels: map[string]string{"tier": "1"}},
			Window: &events.Window{
				Start: "2026-05-01T00:00:00Z", End: "2026-06-01T00:00:00Z",
				Recurring: &events.Recurring{Days: []string{"mon"}, From: "22:00", To: "06:00", Zone: "Europe/Berlin"},
			},
			Reason: "nobody is there",
		},
		commands.LiftFreeze{Name: "nights", Reason: "over"},
		commands.TakeLease{Name: "engine", Holder: "e1", TTL: "10s"},
		commands.RenewLease{Name: "engine", Holder: "e1"},
		commands.ReleaseLease{Name: "engine", Holder: "e1", Reason: "stopped"},
		commands.PauseProjection{View: "chain-builds", Reason: "the disk is moved"},
		commands.ResumeProjection{View: "chain-builds", Reason: "it is moved"},
		commands.SkipProjection{View: "chain-builds", Event: 7, Reason: "recorded by mistake"},
		commands.HoldMerge{
			Repository: "git.example.org/shop", Branch: "main", Commit: "c1", Merged: at, Heard: at.Add(time.Second),
			Event: events.Raw(`{"number": 7}`), Alone: true, Waiting: "nobody has planned it",
		},
		commands.TakeMerge{Repository: "git.example.org/shop", Branch: "main", Commit: "c1", Rollout: "r1"},
		commands.ReleaseMerge{Repository: "git.example.org/shop", Branch: "main", Commit: "c1", Placed: true, Reason: "finished"},
		commands.DeclareTrack{TrackSpec: track},
		commands.ChangeTrack{TrackSpec: track},
		commands.EndTrack{Track: "shop", Reason: "by hand from now on"},
		commands.DeclareStrategy{Name: "canary", Strategy: strategy},
		commands.EndStrategy{Name: "canary", Reason: "replaced"},
		commands.PlanRollout{
			ID: "r2", Part: 1, Count: 1, Digest: strings.Repeat("ab", 32), Confirm: ptr(1),
			Head: &events.PlanHead{
				Strategy: strategy, StrategyName: "canary", StrategyDigest: es.Digest(strategy), Reason: "release", Track: "shop",
				Reverts: "r1", Restores: at, Supersedes: []string{"r0"},
				Commits: []events.FixedCommit{{Repository: "git.example.org/shop", Branch: "main", Commit: "c1", Merged: at}},
				Targets: []events.Target{{Module: "web", Version: version}},
			},
			Steps: []events.PlannedStep{{
				Tier: "all", StepName: step, Before: &version, After: &events.Version{Reference: artifact}, Tried: 1,
				WaitsFor: []events.WaitFor{{StepName: events.StepName{Node: "n1", Module: "db"}, Notify: true}},
			}},
		},
		commands.ApproveRollout{ID: "r2", Tier: "all", Reason: "looked at it"},
		commands.StartRollout{ID: "r2", Reason: "now"},
		commands.AdvanceRollout{ID: "r2", Offline: []events.StepName{step}},
		commands.BeginStep{ID: "r2", StepName: step},
		commands.EndStep{ID: "r2", StepName: step, Attempt: 1, StepResult: events.StepResult{
			Outcome: events.StepDone, Reason: "as told", Reported: at, Outputs: map[string]string{"port": "80"},
			Driver: &events.Driver{Name: "oci", Version: "1.2", Configuration: "sha256:1"},
		}},
		commands.SettleStep{ID: "r2", StepName: step, Outcome: events.StepDone, Reason: "looked at it"},
		commands.RetryStep{ID: "r2", StepName: step, Reason: "the disk is free again"},
		commands.BlockRollout{ID: "r2", Holds: []events.Hold{
			{Reason: events.HoldFrozen, Tier: "all", Steps: []events.StepName{step}, Count: 12, WaitsFor: "the freeze nights", Until: at},
		}},
		commands.PauseRollout{ID: "r2", Reason: "lunch"},
		commands.ResumeRollout{ID: "r2", Reason: "eaten"},
		commands.AbortRollout{ID: "r2", Reason: "wrong one"},
		commands.SupersedeRollout{ID: "r2", By: "r3", Reason: "newer"},
	}
}
