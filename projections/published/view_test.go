package published_test

import (
	"testing"

	"catenary/es"
	"catenary/es/project/projecttest"
	"catenary/events"
	"catenary/projections/perkey"
	"catenary/projections/published"
	"catenary/projections/viewtest"
)

func TestView(t *testing.T) {
	t.Parallel()
	pkg := events.Reference{Package: &events.Package{Name: "@shop/web", Version: "0362525"}}
	of := func(key string) func(any) projecttest.Fact {
		return func(data any) projecttest.Fact {
			return projecttest.Fact{Ref: es.Ref{Aggregate: events.AggregatePublication, Key: key}, Data: data, Actor: "a1"}
		}
	}
	web := of(es.Key("@shop/web", "0362525"))
	recorded := web(events.PublicationRecorded{Reference: pkg, Build: "b1", Commit: "c0ffee", Module: "web"})
	attested := web(events.PublicationAttested{Attestation: events.Attestation{Kind: "slsa", Reference: "https://x/<1>", Digest: "sha256:2"}})
	vetoed := web(events.PublicationVetoed{Reason: "broken"})
	lifted := web(events.PublicationVetoLifted{Reason: "not so"})
	const (
		plain       = `{"package":{"name":"@shop/web","version":"0362525"},"build":"b1","commit":"c0ffee","module":"web","at":"2026-01-01T00:01:00Z"`
		attestation = `{"kind":"slsa","reference":"https://x/<1>","digest":"sha256:2"}`
	)
	sentForAnother := vetoed
	sentForAnother.OnBehalfOf = "p9"
	digest := events.Reference{Artifact: "sha256:ab"}
	facts := func(f ...projecttest.Fact) []projecttest.Fact { return f }
	viewtest.Check(t, published.New, []viewtest.Row{
		{Name: "recorded", When: recorded, Then: plain + `}`},
		{
			Name: "an artifact", When: of(es.Key("sha256:ab"))(events.PublicationRecorded{Reference: digest}),
			Then: `{"artifact":"sha256:ab","at":"2026-01-01T00:01:00Z"}`,
		},
		{Name: "attested", Given: facts(recorded), When: attested, Then: plain + `,"attestations":[` + attestation + `]}`},
		{
			Name: "attested twice", Given: facts(recorded, attested), When: attested,
			Then: plain + `,"attestations":[` + attestation + `,` + attestation + `]}`,
		},
		{
			Name: "vetoed", Given: facts(recorded), When: vetoed,
			Then: plain + `,"vetoed":{"by":"a1","reason":"broken","at":"2026-01-01T00:02:00Z"}}`,
		},
		{
			Name: "vetoed by a tool on somebody's behalf", Given: facts(recorded), When: sentForAnother,
			Then: plain + `,"vetoed":{"by":"p9","reason":"broken","at":"2026-01-01T00:02:00Z"}}`,
		},
		{
			Name: "vetoed again", Given: facts(recorded, vetoed), When: sentForAnother,
			Then: plain + `,"vetoed":{"by":"p9","reason":"broken","at":"2026-01-01T00:03:00Z"}}`,
		},
		{Name: "lifted", Given: facts(recorded, vetoed), When: lifted, Then: plain + `}`},
		{
			Name: "recorded again: what was said about it stays", Given: facts(recorded, attested, vetoed), When: recorded,
			Then: plain + `,"attestations":[` + attestation + `],"vetoed":{"by":"a1","reason":"broken","at":"2026-01-01T00:03:00Z"}}`,
		},
		{Name: "attested without being known", When: attested, Fails: perkey.ErrUntold.Error()},
		{Name: "vetoed without being known", When: vetoed, Fails: perkey.ErrUntold.Error()},
		{Name: "lifted without being known", When: lifted, Fails: perkey.ErrUntold.Error()},
	})
}

func TestUnknownData(t *testing.T) {
	t.Parallel()
	viewtest.CheckUnknown(t, published.New, false)
}
