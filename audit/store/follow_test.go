package store

import (
	"context"
	"fmt"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"catenary/audit"
	"catenary/es"
	"catenary/events"
)

// TestLogGoesOn reads events and refused commands oldest first from where a log newest first was read to: in pages of every size each
// comes once and none is left out, in the order of the times, also when more comes meanwhile.
func TestLogGoesOn(t *testing.T) {
	t.Parallel()
	ctx, cancel := contextOf(t)
	defer cancel()
	r := newRecorder(t)
	s := running(t, Config{Events: r.stream})
	event := func(at int) {
		r.add(es.Event{Ref: ref("n1", "web"), Recorded: minute(at)}, events.AssignmentAssigned{Told: told("n1", "web", fmt.Sprint("v", at))})
		r.flush()
		caughtUp(t, s, r.stream)
	}
	refused := uint64(0)
	refuse := func(at int) {
		t.Helper()
		refused++
		if err := s.AddRefused(ctx, 1, audit.Refused{Sequence: refused, Recorded: minute(at), Aggregate: "assignment", Key: "n1.web", Status: "rejected"}); err != nil {
			t.Fatal(err)
		}
	}
	event(1)
	refuse(2)
	before, err := s.Log(ctx, audit.LogQuestion{Refused: audit.RefusedWith, Limit: 1})
	if err != nil || before.Onward != "e1.r1" || len(before.Items) != 1 || before.Items[0].Refused == nil {
		t.Fatalf("the newest is %+v (%v), want the refused command, and where to go on", before, err)
	}
	refuse(3)
	event(3)
	event(4)
	refuse(6)
	event(5)
	refuse(2) // what comes late comes late
	for _, c := range []struct {
		q    audit.LogQuestion
		want []int
	}{
		{audit.LogQuestion{Refused: audit.RefusedWith}, []int{-2, 2, 3, 4, -3, -4}},
		{audit.LogQuestion{Refused: audit.RefusedOnly}, []int{-2, -3, -4}},
		{audit.LogQuestion{Refused: audit.RefusedWith, Types: []string{"assignment.assigned"}}, []int{2, 3, 4}},
		{audit.LogQuestion{Refused: audit.RefusedWith, Since: minute(4), Node: "n1"}, []int{3, 4, -3}},
		{audit.LogQuestion{Refused: audit.RefusedWith, Text: "v4"}, []int{3}},
		{audit.LogQuestion{Refused: audit.RefusedWith, Node: "n2"}, nil},
	} {
		c.q.Oldest, c.q.Cursor = true, before.Onward
		for page := 1; page <= 7; page++ {
			if diff := gocmp.Diff(c.want, sequencesOf(t, s, c.q, page)); diff != "" {
				t.Errorf("%+v, %d a page (-want +got):\n%s", c.q, page, diff)
			}
		}
		end, err := s.Log(ctx, c.q)
		if err != nil || end.Cursor != "e4.r4" {
			t.Errorf("%+v ends at %q (%v), want the end of both streams", c.q, end.Cursor, err)
		}
	}
}

// TestAwait: a follower is woken by what it waits for, and by nothing else.
func TestAwait(t *testing.T) {
	t.Parallel()
	ctx, cancel := contextOf(t)
	defer cancel()
	r := newRecorder(t)
	s := running(t, Config{Events: r.stream})
	r.assign("n1", "web", "v1")
	caughtUp(t, s, r.stream)
	s.Await(ctx, audit.LogPlace{})
	short, end := context.WithTimeout(ctx, 50*time.Millisecond)
	defer end()
	if s.Await(short, audit.LogPlace{Event: 1}); short.Err() == nil {
		t.Error("it was woken by nothing")
	}
	for name, wake := range map[string]func(){
		"an event": func() { r.assign("n1", "web", "v2") },
		"a refused command": func() {
			if err := s.AddRefused(ctx, 1, audit.Refused{Sequence: 1, Recorded: minute(1), Status: "rejected"}); err != nil {
				t.Error(err)
			}
		},
	} {
		state := s.Status()
		woken := make(chan struct{})
		go func() {
			defer close(woken)
			s.Await(ctx, audit.LogPlace{Event: state.Event, Refused: state.Refused})
		}()
		wake()
		select {
		case <-woken:
		case <-ctx.Done():
			t.Errorf("%s wakes nobody", name)
		}
	}
}
