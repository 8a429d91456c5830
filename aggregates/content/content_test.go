package content_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"catenary/aggregates/content"
	"catenary/events"
)

func TestDigestDependsOnContentAlone(t *testing.T) {
	t.Parallel()
	a := events.ModuleSpec{Module: "web", Labels: map[string]string{}}
	b := events.ModuleSpec{Module: "web", Labels: map[string]string{}}
	for _, k := range []string{"x", "y", "z", "u", "v"} {
		a.Labels[k] = k
	}
	for _, k := range []string{"v", "z", "u", "y", "x"} {
		b.Labels[k] = k
	}
	if content.Of(a) != content.Of(b) {
		t.Error("the order of labels changes the digest")
	}
	b.Labels["x"] = ""
	if content.Of(a) == content.Of(b) {
		t.Error("another label does not change the digest")
	}
	zone := time.FixedZone("east", 7200)
	at := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	if content.Of(events.CommitRecorded{Merged: at}) != content.Of(events.CommitRecorded{Merged: at.In(zone)}) {
		t.Error("the zone of a time changes the digest")
	}
}

// TestMeasureIsABound compares with what the standard library writes.
func TestMeasureIsABound(t *testing.T) {
	t.Parallel()
	var m content.Measure
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"", "web", "a\"b\\c", "<&>", "\u2028\u2029", "\x00\x1f\n\t", "節点🚀", "\xff\xfe"}))
		raw, err := json.Marshal(map[string]string{text.Draw(t, "name"): text.Draw(t, "value")})
		if err != nil {
			t.Fatal(err)
		}
		values := []any{
			events.AssignmentAssigned{Told: events.Told{
				Node: text.Draw(t, "node"), Module: text.Draw(t, "module"), Provisioning: raw,
				Reference:  events.Reference{Package: &events.Package{Name: text.Draw(t, "package"), Version: text.Draw(t, "version")}},
				RequiredBy: rapid.SliceOf(text).Draw(t, "required by"),
			}},
			events.ModuleRegistered{ModuleSpec: events.ModuleSpec{
				Module: text.Draw(t, "module"), Labels: rapid.MapOfN(text, text, 0, 5).Draw(t, "labels"),
				Delivery: &events.Delivery{Check: &events.Check{Exec: rapid.SliceOf(text).Draw(t, "exec"), Successes: rapid.Int().Draw(t, "successes")}},
			}},
			events.BuildSucceeded{Read: []events.Read{{Repository: text.Draw(t, "repository"), Own: rapid.Bool().Draw(t, "own")}}, Manifest: raw},
			events.CommitRecorded{Merged: time.Unix(rapid.Int64Range(0, 1<<33).Draw(t, "seconds"), rapid.Int64Range(0, 999_999_999).Draw(t, "nanos")).UTC()},
			events.AssignmentApplied{Seen: events.Seen{Source: rapid.Uint64().Draw(t, "source")}},
			events.FreezeDeclared{Window: &events.Window{Recurring: &events.Recurring{Days: []string{"mon"}}}},
		}
		for _, v := range values {
			body, err := json.Marshal(v)
			if err != nil {
				t.Fatal(err)
			}
			if got := m.JSON(v); got < len(body) {
				t.Fatalf("%#v: measured %d, takes %d", v, got, len(body))
			}
		}
	})
}

// TestMeasureIsClose guards against a bound so wide that it refuses what has room.
func TestMeasureIsClose(t *testing.T) {
	t.Parallel()
	var m content.Measure
	v := events.AssignmentAssigned{Told: events.Told{
		Node: "n1", Module: "web", Reference: events.Reference{Package: &events.Package{Name: "web", Version: "1"}},
		RequiredBy: []string{"a", "b"}, Provisioning: events.Raw(`{"a":"` + strings.Repeat("x", 1000) + `"}`),
	}}
	body, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	if got := m.JSON(v); got > len(body)+16 {
		t.Errorf("measured %d, takes %d", got, len(body))
	}
	if got := m.JSON(nil); got != len("null") {
		t.Errorf("nothing takes %d", got)
	}
}
