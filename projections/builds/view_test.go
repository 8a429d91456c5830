package builds_test

import (
	"testing"

	"catenary/es"
	"catenary/es/project/projecttest"
	"catenary/events"
	"catenary/projections/builds"
	"catenary/projections/perkey"
	"catenary/projections/viewtest"
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
	viewtest.Check(t, builds.New, []viewtest.Row{
		{
			Name: "asked", When: asked,
			Then: head + `"state":"asked",` + source + against + sources + askedAt + `"reuse-key":"k1",` + wish + at + `}}`,
		},
		{
			Name: "not asked", When: notAsked,
			Then: head + `"state":"not-asked",` + source + against + sources + `"reuse-key":"k1",` + wish + `"not-asked":"no runner",` + at +
				`,"at-terminal":"2026-01-01T00:01:00Z"}}`,
		},
		{
			Name: "not asked after all", Given: facts(asked), When: notAsked,
			Then: head + `"state":"not-asked",` + source + against + sources + askedAt + `"reuse-key":"k1",` + wish + `"not-asked":"no runner",` + at +
				`,"at-terminal":"2026-01-01T00:02:00Z"}}`,
		},
		{
			Name: "asked after it was not: begins anew", Given: facts(notAsked), When: asked,
			Then: head + `"state":"asked",` + source + against + sources + `"asked":"2026-01-01T00:02:00Z","reuse-key":"k1",` + wish + `"at":"2026-01-01T00:02:00Z"}}`,
		},
		{
			Name: "outcome unknown", Given: facts(asked), When: unknown,
			Then: head + `"state":"outcome-unknown",` + source + against + sources + askedAt + `"reuse-key":"k1",` + wish + `"outcome-unknown":"gave up after 1h",` + at +
				`,"at-terminal":"2026-01-01T00:02:00Z"}}`,
		},
		{
			Name: "shall be asked again", Given: facts(asked, unknown), When: pending,
			Then: head + `"state":"outcome-unknown",` + source + against + sources + askedAt + `"reuse-key":"k1",` + wish + `"outcome-unknown":"gave up after 1h",` + at +
				`,"at-terminal":"2026-01-01T00:02:00Z","reask":"pending"}}`,
		},
		{
			Name: "claimed", Given: facts(asked, unknown, pending), When: claimed,
			Then: head + `"state":"outcome-unknown",` + source + against + sources + askedAt + `"reuse-key":"k1",` + wish + `"outcome-unknown":"gave up after 1h",` + at +
				`,"at-terminal":"2026-01-01T00:02:00Z","reask":"claimed"}}`,
		},
		{
			Name: "asked again as another", Given: facts(asked, unknown, pending, claimed), When: reasked,
			Then: head + `"state":"outcome-unknown",` + source + against + sources + askedAt + `"reuse-key":"k1",` + wish + `"outcome-unknown":"gave up after 1h",` + at +
				`,"at-terminal":"2026-01-01T00:02:00Z","reask":"b2"}}`,
		},
		{
			Name: "succeeded: the state goes, the request stays", Given: facts(asked), When: succeeded,
			Then: head + source + made + sources + product + askedAt + `"at":"2026-01-01T00:02:00Z","reuse-key":"k1",` + wish + at +
				`,"at-terminal":"2026-01-01T00:02:00Z"}}`,
		},
		{
			Name: "succeeded after nobody waited any more: nobody need ask again", Given: facts(asked, unknown, pending), When: succeeded,
			Then: head + source + made + sources + product + askedAt + `"at":"2026-01-01T00:04:00Z","reuse-key":"k1",` + wish + `"outcome-unknown":"gave up after 1h",` + at +
				`,"at-terminal":"2026-01-01T00:02:00Z"}}`,
		},
		{
			Name: "failed while somebody is about to ask again", Given: facts(asked, unknown, pending, claimed), When: failed,
			Then: head + source + against + sources + `"failed":"exit 1: <boom>",` + askedAt + `"at":"2026-01-01T00:05:00Z","reuse-key":"k1",` + wish +
				`"outcome-unknown":"gave up after 1h",` + at + `,"at-terminal":"2026-01-01T00:02:00Z","reask":"claimed"}}`,
		},
		{
			Name: "failed", Given: facts(asked), When: failed,
			Then: head + source + against + sources + `"failed":"exit 1: <boom>",` + askedAt + `"at":"2026-01-01T00:02:00Z","reuse-key":"k1",` + wish + at +
				`,"at-terminal":"2026-01-01T00:02:00Z"}}`,
		},
		{
			Name: "published", Given: facts(asked, succeeded), When: published,
			Then: head + source + made + sources + product + askedAt + `"at":"2026-01-01T00:02:00Z","reuse-key":"k1","published":{"package":{"name":"web","version":"1.20"}},` +
				wish + at + `,"at-terminal":"2026-01-01T00:02:00Z"}}`,
		},
		{Name: "unknown without being asked", When: unknown, Fails: perkey.ErrUntold.Error()},
		{Name: "to be asked again without being asked", When: pending, Fails: perkey.ErrUntold.Error()},
		{Name: "claimed without being asked", When: claimed, Fails: perkey.ErrUntold.Error()},
		{Name: "asked again without being asked", When: reasked, Fails: perkey.ErrUntold.Error()},
		{Name: "succeeded without being asked", When: succeeded, Fails: perkey.ErrUntold.Error()},
		{Name: "failed without being asked", When: failed, Fails: perkey.ErrUntold.Error()},
		{Name: "published without being asked", When: published, Fails: perkey.ErrUntold.Error()},
		{Name: "a manifest that is not JSON", Given: facts(asked), When: b1(events.BuildSucceeded{Manifest: events.Raw(`{`)}), Fails: "manifest: it is not JSON"},
	})
}

func TestTheSameOutcomeAgain(t *testing.T) {
	t.Parallel()
	asked, failed := b1(events.BuildAsked{BuildSpec: events.BuildSpec{ID: "b1"}}), b1(events.BuildFailed{Failed: "no"})
	viewtest.Check(t, builds.New, []viewtest.Row{{
		Name: "failed", Given: []projecttest.Fact{asked, failed}, When: failed,
		Then: head + `"failed":"no",` + askedAt + `"at":"2026-01-01T00:03:00Z","request":{` + at + `,"at-terminal":"2026-01-01T00:02:00Z"}}`,
	}})
}

func TestUnknownData(t *testing.T) {
	t.Parallel()
	viewtest.CheckUnknown(t, builds.New, false)
}
