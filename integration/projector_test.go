package integration

import (
	"encoding/json"
	"strings"
	"syscall"
	"testing"
	"time"

	"catenary/es/estest"
	"catenary/es/project"
	"catenary/internal/topology"
)

// TestC19 is case C19: a projector that stands still is seen to, with how far it is behind, and within ten seconds. It is never
// said to be running while it is behind.
func TestC19(t *testing.T) {
	t.Parallel()
	bus := estest.Server(t, false)
	awaitWord(t, []*running{startPart(t, "writer", bus.URL())}, "commands are taken")
	projector := startPart(t, "projector", bus.URL())
	c := tool{t: t, url: bus.URL()}
	c.node("n1")
	allRun := func() bool {
		found := c.feed("", "projections", "ls", "-o", "json")
		if found.code != 0 {
			return false // it has not begun yet
		}
		var all []project.ViewStatus
		if err := json.Unmarshal([]byte(found.out), &all); err != nil {
			t.Fatalf("%v: %s", err, found.out)
		}
		for _, v := range all {
			if v.State != project.StateRunning || v.Behind > 0 {
				return false
			}
		}
		return true
	}
	await(t, "all views to run", allRun)

	if err := projector.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"n2", "n3", "n4"} {
		c.must(0, "send", "node", "register", "--wait=false", "--data", `{"node":"`+name+`"}`)
	}
	asked := time.Now()
	found := c.must(9, "projections", "ls", "-o", "json")
	if took := time.Since(asked); took > 10*time.Second {
		t.Errorf("the answer took %v", took)
	}
	if !strings.Contains(found.err, "behind by at most 3") {
		t.Errorf("it says\n%s", found.err)
	}
	var told []project.ViewStatus
	if err := json.Unmarshal([]byte(found.out), &told); err != nil {
		t.Fatalf("%v: %s", err, found.out)
	}
	for _, v := range told {
		if v.State == project.StateRunning || v.View == topology.BucketNodes && v.Behind != 3 {
			t.Errorf("%+v", v)
		}
	}
	if err := projector.cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	await(t, "all views to run again", allRun)

	projector.kill()
	if found := c.must(10, "projections", "show", "nodes"); !strings.Contains(found.out, "no-answer") {
		t.Errorf("without a projector it says\n%s%s", found.out, found.err)
	}
}
