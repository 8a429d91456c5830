package store

import (
	"cmp"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"catenary/audit"
	"catenary/es"
	"catenary/es/estest"
	"catenary/events"
	"catenary/internal/realdata"
)

func govukJSON[T any](t testing.TB, name string) T {
	t.Helper()
	var v T
	text, err := os.ReadFile(filepath.Join(realdata.Dir(t), "govuk", name))
	if err == nil {
		err = json.Unmarshal(text, &v)
	}
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// mainSet is a store over three months of real deliveries and the state before them.
func mainSet(t testing.TB) *Store {
	r := newRecorder(t)
	start := time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC)
	for environment, apps := range govukJSON[map[string]map[string]string](t, "state-at-2026-05-01.json") {
		for app, version := range apps {
			r.add(es.Event{Ref: ref(environment, app), Recorded: estest.Epoch().AddDate(1, 0, 0), Effective: start}, events.AssignmentAssigned{Told: told(environment, app, version)})
		}
	}
	r.replay(govuk(t, "deliveries-2026-05-07.ndjson.gz"), estest.Epoch().AddDate(1, 0, 1))
	s := running(t, Config{Events: r.stream, Clock: func() time.Time { return estest.Epoch().AddDate(2, 0, 0) }})
	caughtUp(t, s, r.stream)
	return s
}

// TestMainSet asks what stood when in three months of real deliveries, and counts them.
func TestMainSet(t *testing.T) {
	t.Parallel()
	s := mainSet(t)
	type question struct {
		Env, App, Answer string
		T                time.Time
	}
	asked := govukJSON[[]question](t, "expected-point-in-time.json")
	if len(asked) != 40 {
		t.Fatalf("%d questions, want 40", len(asked))
	}
	for _, q := range asked {
		found, err := s.AsOf(t.Context(), audit.AsOfQuestion{Moment: audit.Moment{At: q.T}, Node: q.Env, Module: q.App})
		if err != nil || len(found.Assignments) != 1 || found.Assignments[0].Package.Version != q.Answer {
			t.Errorf("%s in %s at %s: got %+v (%v), want %s", q.App, q.Env, q.T, found.Assignments, err, q.Answer)
		}
		blame, err := s.Blame(t.Context(), audit.BlameQuestion{Node: q.Env, Module: q.App, Moment: audit.Moment{At: q.T}})
		if err != nil || !blame.Stands || blame.Now.Package.Version != q.Answer || blame.Change.Effective.After(q.T) {
			t.Errorf("blame of %s in %s at %s: got %+v (%v), want %s", q.App, q.Env, q.T, blame, err, q.Answer)
		}
	}
	for when, file := range map[string]string{"2026-05-01T00:00:00Z": "state-at-2026-05-01.json", "2026-08-01T00:00:00Z": "state-at-2026-08-01.json"} {
		at, err := time.Parse(time.RFC3339, when)
		if err != nil {
			t.Fatal(err)
		}
		if diff := gocmp.Diff(govukJSON[map[string]map[string]string](t, file), versionsAt(t, s, audit.Moment{At: at}, 50)); diff != "" {
			t.Errorf("the state at %s (-want +got):\n%s", when, diff)
		}
	}
	totals := govukJSON[struct {
		ByEnv     map[string]int `json:"deploys_by_env"`
		TopApps   [][]any        `json:"top_apps"`
		Rollbacks map[string]int `json:"numeric_rollbacks_by_env"`
		Drift     int            `json:"drift_at_end"`
		DriftInt  int            `json:"drift_int_vs_prod"`
	}](t, "aggregates.json")
	report := func(name, by string) audit.ReportAnswer {
		t.Helper()
		found, err := s.Report(t.Context(), audit.ReportQuestion{Report: name, By: by})
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	deliveries, rollbacks := map[string]int{}, map[string]int{}
	for _, row := range report(audit.ReportDeliveries, audit.ByNode).Deliveries {
		if row.Of != "test" { // nothing changed there
			deliveries[row.Of] = row.Changed
		}
	}
	if diff := gocmp.Diff(totals.ByEnv, deliveries); diff != "" {
		t.Errorf("deliveries by node (-want +got):\n%s", diff)
	}
	byModule := map[string]int{}
	for _, row := range report(audit.ReportDeliveries, audit.ByModule).Deliveries {
		byModule[row.Of] = row.Changed
	}
	for _, top := range totals.TopApps {
		if app, n := top[0].(string), int(top[1].(float64)); byModule[app] != n {
			t.Errorf("%d deliveries of %s, want %d", byModule[app], app, n)
		}
	}
	weeks, sum := report(audit.ReportDeliveries, audit.ByWeek).Deliveries, 0
	for _, row := range weeks {
		sum += row.Changed
	}
	if len(weeks) != 14 || weeks[0].Of != "2026-04-27" || sum != 7422 {
		t.Errorf("%d deliveries in %d weeks from %s on, want 7422 in 14 from 2026-04-27 on", sum, len(weeks), weeks[0].Of)
	}
	since, want, got := time.Date(2026, 7, 1, 0, 0, 0, 0, time.UTC), 0, 0
	for _, d := range govuk(t, "deliveries-2026-05-07.ndjson.gz") {
		if d.Kind == "deploy" && !d.T.Before(since) && d.T.Before(since.AddDate(0, 0, 7)) {
			want++
		}
	}
	week, err := s.Report(t.Context(), audit.ReportQuestion{Report: audit.ReportDeliveries, By: audit.ByModule, Since: since, Until: since.AddDate(0, 0, 7)})
	for _, row := range week.Deliveries {
		got += row.Changed
	}
	if err != nil || got != want || want == 0 {
		t.Errorf("%d deliveries in a week (%v), want %d", got, err, want)
	}
	for _, row := range report(audit.ReportRollbacks, audit.ByNode).Rollbacks {
		rollbacks[row.Of] = row.Lower
	}
	if diff := gocmp.Diff(totals.Rollbacks, rollbacks); diff != "" {
		t.Errorf("roll-backs by node (-want +got):\n%s", diff)
	}
	drift := map[string]int{}
	for _, row := range report(audit.ReportDrift, "").Drift {
		drift[row.From+" "+row.To] = len(row.Modules)
	}
	if drift["production staging"] != totals.Drift || drift["integration production"] != totals.DriftInt {
		t.Errorf("drift is %v, want %d between staging and production and %d between integration and production", drift, totals.Drift, totals.DriftInt)
	}
	lead := report(audit.ReportLeadTime, audit.ByNode).LeadTimes
	for _, row := range lead {
		if row.Of == "production" && (row.Deliveries < 1000 || row.Median <= 0 || row.Longest < row.P90 || row.P90 < row.Median) {
			t.Errorf("lead times of production are %+v", row)
		}
	}
	diff, err := s.Diff(t.Context(), audit.DiffQuestion{From: audit.Side{Node: "staging"}, To: audit.Side{Node: "production"}})
	if err != nil || diff.Changed != totals.Drift || len(diff.Differences) != diff.Started+diff.Ended+diff.Changed {
		t.Errorf("diff of staging and production: %+v (%v), want %d changed", diff, err, totals.Drift)
	}
}

// versionsAt gives the version of every assignment at a moment, read in pages.
func versionsAt(t *testing.T, s *Store, m audit.Moment, page int) map[string]map[string]string {
	t.Helper()
	found := map[string]map[string]string{}
	q := audit.AsOfQuestion{Moment: m, Page: audit.Page{Limit: page}}
	last := audit.Standing{}
	for {
		a, err := s.AsOf(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		for _, st := range a.Assignments {
			if cmp.Or(cmp.Compare(last.Node, st.Node), cmp.Compare(last.Module, st.Module)) >= 0 {
				t.Errorf("%s/%s comes after %s/%s", st.Node, st.Module, last.Node, last.Module)
			}
			last = st
			if found[st.Node] == nil {
				found[st.Node] = map[string]string{}
			}
			found[st.Node][st.Module] = st.Package.Version
		}
		if a.Next == "" {
			return found
		}
		q.Cursor = a.Next
	}
}
