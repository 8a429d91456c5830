package main

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"catenary/chain"
	"catenary/es/estest"
	"catenary/events"
)

// TestInterrupts sends one signal after another to a program that drains, and to one that does not.
func TestInterrupts(t *testing.T) {
	t.Parallel()
	for _, drains := range []bool{false, true} {
		signals, release := make(chan os.Signal, 3), make(chan struct{})
		var said estest.Log
		a := &app{Main: Main{Signals: signals, Stderr: &said}, draining: newDraining()}
		a.draining.able.Store(drains)
		code, stopped, left := make(chan int, 1), make(chan struct{}), make(chan struct{})
		go func() {
			code <- a.interruptible(context.Background(), func(ctx context.Context) int {
				defer close(left)
				<-ctx.Done()
				close(stopped)
				<-release
				return exitOK
			})
		}()
		if drains {
			signals <- os.Interrupt
			<-a.draining.asked
			select {
			case <-stopped:
				t.Error("it does not wait for what has begun")
			default:
			}
		}
		signals <- os.Interrupt
		<-stopped
		signals <- os.Interrupt
		if c := <-code; c != exitFailed {
			t.Errorf("left at once, it ends with %d", c)
		}
		if spoke := strings.Contains(said.String(), "left at once"); spoke != drains {
			t.Errorf("it says %q", said.String())
		}
		close(release)
		<-left
	}
}

// TestUpDrains interrupts a chain as people do: idle it is gone at once; with a step under way it waits for that, and lets no other begin; told twice
// it leaves the step to the next start.
func TestUpDrains(t *testing.T) {
	t.Parallel()
	store := t.TempDir()
	start := func() (*upped, caller) {
		u := started(t, "--store", store, "--durability", "interval", "--no-audit")
		return u, caller{t: t, url: u.ready.NATS}
	}
	interrupt := func(u *upped) { u.signals <- os.Interrupt }
	gone := func(u *upped) {
		t.Helper()
		select {
		case code := <-u.exit:
			if code != exitOK {
				t.Errorf("it ends with %d:\n%s", code, u.stderr.String())
			}
		case <-time.After(waitLimit):
			t.Fatalf("it is still there:\n%s", u.stderr.String())
		}
	}
	u, c := start()
	c.fleet("drain", "da", "db", "dc")
	began := time.Now()
	interrupt(u)
	gone(u)
	if took := time.Since(began); took > mostStopTime {
		t.Errorf("idle, it is gone after %v", took)
	}

	u, c = start()
	c.ok("rollout", "plan", "--set", "drain=drain@2", "--strategy", file(t, "all.yaml", "tiers:\n  - name: all\n    concurrency: 1\n"), "--as", "drain")
	c.ok("rollout", "start", "drain")
	state := func(node string) string {
		t.Helper()
		for _, s := range read[chain.WholeRollout](c, "rollout", "show", "drain").Steps {
			if s.Node == node {
				return s.State
			}
		}
		return ""
	}
	eventually(t, "da is told", func() bool { return state("da") == events.StepPending })
	interrupt(u)
	eventually(t, "it drains", func() bool { return strings.Contains(u.stderr.String(), "no step begins any more") })
	c.ok("rollout", "settle", "drain", "da", "drain", "--outcome", events.StepDone, "--reason", "seen on the spot")
	gone(u)

	u, c = start()
	eventually(t, "db is told", func() bool { return state("db") == events.StepPending })
	if da, dc := state("da"), state("dc"); da != events.StepDone || dc != events.StepWaiting {
		t.Errorf("da is %s and dc is %s", da, dc)
	}
	interrupt(u)
	eventually(t, "it drains", func() bool { return strings.Contains(u.stderr.String(), "no step begins any more") })
	interrupt(u)
	gone(u)
	if said := u.stderr.String(); !strings.Contains(said, "drain on db") || !strings.Contains(said, "stopping now") {
		t.Errorf("told twice it says\n%s", said)
	}
}
