package events_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"catenary/events"
)

func TestStrategiesAreChecked(t *testing.T) {
	t.Parallel()
	tier := func(fields string) string { return `{"tiers":[{"name":"a",` + fields + `}]}` }
	for text, says := range map[string]string{
		`{`:                                     "unexpected EOF",
		`{"tiers":[]}`:                          "tiers: there is none",
		`{"tiers":[{"name":"a"}]} {}`:           "goes on after its end",
		`{"tiers":[{"name":""}]}`:               "tiers[0].name: it is empty",
		`{"tiers":[{"name":"a"},{"name":"a"}]}`: `tiers[1].name: there are two tiers "a"`,
		`{"tiers":[{"name":"a"}],"rollback":"never"}`:                        "rollback: \"never\" is unknown: it is one of automatic, manual",
		`{"tiers":[{"name":"a"}],"edges":[{"from":{},"to":{"module":"b"}}]}`: "edges[0].from: it picks nothing",
		`{"tiers":[{"name":"a","after":["b"]},{"name":"b","after":["a"]}]}`:  "a after b after a",
		tier(`"bakes":"5m"`):              "unknown field",
		tier(`"concurrency":0`):           "tiers[0].concurrency: with 0 nothing would ever begin",
		tier(`"concurrency":"0%"`):        "neither a number nor a part",
		tier(`"concurrency":-1`):          "neither a number nor a part",
		tier(`"delay":"-5m"`):             "tiers[0].delay: -5m is not longer than nothing",
		tier(`"gate":"open"`):             "tiers[0].gate",
		tier(`"offline":"hope"`):          "tiers[0].offline",
		tier(`"retry":101`):               "tiers[0].retry: 101: it lies between 0 and 100",
		tier(`"limit":{"per-minute":0}`):  "tiers[0].limit.per-minute",
		tier(`"semaphores":["db"]`):       "tiers[0].semaphores[0]",
		tier(`"semaphores":["db:0"]`):     "above zero",
		tier(`"selector":{"nodes":[""]}`): "tiers[0].selector.nodes[0]",
	} {
		if s, err := events.ParseStrategy(events.Raw(text)); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s\ngave %+v and %v, want an error that says %q", text, s, err, says)
		}
	}
}

// TestTheCanonicalFormIsOne holds that white space and the order of fields are no part of a strategy.
func TestTheCanonicalFormIsOne(t *testing.T) {
	t.Parallel()
	first, err := events.ParseStrategy(events.Raw(`{ "tiers": [ {"bake":"5m", "concurrency":"25%", "name":"a", "failure-budget":0} ] }`))
	if err != nil {
		t.Fatal(err)
	}
	second, err := events.ParseStrategy(events.Raw(`{"tiers":[{"name":"a","concurrency":"25%","failure-budget":0,"bake":"5m"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	one, digest, err := first.Canonical()
	if err != nil {
		t.Fatal(err)
	}
	other, same, err := second.Canonical()
	if err != nil || string(one) != string(other) || digest != same {
		t.Errorf("%s and %s, %v", one, other, err)
	}
	if string(one) != `{"tiers":[{"name":"a","concurrency":"25%","failure-budget":0,"bake":"5m"}]}` {
		t.Errorf("it is %s", one)
	}
}

func TestTiersAreOrdered(t *testing.T) {
	t.Parallel()
	s := events.Strategy{Tiers: []events.Tier{{Name: "a", After: []string{"c"}}, {Name: "b"}, {Name: "c", After: []string{"d"}}, {Name: "d"}}}
	ordered, err := s.Ordered()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, tier := range ordered {
		names = append(names, tier.Name)
	}
	if got := strings.Join(names, " "); got != "d c a b" {
		t.Errorf("walked as %s", got)
	}
}

func TestShares(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{`0`: 0, `3`: 3, `"1%"`: 0, `"25%"`: 5, `"100%"`: 20} {
		var s events.Share
		if err := json.Unmarshal([]byte(text), &s); err != nil || s.IsZero() || s.Of(20) != want {
			t.Errorf("%s of 20 is %d, %v", text, s.Of(20), err)
		}
		if again, err := json.Marshal(s); err != nil || string(again) != text {
			t.Errorf("%s is written as %s, %v", text, again, err)
		}
	}
	for _, text := range []string{`-1`, `"0%"`, `"101%"`, `"25"`, `1.5`, `null`, `"%"`, `[]`} {
		var s events.Share
		if err := s.UnmarshalJSON([]byte(text)); err == nil {
			t.Errorf("%s is read as %s", text, s)
		}
	}
}

func TestSemaphores(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{"db:2": "db", ":42": "", "a:b:3": "a:b"} {
		if id, count, err := events.ParseSemaphore(text); err != nil || id != want || count < 1 {
			t.Errorf("%s is %q and %d, %v", text, id, count, err)
		}
	}
}

// TestPlanDigestDoesNotDependOnParts holds that steps divided in any way have one digest, and in another order another.
func TestPlanDigestDoesNotDependOnParts(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var steps []events.PlannedStep
		for range rapid.IntRange(2, 20).Draw(t, "steps") {
			steps = append(steps, events.PlannedStep{Tier: "a", StepName: events.StepName{Node: rapid.StringN(1, 5, -1).Draw(t, "node"), Module: "m"}})
		}
		whole, err := events.PlanDigest{}.With(steps...)
		if err != nil {
			t.Fatal(err)
		}
		cut := rapid.IntRange(0, len(steps)).Draw(t, "cut")
		first, err := events.PlanDigest{}.With(steps[:cut]...)
		if err != nil {
			t.Fatal(err)
		}
		parts, err := first.With(steps[cut:]...)
		if err != nil || parts != whole {
			t.Fatalf("in parts %s, whole %s, %v", parts, whole, err)
		}
		if steps[0].Node != steps[1].Node {
			steps[0], steps[1] = steps[1], steps[0]
			if other, err := (events.PlanDigest{}).With(steps...); err != nil || other == whole {
				t.Fatalf("another order has the same digest, %v", err)
			}
		}
	})
}

// TestOpens holds against a plain look at every minute: the first one at which the window does not hold.
func TestOpens(t *testing.T) {
	t.Parallel()
	windows := []events.Window{
		{Recurring: &events.Recurring{Days: []string{"fri"}, From: "22:00", To: "06:00", Zone: "Europe/Berlin"}},
		{Recurring: &events.Recurring{Days: []string{"sat", "sun"}, From: "00:00", To: "24:00", Zone: "Europe/Berlin"}},
		{Recurring: &events.Recurring{From: "09:00", To: "17:00", Zone: "UTC"}, End: "2026-05-03T12:00:00Z"},
		{Start: "2026-04-30T00:00:00Z", End: "2026-05-04T00:30:00Z"},
	}
	for i, w := range windows {
		s, err := w.Schedule(time.LoadLocation)
		if err != nil {
			t.Fatal(err)
		}
		for hour := range 24 * 9 {
			at := time.Date(2026, 3, 26, hour, 7, 0, 0, time.UTC) // over a change of clocks
			if i == 3 {
				at = at.AddDate(0, 1, 5)
			}
			want := at
			for s.Holds(want) {
				want = want.Add(time.Minute)
			}
			want = want.Truncate(time.Minute)
			got, ok := s.Opens(at)
			if !ok || got.After(want.Add(time.Minute)) || got.Before(want.Add(-time.Minute)) || s.Holds(got) {
				t.Fatalf("window %d at %s opens at %s (%v), want %s", i, at, got, ok, want)
			}
		}
	}
	always, err := (events.Window{Start: "2026-01-01T00:00:00Z"}).Schedule(time.LoadLocation)
	if err != nil {
		t.Fatal(err)
	}
	if at, ok := always.Opens(time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC)); ok {
		t.Errorf("a window without an end opens at %s", at)
	}
	everyDay, err := (events.Window{Recurring: &events.Recurring{From: "00:00", To: "24:00", Zone: "UTC"}}).Schedule(time.LoadLocation)
	if err != nil {
		t.Fatal(err)
	}
	if at, ok := everyDay.Opens(time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC)); ok {
		t.Errorf("a window without a gap opens at %s", at)
	}
}
