package main

import (
	"bytes"
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/cockroachdb/errors"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"catenary/es/estest"
	"catenary/internal/run"
	"catenary/internal/topology"
)

// waitLimit bounds every wait. It is reached only when something is broken.
const waitLimit = 30 * time.Second

// TestMainAnswers runs the program whole: its service is there, shows its version, and is gone with it.
func TestMainAnswers(t *testing.T) {
	t.Parallel()
	bus := estest.Server(t, false)
	nc := bus.Connect(t)
	// The writer makes the event stream; here it is made as catenary up makes all.
	if err := run.Prepare(t.Context(), nc, topology.Options{EventStoreBytes: 100_000_000, BucketBytes: 10_000_000}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var talk bytes.Buffer
	code := make(chan int, 1)
	go func() {
		env := func(name string) string { return map[string]string{"NATS_URL": bus.URL()}[name] }
		code <- program(env).Main(ctx, []string{"--event-store-bytes", "100000000", "--bucket-bytes", "10000000"}, env, &talk)
	}()
	info := micro.Info{}
	poll(t, "an answer", func() bool {
		if len(code) > 0 {
			t.Fatalf("it ended with %d:\n%s", <-code, talk.String())
		}
		m, err := nc.Request("$SRV.INFO.catenary-query", nil, pollInterval)
		return err == nil && json.Unmarshal(m.Data, &info) == nil && len(info.Endpoints) > 0
	})
	if info.Version == "" {
		t.Errorf("the service shows %+v, want its version", info)
	}
	cancel()
	if found := <-code; found != 0 {
		t.Errorf("told to stop, it ends with %d:\n%s", found, talk.String())
	}
	poll(t, "its end", func() bool {
		_, err := nc.Request("$SRV.INFO.catenary-query", nil, pollInterval)
		return errors.Is(err, nats.ErrNoResponders)
	})
}

// pollInterval is how often a test looks again: a start takes some milliseconds.
const pollInterval = 10 * time.Millisecond

// poll looks until it is so.
func poll(t *testing.T, what string, so func() bool) {
	t.Helper()
	tick, limit := time.NewTicker(pollInterval), time.After(waitLimit)
	defer tick.Stop()
	for !so() {
		select {
		case <-tick.C:
		case <-limit:
			t.Fatalf("waited for %s for %v", what, waitLimit)
		}
	}
}

func TestMainRefusesSettings(t *testing.T) {
	t.Parallel()
	var talk bytes.Buffer
	unset := func(string) string { return "" }
	code := program(unset).Main(t.Context(), []string{"--durability", "none"}, unset, &talk)
	if code != 2 || !bytes.Contains(talk.Bytes(), []byte("durability")) {
		t.Errorf("it ends with %d and says %q, want 2 and the setting", code, talk.String())
	}
}
