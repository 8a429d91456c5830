package aggregates_test

import (
	"fmt"
	"strings"
	"testing"

	"catenary/commands"
	"catenary/events"
)

func TestPublicationIsRecorded(t *testing.T) {
	t.Parallel()
	r1 := pkg("web", "1.20")
	record := func(build, commit, module string) commands.RecordPublication {
		return commands.RecordPublication{Reference: r1, Build: build, Commit: commit, Module: module}
	}
	buildPublished := on(commands.BuildRef("b1"), events.BuildPublished{Reference: r1})

	given(t).
		when(record("", "", "web")).then(published(r1, "", "", "web")).
		again().unchanged().
		when(record("", "c1", "web")).rejected("recorded", "web@1.20").
		when(commands.RecordPublication{Reference: pkg("web", "1.2")}).accepted() // text is text: another version
	// An unknown build is taken as it is said.
	given(t).
		when(record("ci-7", "c9", "web")).then(published(r1, "ci-7", "c9", "web"))
	// A known one fills in what is not said, and has published by it.
	given(t, asked("b1"), succeeded("b1")).
		when(record("b1", "", "")).then(published(r1, "b1", "c1", "web"), buildPublished).
		again().unchanged().
		when(record("b1", "c1", "web")).unchanged().
		when(commands.PublishBuild{ID: "b1", Reference: r1}).unchanged().
		when(commands.RecordPublication{Reference: pkg("web", "2"), Build: "b1"}).rejected("published", "web@1.20")
	// What contradicts it is refused.
	given(t, asked("b1"), succeeded("b1")).
		when(record("b1", "c2", "")).rejected("commit-mismatch", "c1", "c2").
		when(record("b1", "", "api")).rejected("module-mismatch", "web", "api")
	given(t, asked("b1"), on(commands.BuildRef("b1"), events.BuildFailed{Failed: "x"})).
		when(record("b1", "", "")).rejected("build-failed")
	// While the build is not answered, the publication stands alone; saying it again later lets the build have published.
	given(t, asked("b1")).
		when(record("b1", "", "")).then(published(r1, "b1", "c1", "web")).
		again().unchanged().
		and(succeeded("b1")).
		when(record("b1", "", "")).then(buildPublished)
}

func TestPublicationIsAttested(t *testing.T) {
	t.Parallel()
	r1 := artifact("sha256:1")
	attest := func(kind string) commands.AttestPublication {
		return commands.AttestPublication{Reference: r1, Attestation: events.Attestation{Kind: kind}}
	}
	attested := func(kind string) events.PublicationAttested {
		return events.PublicationAttested{Attestation: events.Attestation{Kind: kind}}
	}
	ref := commands.PublicationRef(r1)
	given(t).
		when(attest("slsa")).rejected("unknown-publication", "sha256:1").
		and(published(r1, "", "", "")).
		when(attest("slsa")).then(on(ref, attested("slsa"))).
		when(attest("sbom")).then(on(ref, attested("sbom"))).
		when(attest("slsa")).unchanged().
		when(attest("sbom")).unchanged()
}

func TestPublicationRecordIsBounded(t *testing.T) {
	t.Parallel()
	r1 := artifact("sha256:1")
	s := given(t, published(r1, "", "", ""))
	attest := func(i int) commands.AttestPublication {
		return commands.AttestPublication{Reference: r1, Attestation: events.Attestation{Kind: "slsa", Reference: fmt.Sprintf("%01000d", i)}}
	}
	i := 0
	for ; i < 100; i++ {
		o := s.when(attest(i))
		if _, err := s.world.Decide(o.command); err != nil {
			o.rejected("too-large", "publication sha256=3A1", "65536")
			break
		}
		o.accepted()
	}
	if i < 50 || i > 63 {
		t.Errorf("%d attestations of 1 KB fit into a record of 64 KiB", i)
	}
	s.when(attest(0)).unchanged()
}

func TestVeto(t *testing.T) {
	t.Parallel()
	r1 := pkg("web", "1")
	ref := commands.PublicationRef(r1)
	veto := commands.VetoPublication{Reference: r1, Reason: "breaks logins"}
	other := commands.VetoPublication{Reference: r1, Reason: "slow"}
	lift := commands.LiftVeto{Reference: r1, Reason: "was the database"}
	given(t).
		when(veto).rejected("unknown-publication").
		when(lift).rejected("unknown-publication").
		and(published(r1, "", "", "web")).
		when(lift).rejected("not-vetoed").
		when(veto).then(vetoed(r1, "breaks logins")).
		again().unchanged().
		when(other).rejected("vetoed", "by tester", "breaks logins").
		when(lift).then(on(ref, events.PublicationVetoLifted{Reason: "was the database"})).
		again().rejected("not-vetoed").
		when(other).then(vetoed(r1, "slow"))
}

func TestAVetoedPublicationNeedsAReason(t *testing.T) {
	t.Parallel()
	r1 := pkg("web", "1")
	byHand := commands.Assign{Node: "n1", Module: "web", Reference: r1, Reason: "only this one starts"}
	given(t, also(nodes("n1", "n2"), modules("web"))...).
		and(published(r1, "", "", "web"), vetoed(r1, "breaks logins")).
		when(assign("n1", "web", "1")).rejected("vetoed", "web@1", "tester", "breaks logins", "reason").
		when(commands.Pend{Node: "n1", Module: "web", Reference: r1}).rejected("vetoed").
		when(byHand).accepted().
		when(commands.Move{Node: "n1", Module: "web", To: "n2"}).rejected("vetoed").
		when(commands.Move{Node: "n1", Module: "web", To: "n2", Reason: "n1 dies"}).accepted()
}

func TestNewestPublication(t *testing.T) {
	t.Parallel()
	late := day.AddDate(0, 0, -1)
	old := day.AddDate(0, -1, 0)
	record := func(version string) commands.RecordPublication {
		return commands.RecordPublication{Reference: pkg("web", version), Module: "web"}
	}
	s := given(t)
	newest := func(want string) {
		t.Helper()
		ref, _, ok := s.world.Newest("web")
		if got := strings.TrimPrefix(ref.String(), "web@"); ok != (want != "") || got != want {
			t.Errorf("the newest is %q, want %q", got, want)
		}
	}
	newest("")
	s.when(record("2"), effective(late)).accepted()
	newest("2")
	s.when(record("1"), effective(old)).accepted() // an older one that came in later
	newest("2")
	s.when(record("3"), effective(late)).accepted() // as old, but later in the stream
	newest("3")
	s.and(vetoed(pkg("web", "3"), "x"))
	newest("2")
	s.and(vetoed(pkg("web", "2"), "x"))
	newest("1")
	s.and(vetoed(pkg("web", "1"), "x"))
	newest("")
	s.and(on(commands.PublicationRef(pkg("web", "2")), events.PublicationVetoLifted{}))
	newest("2")
	s.when(commands.RecordPublication{Reference: artifact("sha256:a b"), Module: "web"}).accepted()
	if ref, _, _ := s.world.Newest("web"); ref.Artifact != "sha256:a b" {
		t.Errorf("the newest is %v", ref)
	}
}
