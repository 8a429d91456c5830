package drivertest

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/errors"
	"github.com/google/go-cmp/cmp"

	"catenary/agent/driver"
)

// patience bounds a test. It is reached only when something is broken.
const patience = 60 * time.Second

// Subject is a driver under test, and the versions it is tried with.
type Subject struct {
	// Open gives a driver over the same place each time, as a process that starts again finds it.
	Open func(t *testing.T) driver.Driver
	// Reference makes a task be about one of the versions 1, 2 and 3, of which 3 can't be applied and says FAILS when it is tried.
	Version func(t *testing.T, task *driver.Task, version int)
	// Unsuited makes a task one that the driver is not for. Nil when it takes any.
	Unsuited func(task *driver.Task)
	// Blind says that the driver can't tell what runs.
	Blind bool
	// Forgiving says that the failure of version 3 is found out before anything was changed, and is not fatal.
	Forgiving bool
}

// Run holds drivers to the contract of [driver.Driver]. Each part gets a subject of its own.
func Run(t *testing.T, subject func(t *testing.T) Subject) {
	parts := map[string]func(*testing.T, Subject){
		"describes itself the same each time":       describes,
		"walks through versions and back":           walks,
		"does the same again without harm":          repeats,
		"goes on after a restart":                   restarts,
		"keeps modules apart":                       apart,
		"removes, and removes what is not there":    removes,
		"fails and leaves what ran":                 fails,
		"changes nothing once its time is over":     ended,
		"says what it is not for, changing nothing": unsuited,
	}
	for name, part := range parts {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			part(t, subject(t))
		})
	}
}

func taskFor(t *testing.T, s Subject, module string, version int) driver.Task {
	t.Helper()
	task := driver.Task{
		Node: "n1", Module: module, Source: uint64(100 + version), Attempt: 1, Rollout: "r1",
		Record: []byte(`{"node":"n1","module":"` + module + `"}`),
	}
	s.Version(t, &task, version)
	return task
}

func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

func apply(t *testing.T, d driver.Driver, task driver.Task) {
	t.Helper()
	if err := d.Check(within(t), task); err != nil {
		t.Fatalf("check %s %s: %+v", task.Module, task.Version(), err)
	}
	if _, err := d.Apply(within(t), task); err != nil {
		t.Fatalf("apply %s %s: %+v", task.Module, task.Version(), err)
	}
}

// finds holds what the driver finds beside a task to a state.
func (s Subject) finds(t *testing.T, d driver.Driver, task driver.Task, want driver.State) {
	t.Helper()
	if s.Blind {
		want = driver.Unknown
	}
	found, err := d.Observe(within(t), task)
	if err != nil || found.State != want || (found.Found != "") != (want == driver.Other) {
		t.Errorf("beside %s %s it finds %+v, %v; want %s", task.Module, task.Version(), found, err, want)
	}
}

func describes(t *testing.T, s Subject) {
	first, again := s.Open(t).Describe(), s.Open(t).Describe()
	if diff := cmp.Diff(first, again); diff != "" || first.Name == "" || first.Version == "" || first.Configuration == "" {
		t.Errorf("it is %+v, and again (-first +again):\n%s", first, diff)
	}
}

func walks(t *testing.T, s Subject) {
	d := s.Open(t)
	one, two := taskFor(t, s, "web", 1), taskFor(t, s, "web", 2)
	s.finds(t, d, one, driver.Absent)
	for _, step := range []struct{ to, other driver.Task }{{one, two}, {two, one}, {one, two}} {
		apply(t, d, step.to)
		s.finds(t, d, step.to, driver.AsTold)
		s.finds(t, d, step.other, driver.Other)
	}
}

func repeats(t *testing.T, s Subject) {
	d := s.Open(t)
	one := taskFor(t, s, "web", 1)
	for attempt := range 3 {
		one.Attempt = attempt + 1
		apply(t, d, one)
		s.finds(t, d, one, driver.AsTold)
	}
}

func restarts(t *testing.T, s Subject) {
	one, two := taskFor(t, s, "web", 1), taskFor(t, s, "web", 2)
	apply(t, s.Open(t), one)
	s.finds(t, s.Open(t), one, driver.AsTold)
	apply(t, s.Open(t), two)
	s.finds(t, s.Open(t), one, driver.Other)
	if err := s.Open(t).Remove(within(t), two); err != nil {
		t.Fatalf("remove: %+v", err)
	}
	s.finds(t, s.Open(t), two, driver.Absent)
}

func apart(t *testing.T, s Subject) {
	d := s.Open(t)
	web, api := taskFor(t, s, "web", 1), taskFor(t, s, "a/p i", 2)
	apply(t, d, web)
	s.finds(t, d, api, driver.Absent)
	apply(t, d, api)
	s.finds(t, d, web, driver.AsTold)
	if err := d.Remove(within(t), web); err != nil {
		t.Fatalf("remove: %+v", err)
	}
	s.finds(t, d, web, driver.Absent)
	s.finds(t, d, api, driver.AsTold)
}

func removes(t *testing.T, s Subject) {
	d := s.Open(t)
	one := taskFor(t, s, "web", 1)
	for range 2 {
		if err := d.Remove(within(t), one); err != nil {
			t.Fatalf("remove what is not there: %+v", err)
		}
	}
	apply(t, d, one)
	for range 2 {
		if err := d.Remove(within(t), one); err != nil {
			t.Fatalf("remove: %+v", err)
		}
		s.finds(t, d, one, driver.Absent)
	}
	apply(t, d, one)
	s.finds(t, d, one, driver.AsTold)
}

func fails(t *testing.T, s Subject) {
	d := s.Open(t)
	one, bad := taskFor(t, s, "web", 1), taskFor(t, s, "web", 3)
	apply(t, d, one)
	var said strings.Builder
	bad.Output = &said
	_, err := d.Apply(within(t), bad)
	switch {
	case err == nil:
		t.Fatal("what can't be applied was applied")
	case errors.Is(err, driver.ErrFatal) == s.Forgiving:
		t.Errorf("the failure is fatal: %t: %v", !s.Forgiving, err)
	case !strings.Contains(said.String()+err.Error(), "FAILS"):
		t.Errorf("it said %q and %q, and nothing of what failed", said.String(), err)
	}
	s.finds(t, d, one, driver.AsTold)
	two := taskFor(t, s, "web", 2)
	apply(t, d, two)
	s.finds(t, d, two, driver.AsTold)
}

func ended(t *testing.T, s Subject) {
	d := s.Open(t)
	one, two := taskFor(t, s, "web", 1), taskFor(t, s, "web", 2)
	apply(t, d, one)
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := d.Apply(over, two); !errors.Is(err, context.Canceled) {
		t.Errorf("after its end: got error %v", err)
	}
	s.finds(t, d, one, driver.AsTold)
}

func unsuited(t *testing.T, s Subject) {
	if s.Unsuited == nil {
		return
	}
	d := s.Open(t)
	one := taskFor(t, s, "web", 1)
	apply(t, d, one)
	odd := taskFor(t, s, "web", 2)
	s.Unsuited(&odd)
	if err := d.Check(within(t), odd); !errors.Is(err, driver.ErrUnsuited) || errors.Is(err, driver.ErrFatal) {
		t.Errorf("checked: got error %v", err)
	}
	s.finds(t, d, one, driver.AsTold)
}
