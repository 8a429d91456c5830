package chain_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/errors"
	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"catenary/chain"
	"catenary/es"
	"catenary/es/project"
	"catenary/events"
)

func TestHistoryMergesWhatWasAdded(t *testing.T) {
	t.Parallel()
	web := func(build string) chain.Assignment {
		return chain.Assignment{Node: "n1", Module: "web", Build: build, Assigned: hour(0), Since: hour(0)}
	}
	seen := web("b1")
	seen.Observed = &chain.Observed{Build: "b1", At: hour(1)}
	ended := seen
	ended.Ended = hour(9)

	b := newBuckets()
	put(b, chain.Assignments, 1, 0, web("b1"))
	put(b, chain.Assignments, 2, 1, seen)
	put(b, chain.Assignments, 3, 9, ended)
	put(b, chain.Assignments, 4, 9, chain.Assignment{Node: "n1", Module: "web", Build: "b9", Assigned: hour(9), Since: hour(9)})
	put(b, chain.Assignments, 5, 0, chain.Assignment{Node: "n1", Module: "db"})
	added := chain.Assignment{Node: "n1", Module: "web", Build: "b3", Assigned: hour(3), Since: hour(3)}
	before := chain.Assignment{Node: "n1", Module: "web", Build: "b0", Assigned: hour(-5), Since: hour(-5)}
	again := chain.Assignment{Node: "n1", Module: "web", Build: "b7", Assigned: hour(7), Since: hour(7)}
	nothing := chain.Assignment{Node: "n1", Module: "web", Ended: hour(-6)}
	add(b, chain.Assignments, 6, 3, added)
	add(b, chain.Assignments, 7, 5, chain.Assignment{Node: "n1", Module: "web", Ended: hour(5)})
	add(b, chain.Assignments, 8, 7, again)
	add(b, chain.Assignments, 9, -5, before)
	add(b, chain.Assignments, 10, -6, nothing)

	got, err := chain.History(t.Context(), b.reader(), chain.Assignments, "n1", "web")
	if err != nil {
		t.Fatal(err)
	}
	// What an added value does not say of itself comes from the one before it: since when the module was there, what the
	// node last reported, and what it was that ended.
	added.Assigned, added.Observed = hour(0), seen.Observed
	then := added
	then.Ended = hour(5)
	again.Observed = seen.Observed
	type row struct {
		Sequence uint64
		Backfill bool
		Value    chain.Assignment
	}
	want := []row{
		{10, true, nothing},
		{9, true, before},
		{1, false, web("b1")},
		{2, false, seen},
		{6, true, added},
		{7, true, then},
		{8, true, again},
		{3, false, ended},
		{4, false, chain.Assignment{Node: "n1", Module: "web", Build: "b9", Assigned: hour(9), Since: hour(9)}},
	}
	rows := make([]row, len(got))
	for i, c := range got {
		rows[i] = row{c.Sequence, c.Backfill, c.Value}
		if raw := encoded(c.Value); string(raw) != string(c.Raw) {
			t.Errorf("value of event %d is %s, its raw form %s", c.Sequence, raw, c.Raw)
		}
	}
	if diff := gocmp.Diff(want, rows); diff != "" {
		t.Errorf("history (-want +got):\n%s", diff)
	}
}

func TestHistoryOfAMendedValue(t *testing.T) {
	t.Parallel()
	b := newBuckets()
	put(b, chain.Nodes, 1, 0, chain.Node{Node: "n1", ManagedBy: "forged"})
	put(b, chain.Nodes, 2, 1, chain.Node{Node: "n1", ManagedBy: "external"})
	put(b, chain.Nodes, 1, 0, chain.Node{Node: "n1", ManagedBy: "agent"})
	got, err := chain.History(t.Context(), b.reader(), chain.Nodes, "n1")
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != 2 || got[0].Value.ManagedBy != "agent" || got[1].Value.ManagedBy != "external" {
		t.Errorf("history is %+v", got)
	}
}

// TestHistoryShowsEveryValue is the reader's half of case C06: far more values than the client's own limit of 64.
func TestHistoryShowsEveryValue(t *testing.T) {
	t.Parallel()
	b := newBuckets()
	for i := range 70 {
		put(b, chain.Assignments, uint64(i+1), i, chain.Assignment{Node: "n1", Module: "web", Build: fmt.Sprintf("b%d", i)})
	}
	got, err := chain.History(t.Context(), b.reader(), chain.Assignments, "n1", "web")
	if err != nil || len(got) != 70 || got[0].Value.Build != "b0" || got[69].Value.Build != "b69" {
		t.Errorf("%d values with error %v", len(got), err)
	}
}

func TestHistoryOfNothing(t *testing.T) {
	t.Parallel()
	r := newBuckets().reader()
	if _, err := chain.History(t.Context(), r, chain.Modules, "web"); !errors.Is(err, es.ErrNotFound) || !strings.Contains(err.Error(), `no module "web"`) {
		t.Errorf("error is %v", err)
	}
	if _, err := chain.AsOf(t.Context(), r, chain.Modules, noon, "web"); !errors.Is(err, es.ErrNotFound) {
		t.Errorf("as-of gives error %v", err)
	}
}

func TestAsOf(t *testing.T) {
	t.Parallel()
	b := newBuckets()
	put(b, chain.Assignments, 1, 0, chain.Assignment{Node: "n1", Module: "web", Build: "b1"})
	put(b, chain.Assignments, 2, 2, chain.Assignment{Node: "n1", Module: "web", Build: "b2"})
	put(b, chain.Assignments, 3, 2, chain.Assignment{Node: "n1", Module: "web", Build: "b3"})
	put(b, chain.Assignments, 4, 6, chain.Assignment{Node: "n1", Module: "web", Build: "b3", Ended: hour(6)})
	add(b, chain.Assignments, 5, 1, chain.Assignment{Node: "n1", Module: "web", Build: "b5"})
	r := b.reader()
	for name, c := range map[string]struct {
		minutes int
		build   string
		stands  bool
	}{
		"at its first moment":              {0, "b1", true},
		"shortly before a value":           {59, "b1", true},
		"at one that was added":            {60, "b5", true},
		"at equal times the later":         {120, "b3", true},
		"between":                          {300, "b3", true},
		"ended":                            {360, "b3", false},
		"long after":                       {60 * 24 * 365, "b3", false},
		"in another zone at the same time": {120, "b3", true},
	} {
		at := noon.Add(hour(c.minutes).Sub(noon) / 60)
		got, err := chain.AsOf(t.Context(), r, chain.Assignments, at, "n1", "web")
		if err != nil || got.Value.Build != c.build || got.Value.Stands() != c.stands {
			t.Errorf("%s: %+v with error %v", name, got.Value, err)
		}
	}
	_, err := chain.AsOf(t.Context(), r, chain.Assignments, hour(-1), "n1", "web")
	if !errors.Is(err, es.ErrNotFound) || err.Error() != `there was no assignment "n1" "web" at 2026-05-07T11:00:00Z: its history begins at 2026-05-07T12:00:00Z` {
		t.Errorf("before its history: %v", err)
	}
}

// TestListAsOf compares with asking for one record after another.
func TestListAsOf(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		b := newBuckets()
		places := [][]string{{"n1", "web"}, {"n1", "db"}, {"n.2", "web"}}
		for i, hours := range rapid.SliceOfN(rapid.IntRange(0, 6), 1, 20).Draw(t, "effective") {
			p := rapid.SampledFrom(places).Draw(t, "place")
			a := chain.Assignment{Node: p[0], Module: p[1], Build: fmt.Sprint(i + 1)}
			if rapid.Bool().Draw(t, "ended") {
				a.Ended = hour(hours)
			}
			if rapid.Bool().Draw(t, "added") {
				add(b, chain.Assignments, uint64(i+1), hours, a)
			} else {
				put(b, chain.Assignments, uint64(i+1), hours, a)
			}
		}
		b.put(chain.Assignments.Bucket(), project.ParkedKey(es.Ref{Aggregate: "assignment", Key: "n1.web"}), []byte(`{}`), meta(99, 0))
		at := hour(rapid.IntRange(-1, 7).Draw(t, "at"))
		q := rapid.SampledFrom([]chain.Query{{}, {Node: "n1"}, {Module: "web"}, {Node: "n.2", Module: "web"}, {Node: "n9"}}).Draw(t, "query")
		var want []chain.Change[chain.Assignment]
		for _, p := range [][]string{places[1], places[0], places[2]} { // in the order of their keys
			then, err := chain.AsOf(t.Context(), b.reader(), chain.Assignments, at, p...)
			if (q.Node == "" || q.Node == p[0]) && (q.Module == "" || q.Module == p[1]) && err == nil {
				want = append(want, then)
			}
		}
		got, err := chain.ListAsOf(t.Context(), b.reader(), chain.Assignments, at, q)
		if diff := gocmp.Diff(want, got); diff != "" || err != nil {
			t.Fatalf("%+v gave (-want +got):\n%s%v", q, diff, err)
		}
	})
	if _, err := chain.ListAsOf(t.Context(), newBuckets().reader(), chain.Tracks, noon, chain.Query{Node: "n1"}); !errors.Is(err, chain.ErrQuery) {
		t.Errorf("what does not belong to a node: %v", err)
	}
}

// TestAsOfAgainstALook compares with the plainest way to find what was so: looking at all values for the last one.
func TestAsOfAgainstALook(t *testing.T) {
	t.Parallel()
	type value struct {
		hours    int
		sequence uint64
	}
	rapid.Check(t, func(t *rapid.T) {
		b := newBuckets()
		var values []value
		for i, hours := range rapid.SliceOfN(rapid.IntRange(0, 6), 1, 12).Draw(t, "effective") {
			v := value{hours, uint64(i + 1)}
			values = append(values, v)
			a := chain.Assignment{Node: "n1", Module: "web", Build: fmt.Sprint(v.sequence)}
			if rapid.Bool().Draw(t, "added") {
				add(b, chain.Assignments, v.sequence, hours, a)
			} else {
				put(b, chain.Assignments, v.sequence, hours, a)
			}
		}
		at := rapid.IntRange(-1, 7).Draw(t, "at")
		got, err := chain.AsOf(t.Context(), b.reader(), chain.Assignments, hour(at), "n1", "web")
		until := slices.DeleteFunc(values, func(v value) bool { return v.hours > at })
		if len(until) == 0 {
			if !errors.Is(err, es.ErrNotFound) {
				t.Fatalf("gave %+v with error %v", got, err)
			}
			return
		}
		want := slices.MaxFunc(until, func(a, b value) int {
			return cmp.Or(cmp.Compare(a.hours, b.hours), cmp.Compare(a.sequence, b.sequence))
		})
		if err != nil || got.Sequence != want.sequence {
			t.Fatalf("gave event %d with error %v, want %d", got.Sequence, err, want.sequence)
		}
	})
}

func TestChangeJSON(t *testing.T) {
	t.Parallel()
	c := chain.Change[chain.Assignment]{
		Sequence: 17, Recorded: hour(24), Effective: noon, Actor: "a1", OnBehalfOf: "p<1>", Type: events.TypeAssignmentAssigned,
		Value: chain.Assignment{Node: "n1", Module: "web", Provisioning: events.Raw("{ }\n")},
	}
	const head = `{"sequence":17,"recorded":"2026-05-08T12:00:00Z","effective":"2026-05-07T12:00:00Z","actor":"a1","on-behalf-of":"p<1>"`
	check := func(what, want string) {
		t.Helper()
		got, err := c.JSON()
		if err != nil || string(got) != want {
			t.Errorf("%s: %s with error %v, want %s", what, got, err, want)
		}
	}
	check("byte for byte", head+`,"value":{"node":"n1","module":"web","provisioning":{ }`+"\n}}")
	back := chain.Change[chain.Assignment]{}
	data, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &back); err != nil {
		t.Fatal(err)
	}
	back.Type, back.Raw, back.Value.Provisioning = c.Type, nil, c.Value.Provisioning
	if diff := gocmp.Diff(c, back); diff != "" {
		t.Errorf("read again (-want +got):\n%s", diff)
	}
	c.Raw = []byte(`{"node":"n1","module":"web","later":1}`)
	check("a newer program's field", head+`,"value":{"node":"n1","module":"web","later":1}}`)
	c.Backfill, c.OnBehalfOf = true, ""
	check("added, on nobody's behalf", strings.TrimSuffix(head, `,"on-behalf-of":"p<1>"`)+`,"backfill":true,"value":{"node":"n1","module":"web","later":1}}`)
	c.Raw, c.Value.Node = nil, "\xff"
	if got, err := c.JSON(); err == nil {
		t.Errorf("text that is not UTF-8 gave %s", got)
	}
}
