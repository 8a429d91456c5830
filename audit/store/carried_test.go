package store

import (
	"fmt"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"catenary/audit"
	"catenary/es"
	"catenary/events"
)

// TestCarriedInPages: what came with a version is listed by when it was merged, newest first, then what nobody recorded; page by page it
// is the same, with the number of all on every page.
func TestCarriedInPages(t *testing.T) {
	t.Parallel()
	r := newRecorder(t)
	add := func(ref es.Ref, data any) { r.add(es.Event{Ref: ref}, data) }
	// Their ids are in no order of time, and two are merged at once.
	for id, merged := range map[string]int{"c-4": 1, "c-1": 2, "c-3": 3, "c-2": 3, "elsewhere": 9} {
		add(instance("commit", "r", id), events.CommitRecorded{Repository: "r", Commit: id, Merged: minute(merged)})
	}
	add(instance("commit", "fork", "c-1"), events.CommitRecorded{Repository: "fork", Commit: "c-1", Merged: minute(20)})
	add(instance("build", "b1"), events.BuildAsked{BuildSpec: events.BuildSpec{ID: "b1", Module: "web", Repository: "r", Commit: "c-3"}})
	add(instance("build", "b1"), events.BuildSucceeded{Manifest: events.Raw(`{"commits":[{"repository":"r","commit":"c-1"},{"repository":"r","commit":"c-2"},
 {"repository":"r","commit":"c-3"},{"repository":"r","commit":"c-4"},"elsewhere",{"repository":"r","commit":"unheard-of"}],"modules":["plain"]}`)})
	r.flush()
	s := running(t, Config{Events: r.stream})
	caughtUp(t, s, r.stream)
	want := []string{"/elsewhere", "r/c-2", "r/c-3", "r/c-1", "r/c-4", "/", "r/unheard-of"}
	for limit := 1; limit <= len(want)+1; limit++ {
		q := audit.TraceQuestion{Of: "b1", Limit: limit}
		var found []string
		for pages := 0; ; pages++ {
			a, err := s.Trace(t.Context(), q)
			if err != nil {
				t.Fatal(err)
			}
			if a.CarriedCount != len(want) || len(a.Carried) > limit || (pages == 0) == (len(a.Builds) == 0) {
				t.Errorf("page %d of %d a page is %+v, want at most that many of %d, and the builds on the first one", pages, limit, a, len(want))
			}
			for _, c := range a.Carried {
				found = append(found, fmt.Sprint(c.Repository, "/", c.Commit))
			}
			if q.Cursor = a.Next; q.Cursor == "" {
				break
			}
		}
		if diff := gocmp.Diff(want, found); diff != "" {
			t.Errorf("%d a page (-want +got):\n%s", limit, diff)
		}
	}
}
