package store

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/errors"
	gocmp "github.com/google/go-cmp/cmp"

	"catenary/audit"
	"catenary/chain"
	"catenary/es"
	"catenary/es/estest"
	"catenary/events"
)

// minute is a moment of the small chain's history.
func minute(n int) time.Time { return estest.Epoch().Add(time.Duration(n) * time.Minute) }

func instance(aggregate string, names ...string) es.Ref {
	return es.Ref{Aggregate: aggregate, Key: es.Key(names...)}
}

// smallChain is a store over a chain with something of every kind:
//
//	minute 1  commit c0ffee1 of repository r is recorded
//	       2  build b1 of module web at it is asked for, and succeeds with a manifest; it publishes web@1.10
//	       4  n1 is told web@1.10, on behalf of ann
//	       6  n1/x is told pay/api@2
//	       8  n1 is told web@1.9, by roll-out ro-1, because of trouble
//	       9  the same again, for shop's sake
//	      10  n1 reports to run web@1.10, and at 11 that it is not well
//	      12  pay/api ends on n1/x
//	      13  n2 is told an artifact
func smallChain(t *testing.T) *Store {
	t.Helper()
	r := newRecorder(t)
	at := func(n int, ref es.Ref, data any) {
		r.add(es.Event{Ref: ref, Recorded: minute(n), Command: es.Cause{ID: fmt.Sprint("cmd-", n), Actor: "a-ci", OnBehalfOf: "a-ann", Correlation: "talk"}}, data)
	}
	web := func(version string) events.Reference {
		return events.Reference{Package: &events.Package{Name: "web", Version: version}}
	}
	at(1, instance("commit", "r", "c0ffee123456"), events.CommitRecorded{Repository: "r", Branch: "main", Commit: "c0ffee123456", Merged: minute(0), Author: "a-ann"})
	at(2, instance("build", "b1"), events.BuildAsked{BuildSpec: events.BuildSpec{ID: "b1", Module: "web", Repository: "r", Commit: "c0ffee123456"}})
	at(2, instance("build", "b1"), events.BuildSucceeded{Manifest: events.Raw(`{"modules":[{"module":"web","commit":"c0ffee123456"},{"module":"lib","version":"v3","commit":"badcafe7654321"},"plain"]}`)})
	at(2, instance("build", "b1"), events.BuildPublished{Reference: web("1.10")})
	at(3, instance("publication", "web", "1.10"), events.PublicationRecorded{Reference: web("1.10"), Build: "b1", Commit: "c0ffee123456", Module: "web"})
	at(4, ref("n1", "web"), events.AssignmentAssigned{Told: events.Told{Node: "n1", Module: "web", Reference: web("1.10"), Build: "b1", Reason: "first try"}})
	at(6, ref("n1/x", "pay/api"), events.AssignmentAssigned{Told: told("n1/x", "pay/api", "2")})
	rolled := events.Told{Node: "n1", Module: "web", Reference: web("1.9"), Rollout: "ro-1", Reason: "trouble <1%>"}
	at(8, ref("n1", "web"), events.AssignmentAssigned{Told: rolled})
	rolled.RequiredBy = []string{"shop"}
	at(9, ref("n1", "web"), events.AssignmentAssigned{Told: rolled})
	at(10, ref("n1", "web"), events.AssignmentApplied{Seen: events.Seen{Node: "n1", Module: "web", Reference: web("1.10"), Build: "b1"}})
	at(11, ref("n1", "web"), events.AssignmentUnhealthy{Seen: events.Seen{Node: "n1", Module: "web"}})
	at(12, ref("n1/x", "pay/api"), events.AssignmentEnded{Node: "n1/x", Module: "pay/api", Reason: "gone"})
	at(13, ref("n2", "web"), events.AssignmentAssigned{Told: events.Told{Node: "n2", Module: "web", Reference: events.Reference{Artifact: "sha256:abcdef"}}})
	r.flush()
	s := running(t, Config{Events: r.stream, Clock: func() time.Time { return minute(60) }})
	caughtUp(t, s, r.stream)
	ctx, cancel := contextOf(t)
	defer cancel()
	if err := s.SetActor(ctx, "a-ann", chain.Actor{Name: "Ann"}); err != nil {
		t.Fatal(err)
	}
	err := s.AddRefused(ctx, 1,
		audit.Refused{Sequence: 1, Recorded: minute(5), Command: "no-1", Aggregate: "assignment", Key: es.Key("n1", "web"), Verb: "assign", Actor: "a-bob", Status: "rejected", Code: "frozen", Message: "a freeze holds"},
		audit.Refused{Sequence: 2, Recorded: minute(20), Command: "no-2", Aggregate: "node", Key: "n9", Verb: "retire", Actor: "a-bob", Status: "denied"},
	)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestQuestions(t *testing.T) {
	t.Parallel()
	s := smallChain(t)
	t.Run("as-of", func(t *testing.T) { t.Parallel(); testAsOf(t, s) })
	t.Run("diff", func(t *testing.T) { t.Parallel(); testDiff(t, s) })
	t.Run("blame", func(t *testing.T) { t.Parallel(); testBlame(t, s) })
	t.Run("trace", func(t *testing.T) { t.Parallel(); testTrace(t, s) })
	t.Run("log", func(t *testing.T) { t.Parallel(); testLog(t, s) })
	t.Run("refused", func(t *testing.T) { t.Parallel(); testRefusedLog(t, s) })
	t.Run("sql", func(t *testing.T) { t.Parallel(); testSQL(t, s) })
	t.Run("export", func(t *testing.T) { t.Parallel(); testExport(t, s) })
	t.Run("malformed", func(t *testing.T) { t.Parallel(); testMalformed(t, s) })
}

func testAsOf(t *testing.T, s *Store) {
	for name, c := range map[string]struct {
		q    audit.AsOfQuestion
		want []string
	}{
		"now":               {q: audit.AsOfQuestion{}, want: []string{"n1 web web@1.9", "n2 web sha256:abcdef"}},
		"before anything":   {q: audit.AsOfQuestion{Moment: audit.Moment{At: minute(3)}}, want: nil},
		"in between":        {q: audit.AsOfQuestion{Moment: audit.Moment{At: minute(7)}}, want: []string{"n1 web web@1.10", "n1/x pay/api pay/api@2"}},
		"at the very time":  {q: audit.AsOfQuestion{Moment: audit.Moment{At: minute(8)}, Node: "n1"}, want: []string{"n1 web web@1.9"}},
		"of one module":     {q: audit.AsOfQuestion{Module: "web"}, want: []string{"n1 web web@1.9", "n2 web sha256:abcdef"}},
		"as known before":   {q: audit.AsOfQuestion{Moment: audit.Moment{At: minute(30), KnownAt: minute(7)}}, want: []string{"n1 web web@1.10", "n1/x pay/api pay/api@2"}},
		"observed":          {q: audit.AsOfQuestion{Observed: true}, want: []string{"n1 web web@1.10"}},
		"observed too soon": {q: audit.AsOfQuestion{Observed: true, Moment: audit.Moment{At: minute(9)}}, want: nil},
	} {
		found, err := s.AsOf(t.Context(), c.q)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		var got []string
		for _, a := range found.Assignments {
			got = append(got, a.Node+" "+a.Module+" "+a.Runs())
		}
		if diff := gocmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if found.Through != 13 || !found.Recorded.Equal(minute(13)) {
			t.Errorf("%s: it rests on %+v", name, found.Basis)
		}
	}
	ran, err := s.AsOf(t.Context(), audit.AsOfQuestion{Observed: true})
	if err != nil {
		t.Fatal(err)
	}
	unwell := false
	want := audit.AsOfAnswer{
		Shows: audit.ShowsObserved, Moment: audit.Moment{At: minute(60)}, Basis: ran.Basis,
		Assignments: []audit.Standing{{
			Node: "n1", Module: "web", Reference: events.Reference{Package: &events.Package{Name: "web", Version: "1.10"}}, Build: "b1",
			Assigned: minute(10), Since: minute(10), Sequence: 11, Known: minute(11), Healthy: &unwell, Reported: minute(11),
		}},
	}
	if diff := gocmp.Diff(want, ran); diff != "" {
		t.Errorf("observed (-want +got):\n%s", diff)
	}
}

func testDiff(t *testing.T, s *Store) {
	at := func(n int) audit.Moment { return audit.Moment{At: minute(n)} }
	for name, c := range map[string]struct {
		q    audit.DiffQuestion
		want []string
		same int
	}{
		"two moments":       {q: audit.DiffQuestion{From: audit.Side{Moment: at(7)}, To: audit.Side{Moment: at(20)}}, want: []string{"changed n1 web web@1.10 web@1.9", "ended n1/x pay/api pay/api@2 ", "started n2 web  sha256:abcdef"}},
		"the same":          {q: audit.DiffQuestion{From: audit.Side{Moment: at(8)}, To: audit.Side{Moment: at(9)}}, same: 2},
		"two nodes":         {q: audit.DiffQuestion{From: audit.Side{Node: "n1"}, To: audit.Side{Node: "n2"}}, want: []string{"changed  web web@1.9 sha256:abcdef"}},
		"told and observed": {q: audit.DiffQuestion{From: audit.Side{Node: "n1"}, To: audit.Side{Node: "n1", Observed: true}}, want: []string{"changed n1 web web@1.9 web@1.10"}},
		"one module":        {q: audit.DiffQuestion{From: audit.Side{Moment: at(7)}, To: audit.Side{}, Module: "pay/api"}, want: []string{"ended n1/x pay/api pay/api@2 "}},
	} {
		var got []string
		for c.q.Limit = 1; ; {
			d, err := s.Diff(t.Context(), c.q)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if d.Started+d.Ended+d.Changed != len(c.want) || d.Same != c.same || d.Differs() != (len(c.want) > 0) {
				t.Errorf("%s: it counts %d %d %d, %d the same", name, d.Started, d.Ended, d.Changed, d.Same)
			}
			for _, x := range d.Differences {
				var before, after string
				if x.Before != nil {
					before = x.Before.Runs()
				}
				if x.After != nil {
					after = x.After.Runs()
				}
				got = append(got, strings.Join([]string{x.Kind, x.Node, x.Module, before, after}, " "))
			}
			if d.Next == "" {
				break
			}
			c.q.Cursor = d.Next
		}
		if diff := gocmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func testBlame(t *testing.T, s *Store) {
	b, err := s.Blame(t.Context(), audit.BlameQuestion{Node: "n1", Module: "web"})
	if err != nil {
		t.Fatal(err)
	}
	deed := func(sequence uint64, n int) audit.Deed {
		return audit.Deed{
			Sequence: sequence, Event: fmt.Sprint("e-", sequence), Type: events.TypeAssignmentAssigned, Effective: minute(n), Recorded: minute(n), Actor: audit.Person{ID: "a-ci"},
			OnBehalfOf: &audit.Person{ID: "a-ann", Name: "Ann"}, Reason: "trouble <1%>", Rollout: "ro-1", Command: fmt.Sprint("cmd-", n), Correlation: "talk",
		}
	}
	web := func(version string) events.Reference {
		return events.Reference{Package: &events.Package{Name: "web", Version: version}}
	}
	touched := deed(9, 9)
	want := audit.BlameAnswer{
		Shows: audit.ShowsTold, Moment: audit.Moment{At: minute(60)}, Node: "n1", Module: "web", Stands: true, Change: deed(8, 8), Touched: &touched,
		Now:    &audit.Standing{Node: "n1", Module: "web", Reference: web("1.9"), Rollout: "ro-1", RequiredBy: []string{"shop"}, Assigned: minute(4), Since: minute(8), Sequence: 9, Known: minute(9)},
		Before: &audit.Standing{Node: "n1", Module: "web", Reference: web("1.10"), Build: "b1", Assigned: minute(4), Since: minute(4), Sequence: 6, Known: minute(4)},
		Basis:  b.Basis,
	}
	if diff := gocmp.Diff(want, b); diff != "" {
		t.Errorf("blame (-want +got):\n%s", diff)
	}
	first, err := s.Blame(t.Context(), audit.BlameQuestion{Node: "n1", Module: "web", Moment: audit.Moment{At: minute(5)}})
	if err != nil || first.Change.Reason != "first try" || first.Before != nil || first.Build == nil || first.Build.ID != "b1" || first.Published == nil || first.Published.Build != "b1" ||
		first.Commit == nil || first.Commit.Commit != "c0ffee123456" || first.Commit.Author.Name != "Ann" {
		t.Errorf("blame of the first: %+v (%v)", first, err)
	}
	gone, err := s.Blame(t.Context(), audit.BlameQuestion{Node: "n1/x", Module: "pay/api"})
	if err != nil || gone.Stands || gone.Now != nil || gone.Change.Reason != "gone" || gone.Before == nil || gone.Before.Runs() != "pay/api@2" {
		t.Errorf("blame of what ended: %+v (%v)", gone, err)
	}
	ran, err := s.Blame(t.Context(), audit.BlameQuestion{Node: "n1", Module: "web", Observed: true})
	if err != nil || ran.Change.Type != events.TypeAssignmentApplied || ran.Touched == nil || ran.Touched.Type != events.TypeAssignmentUnhealthy || ran.Shows != audit.ShowsObserved {
		t.Errorf("blame of what ran: %+v (%v)", ran, err)
	}
	for name, q := range map[string]audit.BlameQuestion{
		"nothing is known of a node": {Node: "n7", Module: "web"},
		"as-of --node lists":         {Node: "n1", Module: "shop"},
	} {
		if _, err := s.Blame(t.Context(), q); !errors.Is(err, audit.ErrNotFound) || !strings.Contains(errors.FlattenHints(err), name) {
			t.Errorf("blame of %s/%s gave %v, hint %q", q.Node, q.Module, err, errors.FlattenHints(err))
		}
	}
}

func testTrace(t *testing.T, s *Store) {
	type way struct{ As, Commits, Builds, Published, Assignments, Carried []string }
	all := way{
		Commits: []string{"c0ffee123456"}, Builds: []string{"b1"}, Published: []string{"web@1.10"}, Assignments: []string{"n1 web 00:04-00:08"},
		Carried: []string{"web  c0ffee123456", "plain  ", "lib v3 badcafe7654321"},
	}
	as := func(as string) way {
		w := all
		w.As = []string{as}
		return w
	}
	byManifest := as(audit.TraceCommit)
	byManifest.Commits = []string{"badcafe7654321"}
	present := way{As: []string{audit.TraceAssignment}, Assignments: []string{"n1 web 00:08-"}}
	first := as(audit.TraceAssignment)
	first.Assignments = []string{"n1 web 00:04-"}
	for name, c := range map[string]struct {
		q    audit.TraceQuestion
		want way
	}{
		"a commit":                   {audit.TraceQuestion{Of: "c0ffee123456"}, as(audit.TraceCommit)},
		"its beginning":              {audit.TraceQuestion{Of: "c0ffee1"}, as(audit.TraceCommit)},
		"one of a manifest":          {audit.TraceQuestion{Of: "badcafe7654321"}, byManifest},
		"a build":                    {audit.TraceQuestion{Of: "b1"}, as(audit.TraceBuild)},
		"a version":                  {audit.TraceQuestion{Of: "web@1.10"}, as(audit.TracePackage)},
		"a digest":                   {audit.TraceQuestion{Of: "sha256:abcdef"}, way{As: []string{audit.TraceArtifact}, Assignments: []string{"n2 web 00:13-"}}},
		"an assignment":              {audit.TraceQuestion{Of: "n1/web"}, present},
		"an assignment as it was":    {audit.TraceQuestion{Of: "n1/web", Moment: audit.Moment{At: minute(5)}}, first},
		"names with slashes":         {audit.TraceQuestion{Of: "n1/x/pay/api", Moment: audit.Moment{At: minute(7)}}, way{As: []string{audit.TraceAssignment}, Assignments: []string{"n1/x pay/api 00:06-"}}},
		"an assignment that ended":   {audit.TraceQuestion{Of: "n1/x/pay/api"}, way{As: []string{audit.TraceAssignment}}},
		"a version told and no more": {audit.TraceQuestion{Of: "web@1.9", As: audit.TracePackage}, way{As: []string{audit.TracePackage}, Assignments: []string{"n1 web 00:08-"}}},
	} {
		a, err := s.Trace(t.Context(), c.q)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		got := way{As: a.As}
		for _, x := range a.Commits {
			got.Commits = append(got.Commits, x.Commit)
		}
		for _, x := range a.Builds {
			got.Builds = append(got.Builds, x.ID)
		}
		for _, x := range a.Published {
			got.Published = append(got.Published, x.Reference.String())
		}
		for _, x := range a.Assignments {
			until := ""
			if !x.Until.IsZero() {
				until = x.Until.Format("15:04")
			}
			got.Assignments = append(got.Assignments, x.Node+" "+x.Module+" "+x.Since.Format("15:04")+"-"+until)
		}
		for _, x := range a.Carried {
			got.Carried = append(got.Carried, x.Module+" "+x.Version+" "+x.Commit)
		}
		if diff := gocmp.Diff(c.want, got); diff != "" || a.More || a.Next != "" || a.CarriedCount != len(a.Carried) {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	for _, of := range []string{"nothing", "web@9", "n1/", "c0ffee9"} {
		if _, err := s.Trace(t.Context(), audit.TraceQuestion{Of: of}); !errors.Is(err, audit.ErrNotFound) {
			t.Errorf("trace of %q gave %v", of, err)
		}
	}
}

// sequencesOf gives which events a log has, refused commands as negative numbers, read in pages of a size.
func sequencesOf(t *testing.T, s *Store, q audit.LogQuestion, page int) []int {
	t.Helper()
	var found []int
	for q.Limit = page; ; {
		p, err := s.Log(t.Context(), q)
		if err != nil {
			t.Fatalf("%+v: %v", q, err)
		}
		for _, item := range p.Items {
			if item.Refused != nil {
				found = append(found, -int(item.Refused.Sequence))
			} else {
				found = append(found, int(item.Sequence))
			}
		}
		switch {
		case !p.More:
			return found
		case q.Oldest && q.Refused == "" || q.After > 0:
			q.After = p.Next
		default:
			q.Cursor = p.Cursor
		}
	}
}

func testLog(t *testing.T, s *Store) {
	for name, c := range map[string]struct {
		q    audit.LogQuestion
		want []int
	}{
		"all":                       {audit.LogQuestion{}, []int{13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1}},
		"oldest first":              {audit.LogQuestion{Oldest: true, Aggregate: "build"}, []int{2, 3, 4}},
		"after":                     {audit.LogQuestion{After: 11}, []int{12, 13}},
		"of keys":                   {audit.LogQuestion{Aggregate: "assignment", Keys: []string{es.Key("n2", "web"), es.Key("n1/x", "pay/api")}}, []int{13, 12, 7}},
		"of a type":                 {audit.LogQuestion{Types: []string{"assignment.ended", "commit.recorded.v1"}}, []int{12, 1}},
		"of a node":                 {audit.LogQuestion{Node: "n1"}, []int{11, 10, 9, 8, 6}},
		"of a module":               {audit.LogQuestion{Module: "web", Aggregate: "build"}, []int{4, 3, 2}},
		"of a command":              {audit.LogQuestion{Command: "cmd-2"}, []int{4, 3, 2}},
		"of a conversation":         {audit.LogQuestion{Correlation: "talk", Until: minute(2)}, []int{4, 3, 2, 1}},
		"by an actor":               {audit.LogQuestion{Actors: []string{"a-ann"}, Since: minute(12)}, []int{13, 12}},
		"by nobody":                 {audit.LogQuestion{Actors: []string{"a-bob"}}, nil},
		"with words":                {audit.LogQuestion{Text: "Trouble 1"}, []int{9, 8}},
		"with the beginning of one": {audit.LogQuestion{Text: "c0ff"}, []int{5, 3, 2, 1}},
		"with a key's words":        {audit.LogQuestion{Text: "pay api"}, []int{12, 7}},
		"with words in order":       {audit.LogQuestion{Text: "pay", Oldest: true}, []int{7, 12}},
		"with no word":              {audit.LogQuestion{Text: "nonsense"}, nil},
	} {
		for _, page := range []int{0, 1, 2} {
			if diff := gocmp.Diff(c.want, sequencesOf(t, s, c.q, page)); diff != "" {
				t.Errorf("%s, %d a page (-want +got):\n%s", name, page, diff)
			}
		}
	}
	whole, err := s.Log(t.Context(), audit.LogQuestion{Oldest: true})
	if err != nil {
		t.Fatal(err)
	}
	var stream []audit.Item
	for m, err := range s.cfg.Events.Read(t.Context(), 0) {
		if err != nil {
			t.Fatal(err)
		}
		stream = append(stream, audit.NewItem(s.cfg.Registry, m))
	}
	if diff := gocmp.Diff(stream, whole.Items); diff != "" {
		t.Errorf("the log from the store is not that from the stream (-stream +store):\n%s", diff)
	}
	page, err := s.Log(t.Context(), audit.LogQuestion{Limit: 1, Command: "cmd-8"})
	if err != nil || len(page.Items) != 1 || !strings.Contains(string(page.Items[0].Data), `"reason":"trouble <1%>"`) || page.Items[0].OnBehalfOf != "a-ann" || page.Items[0].Version != 2 {
		t.Errorf("log gave %+v (%v)", page.Items, err)
	}
}

// testRefusedLog is the store's part of case F10.
func testRefusedLog(t *testing.T, s *Store) {
	for name, c := range map[string]struct {
		q    audit.LogQuestion
		want []int
	}{
		"with":        {audit.LogQuestion{Refused: audit.RefusedWith}, []int{-2, 13, 12, 11, 10, 9, 8, 7, -1, 6, 5, 4, 3, 2, 1}},
		"only":        {audit.LogQuestion{Refused: audit.RefusedOnly}, []int{-2, -1}},
		"by an actor": {audit.LogQuestion{Refused: audit.RefusedWith, Actors: []string{"a-bob"}}, []int{-2, -1}},
		"of a node":   {audit.LogQuestion{Refused: audit.RefusedOnly, Node: "n1"}, []int{-1}},
		"of a module": {audit.LogQuestion{Refused: audit.RefusedOnly, Module: "web"}, []int{-1}},
		"retired":     {audit.LogQuestion{Refused: audit.RefusedOnly, Node: "n9"}, []int{-2}},
		"with words":  {audit.LogQuestion{Refused: audit.RefusedWith, Text: "freeze HOLD"}, []int{-1}},
		"of a type":   {audit.LogQuestion{Refused: audit.RefusedWith, Types: []string{"commit.recorded"}}, []int{1}},
		"until":       {audit.LogQuestion{Refused: audit.RefusedWith, Until: minute(5), Since: minute(4)}, []int{-1, 6}},
	} {
		for _, page := range []int{0, 1, 2} {
			if diff := gocmp.Diff(c.want, sequencesOf(t, s, c.q, page)); diff != "" {
				t.Errorf("%s, %d a page (-want +got):\n%s", name, page, diff)
			}
		}
	}
	page, err := s.Log(t.Context(), audit.LogQuestion{Refused: audit.RefusedOnly, Command: "no-1"})
	if err != nil || len(page.Items) != 1 || page.Items[0].Refused.Message != "a freeze holds" || page.Items[0].Actor != "a-bob" {
		t.Errorf("log gave %+v (%v)", page.Items, err)
	}
	through, err := s.RefusedThrough(t.Context())
	if err != nil || through != 2 {
		t.Errorf("refused commands are taken in through %d (%v), want 2", through, err)
	}
}

func testExport(t *testing.T, s *Store) {
	var found []audit.ExportedEvent
	q := audit.ExportQuestion{What: audit.ExportEvents, Since: minute(2), Until: minute(13), Page: audit.Page{Limit: 3}}
	for {
		p, err := s.Export(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, p.Events...)
		if p.Next == "" {
			break
		}
		q.Cursor = p.Next
	}
	if len(found) != 11 || found[0].Sequence != 2 {
		t.Fatalf("%d events from %d on, want 11 from 2 on", len(found), found[0].Sequence)
	}
	for i, e := range found {
		m := es.Message{Sequence: e.Sequence, Subject: e.Subject, Header: e.Header, Body: e.Stored}
		head := estest.HeadOf(t, m)
		if head.Hash.String() != e.Hash || e.Hash == "" {
			t.Errorf("event %d has the hash %s", e.Sequence, e.Hash)
		}
		if i == 0 {
			continue
		}
		before, err := es.ParseHash(found[i-1].Hash)
		if err == nil {
			_, err = es.Head{Sequence: e.Sequence - 1, Hash: before}.Verify(m)
		}
		if err != nil {
			t.Errorf("event %d can't be verified from its export: %v", e.Sequence, err)
		}
	}
	var rows []string
	q = audit.ExportQuestion{What: audit.ExportAssignments, Page: audit.Page{Limit: 2}}
	for {
		p, err := s.Export(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range p.Assignments {
			rows = append(rows, fmt.Sprint(a.Shows, " ", a.Node, " ", a.Module, " ", a.Runs(), " ", a.Stands, " ", a.From.Format("15:04"), "-", a.Until.Format("15:04")))
		}
		if p.Next == "" {
			break
		}
		q.Cursor = p.Next
	}
	want := []string{
		"told n1 web web@1.10 true 00:04-00:08", "told n1/x pay/api pay/api@2 true 00:06-00:12", "told n1 web web@1.9 true 00:08-00:09", "told n1 web web@1.9 true 00:09-00:00",
		"observed n1 web web@1.10 true 00:10-00:11", "observed n1 web web@1.10 true 00:11-00:00", "told n1/x pay/api  false 00:12-00:00", "told n2 web sha256:abcdef true 00:13-00:00",
	}
	if diff := gocmp.Diff(want, rows); diff != "" {
		t.Errorf("assignments (-want +got):\n%s", diff)
	}
}

func testMalformed(t *testing.T, s *Store) {
	ctx := t.Context()
	for name, err := range map[string]error{
		"a limit":         second(s.AsOf(ctx, audit.AsOfQuestion{Page: audit.Page{Limit: -1}})),
		"a cursor":        second(s.AsOf(ctx, audit.AsOfQuestion{Page: audit.Page{Cursor: "?"}})),
		"one node":        second(s.Diff(ctx, audit.DiffQuestion{From: audit.Side{Node: "n1"}})),
		"a diff's cursor": second(s.Diff(ctx, audit.DiffQuestion{Page: audit.Page{Cursor: "?"}})),
		"no module":       second(s.Blame(ctx, audit.BlameQuestion{Node: "n1"})),
		"nothing traced":  second(s.Trace(ctx, audit.TraceQuestion{})),
		"as":              second(s.Trace(ctx, audit.TraceQuestion{Of: "b1", As: "node"})),
		"a log's cursor":  second(s.Log(ctx, audit.LogQuestion{Cursor: "7"})),
		"no word":         second(s.Log(ctx, audit.LogQuestion{Text: "?!"})),
		"refused":         second(s.Log(ctx, audit.LogQuestion{Refused: "yes"})),
		"refused after":   second(s.Log(ctx, audit.LogQuestion{Refused: audit.RefusedWith, After: 1})),
		"a cursor alone":  second(s.Log(ctx, audit.LogQuestion{Oldest: true, Cursor: "e1.r1"})),
		"a cursor's form": second(s.Log(ctx, audit.LogQuestion{Refused: audit.RefusedWith, Cursor: "e1.r1x"})),
		"trace's cursor":  second(s.Trace(ctx, audit.TraceQuestion{Of: "b1", Cursor: "?"})),
		"a report":        second(s.Report(ctx, audit.ReportQuestion{Report: "weather"})),
		"by":              second(s.Report(ctx, audit.ReportQuestion{Report: audit.ReportDrift, By: "moon"})),
		"a zone":          second(s.Report(ctx, audit.ReportQuestion{Report: audit.ReportDrift, Zone: "Mars/Base"})),
		"since":           second(s.Report(ctx, audit.ReportQuestion{Report: audit.ReportDrift, Since: minute(2), Until: minute(1)})),
		"what":            second(s.Export(ctx, audit.ExportQuestion{What: "all"})),
		"no statement":    second(s.SQL(ctx, audit.SQLQuestion{})),
	} {
		if !errors.Is(err, audit.ErrInvalid) {
			t.Errorf("%s: it gave %v", name, err)
		}
	}
}

func second[T any](_ T, err error) error { return err }
