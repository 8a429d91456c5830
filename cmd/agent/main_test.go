package main

import (
	"bytes"
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"catenary/es/estest"
)

func TestMain(m *testing.M) { estest.VerifyTestMain(m) }

// waitLimit bounds every wait. It is reached only when something is broken.
const waitLimit = 30 * time.Second

// TestMainRuns runs the program whole, over a bus on which nobody answers it: it keeps its state, and ends when it is told to.
func TestMainRuns(t *testing.T) {
	t.Parallel()
	bus := estest.Server(t, false)
	state := filepath.Join(t.TempDir(), "state")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var said estest.Log
	code := make(chan int, 1)
	go func() {
		code <- Main{
			Args: []string{"--node", "n1", "--state", state, "--log-level", "debug"}, Stderr: &said,
			Env: func(name string) string { return map[string]string{"NATS_URL": bus.URL()}[name] },
		}.Run(ctx)
	}()
	tick, limit := time.NewTicker(10*time.Millisecond), time.After(waitLimit)
	defer tick.Stop()
	for !strings.Contains(said.String(), "check-in") {
		select {
		case <-tick.C:
		case found := <-code:
			t.Fatalf("it ended with %d:\n%s", found, said.String())
		case <-limit:
			t.Fatalf("it does not check in:\n%s", said.String())
		}
	}
	cancel()
	if found := <-code; found != 0 {
		t.Errorf("told to stop, it ends with %d:\n%s", found, said.String())
	}
	if found, err := filepath.Glob(filepath.Join(state, "state.json")); err != nil || len(found) != 1 {
		t.Errorf("it has kept %v, %v", found, err)
	}
}

func TestMainRefusesSettings(t *testing.T) {
	t.Parallel()
	var said bytes.Buffer
	code := Main{Args: []string{"--state", "/x"}, Env: func(string) string { return "" }, Stderr: &said}.Run(t.Context())
	if code != 2 || !strings.Contains(said.String(), "node") {
		t.Errorf("it ends with %d and says %q, want 2 and the setting", code, said.String())
	}
}
