package strategy_test

import (
	"os"
	"strings"
	"testing"

	"github.com/cockroachdb/errors"
	"github.com/google/go-cmp/cmp"

	"catenary/events"
	"catenary/rollout/strategy"
)

func TestRead(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("testdata/canary.yaml")
	if err != nil {
		t.Fatal(err)
	}
	got, err := strategy.Read("canary.yaml", text)
	if err != nil {
		t.Fatal(err)
	}
	want := events.Strategy{
		Description: "One node first, then half of the rest.", Rollback: events.RollbackAutomatic,
		Tiers: []events.Tier{
			{Name: "canary", Selector: events.Selector{Nodes: []string{"n1"}}, Gate: events.GateHealthy, Bake: "10m"},
			{
				Name: "the rest", Approval: true, Concurrency: events.PercentOf(50), FailureBudget: events.ShareOf(1), Offline: events.OfflineSkip,
				Retry: 2, Delay: "30s", Timeout: "5m", Limit: &events.Limit{PerMinute: 60, Burst: 10}, Semaphores: []string{"database:2", ":42"},
			},
		},
		Edges: []events.Edge{{From: events.Place{Module: "db"}, To: events.Place{Module: "web"}, Notify: true}},
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(events.Share{})); diff != "" {
		t.Errorf("the strategy (-want +got):\n%s", diff)
	}
	// Its canonical form is read back as the same, and has the same digest.
	raw, digest, err := got.Canonical()
	if err != nil {
		t.Fatal(err)
	}
	again, err := events.ParseStrategy(raw)
	if err != nil {
		t.Fatal(err)
	}
	if _, same, err := again.Canonical(); err != nil || same != digest {
		t.Errorf("read back it has the digest %s, not %s: %v", same, digest, err)
	}
}

// TestTextIsText covers case D10 in strategy files: what YAML would take for something else is a name like any other.
func TestTextIsText(t *testing.T) {
	t.Parallel()
	names := []string{"4651090", "1.20", "0362525", "1e5", "true", "012", "NaN", "2026-05-01", "no"}
	text := "tiers:\n  - name: 1.0\n    selector:\n      nodes: [" + strings.Join(names, ", ") + "]\n      labels: {retry: 012, approval: true}\n"
	got, err := strategy.Read("f", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	want := events.Tier{Name: "1.0", Selector: events.Selector{Nodes: names, Labels: map[string]string{"retry": "012", "approval": "true"}}}
	if diff := cmp.Diff(want, got.Tiers[0], cmp.AllowUnexported(events.Share{})); diff != "" {
		t.Errorf("the tier (-want +got):\n%s", diff)
	}
}

func TestReadSaysWhereItIsWrong(t *testing.T) {
	t.Parallel()
	tier := func(lines ...string) string {
		return "tiers:\n  - name: a\n    " + strings.Join(lines, "\n    ") + "\n"
	}
	for name, c := range map[string]struct{ text, want string }{
		"nothing":                   {"", "f.yaml: it is empty: see catenary strategy schema"},
		"no YAML":                   {"tiers:\n  - {", "f.yaml: it is not YAML"},
		"a list":                    {"- a\n", "f.yaml:1: got array, want object"},
		"no tiers":                  {"description: x\n", `f.yaml:1: missing property "tiers"`},
		"an empty list":             {"tiers: []\n", "f.yaml:1: tiers: minItems: got 0, want 1"},
		"a misspelt field":          {tier("bakes: 5m"), "f.yaml:3: tiers[0].bakes: there is no such field"},
		"a field twice":             {tier("bake: 5m", "bake: 6m"), "f.yaml:4: tiers[0].bake: it is given twice"},
		"an empty field":            {tier("bake:"), "f.yaml:3: tiers[0].bake: it is empty: leave it out"},
		"no span":                   {tier("timeout: 5m", "bake: long"), `f.yaml:4: tiers[0].bake: "long" is not a span of time: write it like 30s`},
		"a span of nothing":         {tier("bake: 0s"), "f.yaml:3: tiers[0].bake: 0s is not longer than nothing"},
		"a span of years":           {tier("bake: 9999h"), "f.yaml:3: tiers[0].bake: 9999h is too long: the limit is 2160h0m0s"},
		"half a step":               {tier("concurrency: 1.5"), "f.yaml:3: tiers[0].concurrency: it is neither a number nor a part such as 25%"},
		"more than all":             {tier("concurrency: 101%"), "f.yaml:3: tiers[0].concurrency: it is neither"},
		"none at once":              {tier("concurrency: 0"), "f.yaml:3: tiers[0].concurrency: with 0 nothing would ever begin"},
		"another gate":              {tier("gate: open"), `f.yaml:3: tiers[0].gate: value must be one of "applied", "healthy"`},
		"approval by somebody":      {tier("approval: ann"), "f.yaml:3: tiers[0].approval: it is neither true nor false"},
		"half a retry":              {tier("retry: 1.5"), "f.yaml:3: tiers[0].retry: it is not a whole number"},
		"two documents":             {tier() + "---\n" + tier(), "f.yaml:4: another document begins: a file holds one strategy"},
		"two that are broken":       {tier() + "---\n{", "f.yaml: it is not YAML"},
		"a semaphore twice":         {tier("semaphores: [db:2, ':3', db:3]"), `f.yaml:3: tiers[0].semaphores[2]: semaphore "db" is named twice`},
		"no limit":                  {tier("limit: {burst: 3}"), `f.yaml:3: tiers[0].limit: missing property "per-minute"`},
		"a semaphore without count": {tier("semaphores: [db]"), `f.yaml:3: tiers[0].semaphores[0]: "db" has no count: write id:count`},
		"two tiers of a name":       {tier() + "  - name: a\n", `f.yaml:4: tiers[1].name: there are two tiers "a"`},
		"after nobody":              {tier("after: [b]"), `f.yaml:3: tiers[0].after[0]: there is no tier "b"`},
		"an edge to nowhere":        {tier() + "edges:\n  - {from: {module: a}, to: {}}\n", "f.yaml:5: edges[0].to: minProperties: got 0, want 1"},
		"a reference":               {"tiers: &x [{name: a}]\nedges: *x\n", "f.yaml:2: edges: it refers to another place: write it out"},
		"a name that is not seen":   {"tiers:\n  - name: \"a\\u200b\"\n", "f.yaml:2: tiers[0].name: it \"a\\u200b\" has the character U+200B"},
		"too large":                 {strings.Repeat("#", strategy.MaxFileBytes+1), "f.yaml: it has 65537 bytes: the limit is 65536"},
		// Case E32 where it is written down: t1 after t2 after t1.
		"a circle": {"tiers:\n  - {name: t1, after: [t2]}\n  - {name: t2, after: [t1]}\n", "f.yaml:1: tiers: they wait for each other in a circle: t1 after t2 after t1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := strategy.Read("f.yaml", []byte(c.text))
			var wrong *strategy.Error
			if !errors.As(err, &wrong) || !strings.HasPrefix(err.Error(), c.want) {
				t.Errorf("gave %+v and %v\nwant %s", got, err, c.want)
			}
		})
	}
}

func FuzzRead(f *testing.F) {
	text, err := os.ReadFile("testdata/canary.yaml")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Add([]byte("tiers: &a [*a]"))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := strategy.Read("f", data)
		if err != nil {
			return
		}
		if err := s.Check(); err != nil {
			t.Errorf("what was read is wrong: %v", err)
		}
	})
}
