package commands_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/cockroachdb/errors"

	"catenary/commands"
	"catenary/es"
	"catenary/es/dispatch"
	"catenary/events"
)

func TestSamplesAreValid(t *testing.T) {
	t.Parallel()
	for _, p := range append(samples(), commands.StartWriter{WriterStarted: events.WriterStarted{ID: "w1", Program: "1.0", Rules: 1}}) {
		if err := p.Validate(); err != nil {
			t.Errorf("%T: %v", p, err)
		}
	}
}

func TestValidateRefuses(t *testing.T) {
	t.Parallel()
	pkg := events.Reference{Package: &events.Package{Name: "web", Version: "1"}}
	both := events.Reference{Artifact: "a", Package: pkg.Package}
	module := func(change func(*events.ModuleSpec)) es.Payload {
		m := events.ModuleSpec{Module: "web", Delivery: &events.Delivery{Check: &events.Check{TCP: ":80"}}}
		change(&m)
		return commands.RegisterModule{ModuleSpec: m}
	}
	freeze := func(w events.Window) es.Payload { return commands.DeclareFreeze{Name: "f", Window: &w} }
	step := events.StepName{Node: "n1", Module: "web"}
	plan := func(change func(*commands.PlanRollout)) es.Payload {
		strategy := events.Raw(`{"tiers":[{"name":"all"}]}`)
		p := commands.PlanRollout{
			ID: "r1", Part: 1, Count: 1, Digest: strings.Repeat("ab", 32),
			Head:  &events.PlanHead{Strategy: strategy, StrategyDigest: es.Digest(strategy)},
			Steps: []events.PlannedStep{{Tier: "all", StepName: step, After: &events.Version{Reference: pkg}}},
		}
		change(&p)
		return p
	}
	build := events.BuildSpec{ID: "b", Module: "web", Repository: "r", Commit: "c"}
	many := make([]string, commands.MaxListItems+1)
	for i := range many {
		many[i] = strings.Repeat("x", i%200+1) + strings.Repeat("y", i/200)
	}
	labels := map[string]string{}
	for _, v := range many[:commands.MaxLabels+1] {
		labels[v] = ""
	}
	cases := []struct {
		name    string
		payload es.Payload
		code    string
		says    string
	}{
		{"no name", commands.ForgetModule{}, commands.CodeMissingField, "module"},
		{"a name too long", commands.ForgetModule{Module: strings.Repeat("x", 256)}, commands.CodeTooLarge, "255"},
		{"a reason too long", commands.ForgetModule{Module: "m", Reason: strings.Repeat("x", 4097)}, commands.CodeTooLarge, "reason has 4097 bytes: the limit is 4096"},
		{"a reason that is no text", commands.ForgetModule{Module: "m", Reason: "\xff"}, commands.CodeBadText, "reason"},
		{"a reason that moves the cursor", commands.ForgetModule{Module: "m", Reason: "a\x1b[2J"}, commands.CodeBadText, "U+001B at byte 1"},
		{"requires itself", module(func(m *events.ModuleSpec) { m.Requires = []string{"web"} }), commands.CodeBadValue, "web requires itself"},
		{"requires twice", module(func(m *events.ModuleSpec) { m.Requires = []string{"a", "a"} }), commands.CodeBadValue, `"a" twice`},
		{"requires nothing", module(func(m *events.ModuleSpec) { m.Requires = []string{""} }), commands.CodeMissingField, "requires[0]"},
		{"requires too many", module(func(m *events.ModuleSpec) { m.Requires = many }), commands.CodeTooLarge, "requires has 1001 items: the limit is 1000"},
		{"too many labels", module(func(m *events.ModuleSpec) { m.Labels = labels }), commands.CodeTooLarge, "65 labels"},
		{"a label too long", module(func(m *events.ModuleSpec) { m.Labels = map[string]string{"a": strings.Repeat("x", 256)} }), commands.CodeTooLarge, "labels.a"},
		{"a label without a name", module(func(m *events.ModuleSpec) { m.Labels = map[string]string{"": "x"} }), commands.CodeMissingField, "labels"},
		{"two checks", module(func(m *events.ModuleSpec) { m.Delivery.Check.HTTP = "http://x" }), commands.CodeBadValue, "one of exec, http and tcp"},
		{"no check", module(func(m *events.ModuleSpec) { m.Delivery.Check.TCP = "" }), commands.CodeBadValue, "0 ways"},
		{"a negative count", module(func(m *events.ModuleSpec) { m.Delivery.Check.Failures = -1 }), commands.CodeBadValue, "failures"},
		{"no duration", module(func(m *events.ModuleSpec) { m.Delivery.Timeout = "5" }), commands.CodeBadValue, "delivery.timeout"},
		{"no time at all", module(func(m *events.ModuleSpec) { m.Delivery.Timeout = "0s" }), commands.CodeBadValue, "delivery.timeout"},
		{"a path of two lines", module(func(m *events.ModuleSpec) { m.Path = "a\nb" }), commands.CodeBadText, "path"},
		{"an unknown manager", commands.RegisterNode{Node: "n", ManagedBy: "me"}, commands.CodeBadValue, "agent, external"},
		{"a negative confirmation", commands.RetireNode{Node: "n", Confirm: ptr(-1)}, commands.CodeBadValue, "confirm"},
		{"no reference", commands.Assign{Node: "n", Module: "m"}, commands.CodeMissingField, "package, artifact nor build"},
		{"two references", commands.Assign{Node: "n", Module: "m", Reference: both}, commands.CodeBadValue, "artifact and package"},
		{"no version", commands.PublishBuild{ID: "b", Reference: events.Reference{Package: &events.Package{Name: "web"}}}, commands.CodeMissingField, "package.version"},
		{"nothing published", commands.PublishBuild{ID: "b"}, commands.CodeMissingField, "artifact"},
		{"no JSON", commands.Assign{Node: "n", Module: "m", Reference: pkg, Provisioning: events.Raw("{")}, commands.CodeBadValue, "provisioning is not JSON: unexpected end"},
		{"empty JSON", commands.Assign{Node: "n", Module: "m", Reference: pkg, Provisioning: events.Raw{}}, commands.CodeBadValue, "provisioning"},
		{"JSON too large", commands.SucceedBuild{ID: "b", Manifest: events.Raw(`"` + strings.Repeat("x", commands.MaxRawBytes) + `"`)}, commands.CodeTooLarge, "manifest has 65538 bytes: the limit is 65536"},
		{"no outcome", commands.Observe{Seen: events.Seen{Node: "n", Module: "m"}}, commands.CodeMissingField, "outcome"},
		{"an unknown outcome", commands.Observe{Seen: events.Seen{Node: "n", Module: "m"}, Outcome: "fine"}, commands.CodeBadValue, "applied"},
		{"drifted from nothing", commands.Observe{Seen: events.Seen{Node: "n", Module: "m"}, Outcome: "drifted"}, commands.CodeMissingField, "drift"},
		{"drift without drifting", commands.Observe{Seen: events.Seen{Node: "n", Module: "m"}, Outcome: "healthy", Drift: "x"}, commands.CodeBadValue, "drift"},
		{"asks itself again", commands.AskBuild{BuildSpec: build, Reasks: "b"}, commands.CodeBadValue, "reasks itself"},
		{"for nobody", commands.AskBuild{BuildSpec: events.BuildSpec{ID: "b", Module: "m", Repository: "r", Commit: "c", For: "fun"}}, commands.CodeBadValue, "merge, plan, build, assign"},
		{"a request without a commit", commands.FailBuild{ID: "b", Failed: "x", Request: &commands.RecordedBuild{Module: "m", Repository: "r"}}, commands.CodeMissingField, "commit"},
		{"a veto without a reason", commands.VetoPublication{Reference: pkg, Reason: " "}, commands.CodeMissingField, "reason"},
		{"an empty window", freeze(events.Window{}), commands.CodeBadValue, "neither start, end nor recurring"},
		{"a window backwards", freeze(events.Window{Start: "2026-05-02T00:00:00Z", End: "2026-05-01T00:00:00Z"}), commands.CodeBadValue, "not after"},
		{"no time", freeze(events.Window{Start: "tomorrow"}), commands.CodeBadValue, "start"},
		{"no zone", freeze(events.Window{Recurring: &events.Recurring{From: "01:00", To: "02:00"}}), commands.CodeBadValue, "zone"},
		{"the machine's own zone", freeze(events.Window{Recurring: &events.Recurring{From: "01:00", To: "02:00", Zone: "Local"}}), commands.CodeBadValue, "zone"},
		{"an unknown zone", freeze(events.Window{Recurring: &events.Recurring{From: "01:00", To: "02:00", Zone: "Mars/Base"}}), commands.CodeBadValue, "Mars/Base"},
		{"no time of day", freeze(events.Window{Recurring: &events.Recurring{From: "1:00", To: "02:00", Zone: "UTC"}}), commands.CodeBadValue, "from"},
		{"no stretch", freeze(events.Window{Recurring: &events.Recurring{From: "01:00", To: "01:00", Zone: "UTC"}}), commands.CodeBadValue, "both"},
		{"an unknown day", freeze(events.Window{Recurring: &events.Recurring{Days: []string{"someday"}, From: "01:00", To: "02:00", Zone: "UTC"}}), commands.CodeBadValue, "someday"},
		{"a merge that waits for nothing", commands.HoldMerge{Repository: "r", Branch: "b", Commit: "c"}, commands.CodeMissingField, "waiting"},
		{"a track of nothing", commands.DeclareTrack{TrackSpec: events.TrackSpec{Track: "t", Strategy: "s", On: events.OnMerge}}, commands.CodeMissingField, "modules"},
		{"a track on something else", commands.DeclareTrack{TrackSpec: events.TrackSpec{Track: "t", Modules: []string{"m"}, Strategy: "s", On: "monday"}}, commands.CodeBadValue, "merge, publication, manual"},
		{"a strategy of nothing", commands.DeclareStrategy{Name: "s"}, commands.CodeMissingField, "strategy"},
		{"a strategy that is none", commands.DeclareStrategy{Name: "s", Strategy: events.Raw(`{"tiers":[{"name":"a","bake":"long"}]}`)}, commands.CodeBadValue, "tiers[0].bake"},
		{"a plan without a head", plan(func(p *commands.PlanRollout) { p.Head = nil }), commands.CodeMissingField, "head"},
		{"a second head", plan(func(p *commands.PlanRollout) { p.Part = 2 }), commands.CodeBadValue, "part 2"},
		{"part 0 of a plan", plan(func(p *commands.PlanRollout) { p.Part = 0 }), commands.CodeBadValue, "part"},
		{"a part of nothing", plan(func(p *commands.PlanRollout) { p.Part, p.Head, p.Steps, p.Digest, p.Count = 2, nil, nil, "", 0 }), commands.CodeMissingField, "neither steps nor a digest"},
		{"a part too large", plan(func(p *commands.PlanRollout) { p.Steps = make([]events.PlannedStep, 251) }), commands.CodeTooLarge, "250"},
		{"a count without a digest", plan(func(p *commands.PlanRollout) { p.Digest = "" }), commands.CodeMissingField, "without a digest"},
		{"no digest", plan(func(p *commands.PlanRollout) { p.Digest = "ab" }), commands.CodeBadValue, "digest"},
		{"another strategy's digest", plan(func(p *commands.PlanRollout) { p.Head.StrategyDigest = "ab" }), commands.CodeBadValue, "strategy-digest"},
		{"a rollout that reverts itself", plan(func(p *commands.PlanRollout) { p.Head.Reverts = "r1" }), commands.CodeBadValue, "itself"},
		{"two commits of a repository", plan(func(p *commands.PlanRollout) {
			p.Head.Commits = []events.FixedCommit{{Repository: "r", Commit: "1"}, {Repository: "r", Commit: "2"}}
		}), commands.CodeBadValue, "twice"},
		{"a step without change", plan(func(p *commands.PlanRollout) { p.Steps[0].After = nil }), commands.CodeMissingField, "changes nothing"},
		{"a step to where it is", plan(func(p *commands.PlanRollout) { p.Steps[0].Before = p.Steps[0].After }), commands.CodeBadValue, "changes nothing"},
		{"a refresh to something else", plan(func(p *commands.PlanRollout) { p.Steps[0].Refresh = true }), commands.CodeBadValue, "refresh"},
		{"a step to nothing", plan(func(p *commands.PlanRollout) { p.Steps[0].After = &events.Version{} }), commands.CodeMissingField, "says nothing"},
		{"a step that waits for itself", plan(func(p *commands.PlanRollout) { p.Steps[0].WaitsFor = []events.WaitFor{{StepName: p.Steps[0].StepName}} }), commands.CodeBadValue, "itself"},
		{"a step that ended somehow", commands.EndStep{ID: "r", StepName: step, StepResult: events.StepResult{Outcome: "fine"}}, commands.CodeBadValue, "done, failed, unknown, skipped"},
		{"a step settled as unknown", commands.SettleStep{ID: "r", StepName: step, Outcome: "unknown", Reason: "x"}, commands.CodeBadValue, "done, failed, skipped"},
		{"a step settled without a reason", commands.SettleStep{ID: "r", StepName: step, Outcome: "done"}, commands.CodeMissingField, "reason"},
		{"a step retried without a reason", commands.RetryStep{ID: "r", StepName: step}, commands.CodeMissingField, "reason"},
		{"blocked by nothing", commands.BlockRollout{ID: "r"}, commands.CodeBadValue, "holds"},
		{"superseded by itself", commands.SupersedeRollout{ID: "r", By: "r"}, commands.CodeBadValue, "itself"},
		{"a lease without end", commands.TakeLease{Name: "l", Holder: "h"}, commands.CodeMissingField, "ttl"},
		{"paused for no reason", commands.PauseProjection{View: "v", Reason: " "}, commands.CodeMissingField, "reason"},
		{"a skip of nothing", commands.SkipProjection{View: "v", Reason: "x"}, commands.CodeMissingField, "event"},
		{"a skip for no reason", commands.SkipProjection{View: "v", Event: 1}, commands.CodeMissingField, "reason"},
		{"a lease too long", commands.TakeLease{Name: "l", Holder: "h", TTL: "25h"}, commands.CodeTooLarge, "24h"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if refusal := refused(t, c.payload.Validate(), c.code); !strings.Contains(refusal.Error(), c.says) {
				t.Errorf("%q does not say %q", refusal.Error(), c.says)
			}
		})
	}
}

// names gives a payload of every kind of key with the name in each place of it.
func names(name string) []es.Payload {
	return []es.Payload{
		commands.RegisterModule{ModuleSpec: events.ModuleSpec{Module: name}},
		commands.RegisterNode{Node: name},
		commands.RecordCommit{Repository: name, Commit: name},
		commands.ReaskBuild{ID: name},
		commands.RecordPublication{Reference: events.Reference{Artifact: name}},
		commands.RecordPublication{Reference: events.Reference{Package: &events.Package{Name: name, Version: name}}},
		commands.Assign{Node: name, Module: name, Reference: events.Reference{Artifact: name}, Build: name, Commit: name},
		commands.Move{Node: name, Module: name, To: name + "2"},
		commands.LiftFreeze{Name: name},
		commands.RenewLease{Name: name, Holder: name},
		commands.PauseProjection{View: name, Reason: "x"},
		commands.TakeMerge{Repository: name, Branch: name, Commit: name, Rollout: name},
		commands.EndTrack{Track: name},
		commands.EndStrategy{Name: name},
		commands.BeginStep{ID: name, StepName: events.StepName{Node: name, Module: name}},
	}
}

// TestNames covers the cases D01, D02, D07 and D11 where a command is checked.
func TestNames(t *testing.T) {
	t.Parallel()
	good := []string{"a~b", "a:b", "a@b", "node ä", "節点", "🚀", "👩‍🚀", "a..b", ".a", "a.", ".", "..", "*", ">", "é", strings.Repeat("節", 85)}
	for _, name := range good {
		for _, p := range names(name) {
			if len(name) > 254 {
				if _, ok := p.(commands.Move); ok {
					continue // its target is one byte longer
				}
			}
			if err := p.Validate(); err != nil {
				t.Errorf("%T %q: %v", p, name, err)
			}
			if subject := p.Ref().Subject(); len(subject) > es.MaxSubjectBytes || !utf8.ValidString(subject) {
				t.Errorf("%T %q: subject of %d bytes", p, name, len(subject))
			}
		}
	}
	bad := []struct{ name, says string }{
		{"", "empty"},
		{"a\u00a0b", "U+00A0"},
		{"a\u200bb", "U+200B"},
		{"e\u0301", "normal form C"},
		{"a\nb", "U+000A"},
		{"\xff", "UTF-8"},
		{strings.Repeat("x", 5000), "5000 bytes: the limit is 255"},
	}
	for _, c := range bad {
		for _, p := range names(c.name) {
			var refusal *es.Refusal
			err := p.Validate()
			if !errors.As(err, &refusal) || refusal.Status != es.StatusInvalid {
				t.Errorf("%T %.20q: got %v, want a refusal", p, c.name, err)
				continue
			}
			if c.name == "" {
				continue // which of its fields is missing depends on the command
			}
			if !strings.Contains(refusal.Message, c.says) {
				t.Errorf("%T %.20q: %q does not say %q", p, c.name, refusal.Message, c.says)
			}
		}
	}
}

func TestMapPersons(t *testing.T) {
	t.Parallel()
	c := commands.RecordCommit{Repository: "r", Commit: "c", Author: "Ann"}
	var personal dispatch.Personal = c
	got, err := personal.MapPersons(func(name string) (string, error) { return "id-of-" + name, nil })
	if err != nil || got.(commands.RecordCommit).Author != "id-of-Ann" {
		t.Errorf("got %v, %v", got, err)
	}
	fault := errors.New("no directory")
	if _, err := personal.MapPersons(func(string) (string, error) { return "", fault }); !errors.Is(err, fault) {
		t.Errorf("got %v, want the directory's error", err)
	}
	c.Author = ""
	if _, err := c.MapPersons(func(string) (string, error) { return "", fault }); err != nil {
		t.Errorf("nobody is named, but the directory was asked: %v", err)
	}
}
