package published_test

import (
	"testing"

	"github.com/cockroachdb/errors"

	"catenary/es"
	"catenary/es/project"
	"catenary/es/project/projecttest"
	"catenary/events"
	"catenary/projections/perkey"
	"catenary/projections/published"
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
	check(t, []scenario{
		{name: "recorded", when: recorded, then: plain + `}`},
		{
			name: "an artifact", when: of(es.Key("sha256:ab"))(events.PublicationRecorded{Reference: digest}),
			then: `{"artifact":"sha256:ab","at":"2026-01-01T00:01:00Z"}`,
		},
		{name: "attested", given: facts(recorded), when: attested, then: plain + `,"attestations":[` + attestation + `]}`},
		{
			name: "attested twice", given: facts(recorded, attested), when: attested,
			then: plain + `,"attestations":[` + attestation + `,` + attestation + `]}`,
		},
		{
			name: "vetoed", given: facts(recorded), when: vetoed,
			then: plain + `,"vetoed":{"by":"a1","reason":"broken","at":"2026-01-01T00:02:00Z"}}`,
		},
		{
			name: "vetoed by a tool on somebody's behalf", given: facts(recorded), when: sentForAnother,
			then: plain + `,"vetoed":{"by":"p9","reason":"broken","at":"2026-01-01T00:02:00Z"}}`,
		},
		{
			name: "vetoed again", given: facts(recorded, vetoed), when: sentForAnother,
			then: plain + `,"vetoed":{"by":"p9","reason":"broken","at":"2026-01-01T00:03:00Z"}}`,
		},
		{name: "lifted", given: facts(recorded, vetoed), when: lifted, then: plain + `}`},
		{
			name: "recorded again: what was said about it stays", given: facts(recorded, attested, vetoed), when: recorded,
			then: plain + `,"attestations":[` + attestation + `],"vetoed":{"by":"a1","reason":"broken","at":"2026-01-01T00:03:00Z"}}`,
		},
		{name: "attested without being known", when: attested, fails: perkey.ErrUntold.Error()},
		{name: "vetoed without being known", when: vetoed, fails: perkey.ErrUntold.Error()},
		{name: "lifted without being known", when: lifted, fails: perkey.ErrUntold.Error()},
	})
}

func check(t *testing.T, cases []scenario) {
	t.Helper()
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			outcome := projecttest.Spec(t, events.Registry(), published.New).Given(c.given...).When(c.when)
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
	_, err := published.New().Fold(es.Event{Sequence: 7, Type: "publication.later.v1", Ref: es.Ref{Aggregate: "publication", Key: "k1"}})
	if !errors.Is(err, es.ErrUnknownType) {
		t.Errorf("data of a newer program gave error %v", err)
	}
}
