package builds_test

import (
	"testing"

	"github.com/cockroachdb/errors"

	"catenary/es"
	"catenary/es/project"
	"catenary/es/project/projecttest"
	"catenary/events"
	"catenary/projections/builds"
	"catenary/projections/perkey"
)

func b1(data any) projecttest.Fact {
	return projecttest.Fact{Ref: es.Ref{Aggregate: events.AggregateBuild, Key: "b1"}, Data: data, Actor: "ci"}
}

var spec = events.BuildSpec{
	ID: "b1", Module: "web", Repository: "git.example/shop", Seat: "shop", Path: "web", Ref: "refs/heads/main", Commit: "c0ffee",
	For: events.ForMerge, On: "ci-3", Against: []string{"db@1.20"},
	Sources:           []events.Source{{Repository: "git.example/lib", Ref: "v1", Paths: []string{"a", "b"}}},
	SourceFingerprint: "f1", ReuseKey: "k1",
}

// What of the specification stands before and after what changes.
const (
	head    = `{"id":"b1",`
	source  = `"repository":"git.example/shop","ref":"refs/heads/main","module":"web","commit":"c0ffee","on":"ci-3","path":"web",`
	against = `"against":["db@1.20"],`
	sources = `"sources":[{"repository":"git.example/lib","ref":"v1","paths":["a","b"]}],"source-fingerprint":"f1",`
	wish    = `"request":{"repository":"git.example/shop","seat":"shop","path":"web","ref":"refs/heads/main","commit":"c0ffee","for":"merge",`
	askedAt = `"asked":"2026-01-01T00:01:00Z",`
	at      = `"at":"2026-01-01T00:01:00Z"`
)

func TestView(t *testing.T) {
	t.Parallel()
	asked := b1(events.BuildAsked{BuildSpec: spec})
	notAsked := b1(events.BuildNotAsked{BuildSpec: spec, Why: "no runner"})
	unknown := b1(events.BuildOutcomeUnknown{Why: "gave up after 1h"})
	pending := b1(events.BuildReaskPending{Reason: "flaky"})
	claimed := b1(events.BuildReaskClaimed{By: "a2"})
	reasked := b1(events.BuildReasked{As: "b2"})
	succeeded := b1(events.BuildSucceeded{
		Made:     []events.Made{{Name: "web", Kind: "image", Reference: "sha256:1"}},
		Mirrored: []string{"registry/web"}, Read: []events.Read{{Repository: "git.example/shop", Ref: "c0ffee", Paths: []string{"web"}, Own: true}},
		Manifest: events.Raw("{ \"schema\": 1.0,\n \"x\": \"<&>\" }\n"),
	})
	failed := b1(events.BuildFailed{Failed: "exit 1: <boom>"})
	published := b1(events.BuildPublished{Reference: events.Reference{Package: &events.Package{Name: "web", Version: "1.20"}}})
	const (
		made = `"manifest":{ "schema": 1.0,` + "\n" + ` "x": "<&>" }` + "\n" + `,"against":["db@1.20"],"mirrored":["registry/web"],` +
			`"read":[{"repository":"git.example/shop","ref":"c0ffee","paths":["web"],"own":true}],`
		product = `"made":[{"name":"web","kind":"image","reference":"sha256:1"}],`
	)
	facts := func(f ...projecttest.Fact) []projecttest.Fact { return f }
	check(t, []scenario{
		{
			name: "asked", when: asked,
			then: head + `"state":"asked",` + source + against + sources + askedAt + `"reuse-key":"k1",` + wish + at + `}}`,
		},
		{
			name: "not asked", when: notAsked,
			then: head + `"state":"not-asked",` + source + against + sources + `"reuse-key":"k1",` + wish + `"not-asked":"no runner",` + at +
				`,"at-terminal":"2026-01-01T00:01:00Z"}}`,
		},
		{
			name: "not asked after all", given: facts(asked), when: notAsked,
			then: head + `"state":"not-asked",` + source + against + sources + askedAt + `"reuse-key":"k1",` + wish + `"not-asked":"no runner",` + at +
				`,"at-terminal":"2026-01-01T00:02:00Z"}}`,
		},
		{
			name: "asked after it was not: begins anew", given: facts(notAsked), when: asked,
			then: head + `"state":"asked",` + source + against + sources + `"asked":"2026-01-01T00:02:00Z","reuse-key":"k1",` + wish + `"at":"2026-01-01T00:02:00Z"}}`,
		},
		{
			name: "outcome unknown", given: facts(asked), when: unknown,
			then: head + `"state":"outcome-unknown",` + source + against + sources + askedAt + `"reuse-key":"k1",` + wish + `"outcome-unknown":"gave up after 1h",` + at +
				`,"at-terminal":"2026-01-01T00:02:00Z"}}`,
		},
		{
			name: "shall be asked again", given: facts(asked, unknown), when: pending,
			then: head + `"state":"outcome-unknown",` + source + against + sources + askedAt + `"reuse-key":"k1",` + wish + `"outcome-unknown":"gave up after 1h",` + at +
				`,"at-terminal":"2026-01-01T00:02:00Z","reask":"pending"}}`,
		},
		{
			name: "claimed", given: facts(asked, unknown, pending), when: claimed,
			then: head + `"state":"outcome-unknown",` + source + against + sources + askedAt + `"reuse-key":"k1",` + wish + `"outcome-unknown":"gave up after 1h",` + at +
				`,"at-terminal":"2026-01-01T00:02:00Z","reask":"claimed"}}`,
		},
		{
			name: "asked again as another", given: facts(asked, unknown, pending, claimed), when: reasked,
			then: head + `"state":"outcome-unknown",` + source + against + sources + askedAt + `"reuse-key":"k1",` + wish + `"outcome-unknown":"gave up after 1h",` + at +
				`,"at-terminal":"2026-01-01T00:02:00Z","reask":"b2"}}`,
		},
		{
			name: "succeeded: the state goes, the request stays", given: facts(asked), when: succeeded,
			then: head + source + made + sources + product + askedAt + `"at":"2026-01-01T00:02:00Z","reuse-key":"k1",` + wish + at +
				`,"at-terminal":"2026-01-01T00:02:00Z"}}`,
		},
		{
			name: "succeeded after nobody waited any more: nobody need ask again", given: facts(asked, unknown, pending), when: succeeded,
			then: head + source + made + sources + product + askedAt + `"at":"2026-01-01T00:04:00Z","reuse-key":"k1",` + wish + `"outcome-unknown":"gave up after 1h",` + at +
				`,"at-terminal":"2026-01-01T00:02:00Z"}}`,
		},
		{
			name: "failed while somebody is about to ask again", given: facts(asked, unknown, pending, claimed), when: failed,
			then: head + source + against + sources + `"failed":"exit 1: <boom>",` + askedAt + `"at":"2026-01-01T00:05:00Z","reuse-key":"k1",` + wish +
				`"outcome-unknown":"gave up after 1h",` + at + `,"at-terminal":"2026-01-01T00:02:00Z","reask":"claimed"}}`,
		},
		{
			name: "failed", given: facts(asked), when: failed,
			then: head + source + against + sources + `"failed":"exit 1: <boom>",` + askedAt + `"at":"2026-01-01T00:02:00Z","reuse-key":"k1",` + wish + at +
				`,"at-terminal":"2026-01-01T00:02:00Z"}}`,
		},
		{
			name: "published", given: facts(asked, succeeded), when: published,
			then: head + source + made + sources + product + askedAt + `"at":"2026-01-01T00:02:00Z","reuse-key":"k1","published":{"package":{"name":"web","version":"1.20"}},` +
				wish + at + `,"at-terminal":"2026-01-01T00:02:00Z"}}`,
		},
		{name: "unknown without being asked", when: unknown, fails: perkey.ErrUntold.Error()},
		{name: "to be asked again without being asked", when: pending, fails: perkey.ErrUntold.Error()},
		{name: "claimed without being asked", when: claimed, fails: perkey.ErrUntold.Error()},
		{name: "asked again without being asked", when: reasked, fails: perkey.ErrUntold.Error()},
		{name: "succeeded without being asked", when: succeeded, fails: perkey.ErrUntold.Error()},
		{name: "failed without being asked", when: failed, fails: perkey.ErrUntold.Error()},
		{name: "published without being asked", when: published, fails: perkey.ErrUntold.Error()},
		{name: "a manifest that is not JSON", given: facts(asked), when: b1(events.BuildSucceeded{Manifest: events.Raw(`{`)}), fails: "manifest is not JSON"},
	})
}

func TestTheSameOutcomeAgain(t *testing.T) {
	t.Parallel()
	asked, failed := b1(events.BuildAsked{BuildSpec: events.BuildSpec{ID: "b1"}}), b1(events.BuildFailed{Failed: "no"})
	check(t, []scenario{{
		name: "failed", given: []projecttest.Fact{asked, failed}, when: failed,
		then: head + `"failed":"no",` + askedAt + `"at":"2026-01-01T00:03:00Z","request":{` + at + `,"at-terminal":"2026-01-01T00:02:00Z"}}`,
	}})
}

func check(t *testing.T, cases []scenario) {
	t.Helper()
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			outcome := projecttest.Spec(t, events.Registry(), builds.New).Given(c.given...).When(c.when)
			switch {
			case c.fails != "":
				outcome.ThenFails(c.fails)
			case c.then == "":
				outcome.ThenNothing()
			default:
				outcome.Then(project.Value{Key: c.when.Ref.Key, Data: []byte(c.then)})
			}
		})
	}
}

// scenario is one event with those before it, and the value it leads to: none when then is empty.
type scenario struct {
	name  string
	given []projecttest.Fact
	when  projecttest.Fact
	then  string
	fails string
}

func TestUnknownData(t *testing.T) {
	t.Parallel()
	_, err := builds.New().Fold(es.Event{Sequence: 7, Type: "build.later.v1", Ref: es.Ref{Aggregate: "build", Key: "k1"}})
	if !errors.Is(err, es.ErrUnknownType) {
		t.Errorf("data of a newer program gave error %v", err)
	}
}
