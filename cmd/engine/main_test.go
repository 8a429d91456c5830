package main

import (
	"bytes"
	"context"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"catenary/es/estest"
	"catenary/es/natsstore"
	"catenary/internal/topology"
)

// waitLimit bounds every wait. It is reached only when something is broken.
const waitLimit = 30 * time.Second

// TestMainFollows runs the program whole: without a writer it has read what is there, and no lease; told to stop it does.
func TestMainFollows(t *testing.T) {
	t.Parallel()
	bus := estest.Server(t, false)
	nc := bus.Connect(t)
	if err := natsstore.Ensure(t.Context(), nc, topology.Options{EventStoreBytes: 100 << 20}); err != nil {
		t.Fatal(err)
	}
	var talk bytes.Buffer
	ready, code, signals := make(chan struct{}), make(chan int, 1), make(chan os.Signal, 3)
	go func() {
		code <- Main{Stderr: &talk, Env: env(bus.URL()), Signals: signals, Ready: func() { close(ready) }}.Run(context.Background())
	}()
	select {
	case <-ready:
	case c := <-code:
		t.Fatalf("it ended with %d:\n%s", c, talk.String())
	case <-time.After(waitLimit):
		t.Fatal("it is not ready")
	}
	if m, err := nc.Request("$SRV.INFO."+topology.EngineService, nil, 100*time.Millisecond); err == nil {
		t.Errorf("without the lease it answers %s", m.Data)
	}
	signals <- syscall.SIGTERM
	select {
	case c := <-code:
		if c != 0 {
			t.Errorf("told to stop it ends with %d:\n%s", c, talk.String())
		}
	case <-time.After(waitLimit):
		t.Fatal("told to stop it goes on")
	}
}

// TestThirdSignal leaves at once, whatever the program is at.
func TestThirdSignal(t *testing.T) {
	t.Parallel()
	bus := estest.Server(t, false)
	signals := make(chan os.Signal, 3)
	for range 3 {
		signals <- os.Interrupt
	}
	said := &estest.Log{}
	code := Main{Stderr: said, Env: env(bus.URL()), Signals: signals}.Run(context.Background())
	if code != exitLeft || !strings.Contains(said.String(), "left at once") {
		t.Errorf("it ends with %d and says %q", code, said)
	}
}

func env(url string) func(string) string {
	return func(name string) string { return map[string]string{"NATS_URL": url}[name] }
}

func TestMainRefusesSettings(t *testing.T) {
	t.Parallel()
	var talk bytes.Buffer
	code := Main{Args: []string{"--lease-ttl", "1ms"}, Env: func(string) string { return "" }, Stderr: &talk}.Run(t.Context())
	if code != 2 || !bytes.Contains(talk.Bytes(), []byte("lease-ttl")) {
		t.Errorf("it ends with %d and says %q, want 2 and the setting", code, talk.String())
	}
}
