package aggregates_test

import (
	"fmt"
	"strings"
	"testing"

	"catenary/aggregates"
	"catenary/commands"
	"catenary/es"
	"catenary/events"
)

func TestBuildIsAsked(t *testing.T) {
	t.Parallel()
	ask := commands.AskBuild{BuildSpec: spec("b1")}
	other := spec("b1")
	other.Commit = "c2"
	given(t).
		when(ask).then(asked("b1")).
		again().unchanged().
		when(commands.AskBuild{BuildSpec: other}).rejected("asked", "something else", "another id").
		and(succeeded("b1")).
		when(ask).rejected("asked", "succeeded")
}

func TestBuildIsNotAsked(t *testing.T) {
	t.Parallel()
	no := commands.NotAskedBuild{BuildSpec: spec("b1"), Why: "no runner"}
	other := no
	other.Why = "no network"
	elsewhere := no
	elsewhere.Commit = "c2"
	fact := on(commands.BuildRef("b1"), events.BuildNotAsked{BuildSpec: spec("b1"), Why: "no runner"})
	given(t).
		when(no).then(fact).
		again().unchanged().
		when(other).rejected("not-asked").
		when(elsewhere).rejected("asked", "something else").
		when(commands.UnknownBuild{ID: "b1", Why: "x"}).rejected("not-asked").
		when(commands.SucceedBuild{ID: "b1"}).rejected("not-asked", "reask").
		when(commands.AskBuild{BuildSpec: spec("b1")}).rejected("asked", "not asked", "another id")
	given(t, asked("b1")).
		when(elsewhere).rejected("asked").
		when(no).then(fact)
	given(t, asked("b1"), succeeded("b1")).
		when(no).rejected("answered")
	given(t, asked("b1"), on(commands.BuildRef("b1"), events.BuildOutcomeUnknown{Why: "x"})).
		when(no).rejected("outcome-unknown", "reask")
}

func TestBuildOutcomes(t *testing.T) {
	t.Parallel()
	ref := commands.BuildRef("b1")
	succeed := commands.SucceedBuild{ID: "b1", Made: []events.Made{{Name: "web"}}, Manifest: events.Raw(`{"a": 1}`)}
	success := on(ref, events.BuildSucceeded{Made: []events.Made{{Name: "web"}}, Manifest: events.Raw(`{"a": 1}`)})
	otherwise := commands.SucceedBuild{ID: "b1", Made: []events.Made{{Name: "api"}}}
	fail := commands.FailBuild{ID: "b1", Failed: "exit 1"}
	failure := on(ref, events.BuildFailed{Failed: "exit 1"})
	unknown := commands.UnknownBuild{ID: "b1", Why: "no answer"}

	given(t).
		when(succeed).rejected("unknown-build", "b1").
		when(fail).rejected("unknown-build").
		when(unknown).rejected("unknown-build")
	given(t, asked("b1")).
		when(succeed).then(success).
		again().unchanged().
		when(otherwise).rejected("answered", "final").
		when(fail).rejected("answered").
		when(unknown).rejected("answered")
	given(t, asked("b1")).
		when(fail).then(failure).
		again().unchanged().
		when(commands.FailBuild{ID: "b1", Failed: "exit 2"}).rejected("answered").
		when(succeed).rejected("answered")
	// An outcome that comes after the asker stopped waiting is taken.
	given(t, asked("b1")).
		when(unknown).then(on(ref, events.BuildOutcomeUnknown{Why: "no answer"})).
		again().unchanged().
		when(succeed).then(success)
	given(t, asked("b1")).when(unknown).accepted().when(fail).then(failure)
}

func TestBuildThatWasAskedElsewhere(t *testing.T) {
	t.Parallel()
	ref := commands.BuildRef("b1")
	request := &commands.RecordedBuild{Module: "web", Repository: "shop", Commit: "c1"}
	other := &commands.RecordedBuild{Module: "web", Repository: "shop", Commit: "c2"}
	given(t).
		when(commands.SucceedBuild{ID: "b1", Request: request}).then(asked("b1"), succeeded("b1")).
		again().unchanged().
		when(commands.SucceedBuild{ID: "b1"}).unchanged().
		when(commands.SucceedBuild{ID: "b1", Request: other}).rejected("request-mismatch")
	given(t).
		when(commands.FailBuild{ID: "b1", Failed: "exit 1", Request: request}).then(asked("b1"), on(ref, events.BuildFailed{Failed: "exit 1"})).
		again().unchanged()
	given(t, asked("b1")).
		when(commands.FailBuild{ID: "b1", Failed: "exit 1", Request: other}).rejected("request-mismatch").
		when(commands.FailBuild{ID: "b1", Failed: "exit 1", Request: request}).accepted()
}

func TestBuildIsAskedAgain(t *testing.T) {
	t.Parallel()
	ref := commands.BuildRef("b1")
	reask := commands.ReaskBuild{ID: "b1", Reason: "lost"}
	claim := commands.ClaimBuild{ID: "b1", By: "e1"}
	unknown := on(ref, events.BuildOutcomeUnknown{Why: "no answer"})
	pending := on(ref, events.BuildReaskPending{Reason: "lost"})
	claimed := on(ref, events.BuildReaskClaimed{By: "e1"})
	again := commands.AskBuild{BuildSpec: spec("b2"), Reasks: "b1"}
	third := commands.AskBuild{BuildSpec: spec("b3"), Reasks: "b1"}

	given(t).
		when(reask).rejected("unknown-build").
		when(claim).rejected("unknown-build").
		when(again).rejected("unknown-build", "b1")
	given(t, asked("b1")).
		when(reask).rejected("unanswered", "build unknown").
		when(claim).rejected("not-pending", "build reask").
		and(unknown).
		when(claim).rejected("not-pending").
		when(reask).then(pending).
		again().unchanged().
		when(again).rejected("not-claimed", "build claim").
		when(claim).then(claimed).
		again().rejected("claimed", "claimed by e1").
		when(reask).unchanged().
		when(again).then(on(commands.BuildRef("b2"), events.BuildAsked{BuildSpec: spec("b2"), Reasks: "b1"}), on(ref, events.BuildReasked{As: "b2"})).
		again().unchanged().
		when(third).rejected("reasked", "asked again as b2").
		when(commands.AskBuild{BuildSpec: spec("b2"), Reasks: "b9"}).rejected("asked").
		when(reask).rejected("reasked", "b2").
		when(claim).rejected("reasked", "b2").
		when(commands.SucceedBuild{ID: "b1"}).accepted() // late, and still taken
	// One that was not handed over can be asked again too.
	given(t, on(ref, events.BuildNotAsked{BuildSpec: spec("b1"), Why: "x"})).when(reask).then(pending)
	// An outcome ends a wish that nobody took up.
	given(t, asked("b1"), unknown, pending).
		when(commands.SucceedBuild{ID: "b1"}).accepted().
		when(claim).rejected("answered").
		when(reask).rejected("answered")
	// A claim without a name is a claim.
	given(t, asked("b1"), unknown, pending).
		when(commands.ClaimBuild{ID: "b1"}).accepted().
		again().rejected("claimed", "somebody")
	// Who claimed must be able to end the claim, even when an outcome or an equal build came meanwhile.
	same := spec("b2")
	same.ReuseKey = "k"
	given(t, asked("b1"), unknown, pending, claimed, succeeded("b1")).
		and(on(commands.BuildRef("b0"), events.BuildAsked{BuildSpec: withKey("b0", "k")}), succeeded("b0")).
		when(commands.AskBuild{BuildSpec: same, Reasks: "b1"}).accepted()
}

func withKey(id, key string) events.BuildSpec {
	b := spec(id)
	b.ReuseKey = key
	return b
}

func TestBuildIsReused(t *testing.T) {
	t.Parallel()
	ask := func(id, key string) commands.AskBuild { return commands.AskBuild{BuildSpec: withKey(id, key)} }
	given(t).
		when(ask("b1", "k")).accepted().
		when(ask("b2", "k")).accepted(). // b1 has not succeeded yet
		when(commands.FailBuild{ID: "b1", Failed: "x"}).accepted().
		when(ask("b3", "k")).accepted().
		when(commands.SucceedBuild{ID: "b2"}).accepted().
		when(ask("b4", "k")).refused(es.StatusUnchanged, "reused", "build b2").
		when(commands.SucceedBuild{ID: "b3"}).accepted().
		when(ask("b4", "k")).refused(es.StatusUnchanged, "reused", "build b2"). // the first stays the one
		when(ask("b4", "other")).accepted().
		when(ask("b5", "")).accepted()
}

func TestBuildPublishes(t *testing.T) {
	t.Parallel()
	ref := commands.BuildRef("b1")
	r1 := pkg("web", "1")
	publish := commands.PublishBuild{ID: "b1", Reference: r1}
	fact := on(ref, events.BuildPublished{Reference: r1})

	given(t).when(publish).rejected("unknown-build")
	given(t, asked("b1")).when(publish).rejected("not-succeeded", "asked")
	given(t, asked("b1"), on(ref, events.BuildFailed{Failed: "x"})).when(publish).rejected("not-succeeded", "failed")
	given(t, asked("b1"), succeeded("b1")).
		when(publish).then(fact, published(r1, "b1", "c1", "web")).
		again().unchanged().
		when(commands.PublishBuild{ID: "b1", Reference: pkg("web", "2")}).rejected("published", "web@1").
		when(commands.PublishBuild{ID: "b1", Reference: artifact("sha256:1")}).rejected("published")
	// Recorded before, for this build or for none: only the build publishes.
	given(t, asked("b1"), succeeded("b1"), published(r1, "b1", "c1", "web")).when(publish).then(fact)
	given(t, asked("b1"), succeeded("b1"), published(r1, "", "", "web")).when(publish).then(fact)
	// Recorded for another build.
	given(t, asked("b1"), succeeded("b1"), published(r1, "b0", "c1", "web")).when(publish).rejected("recorded", "build b0")
}

func TestBuildRecordIsBounded(t *testing.T) {
	t.Parallel()
	manifest := func(bytes int) events.Raw {
		return events.Raw(`{"a":"` + strings.Repeat("x", bytes-8) + `"}`)
	}
	sources := func(n int) events.BuildSpec {
		b := spec("b1")
		for i := range n {
			b.Sources = append(b.Sources, events.Source{Repository: fmt.Sprintf("%0100d", i)})
		}
		return b
	}
	// Each of the two fits, both together do not.
	givenWorld(t, aggregates.Config{MaxValueBytes: 5_000}).
		when(commands.AskBuild{BuildSpec: sources(15)}).accepted().
		when(commands.SucceedBuild{ID: "b1", Manifest: manifest(3_000)}).rejected("too-large", "build b1", "5000").
		when(commands.SucceedBuild{ID: "b1", Manifest: manifest(1_000)}).accepted()
	given(t).
		when(commands.AskBuild{BuildSpec: sources(700)}).rejected("too-large", "65536")
}
