package embedded

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/cockroachdb/errors"

	"catenary/internal/topology"
)

func TestListenAddresses(t *testing.T) {
	t.Parallel()
	cases := []struct {
		listen, server string
		loopback       bool
		refused        string
	}{
		{listen: "", server: "127.0.0.1:-1", loopback: true},
		{listen: "127.0.0.1:4222", server: "127.0.0.1:4222", loopback: true},
		{listen: "127.9.9.9:0", server: "127.9.9.9:-1", loopback: true},
		{listen: "[::1]:4222", server: "[::1]:4222", loopback: true},
		{listen: "localhost:4222", server: "localhost:4222", loopback: true},
		{listen: ":4222", server: "0.0.0.0:4222"},
		{listen: "0.0.0.0:4222", server: "0.0.0.0:4222"},
		{listen: "[::]:4222", server: "[::]:4222"},
		{listen: "localhost.example.org:4222", server: "localhost.example.org:4222"},
		{listen: "10.0.0.1:4222", server: "10.0.0.1:4222"},
		{listen: "127.0.0.1", refused: "HOST:PORT"},
		{listen: "4222", refused: "HOST:PORT"},
		{listen: "127.0.0.1:nats", refused: `port "nats"`},
		{listen: "127.0.0.1:65536", refused: `port "65536"`},
		{listen: "127.0.0.1:-1", refused: `port "-1"`},
		{listen: "nats://127.0.0.1:4222", refused: "HOST:PORT"},
		{listen: "a b:4222", refused: "not a host"},
	}
	for _, c := range cases {
		t.Run(c.listen, func(t *testing.T) {
			t.Parallel()
			_, a, err := Config{StoreDir: "x", Listen: c.listen}.withDefaults()
			if c.refused != "" {
				if !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), c.refused) {
					t.Fatalf("got error %v, want ErrConfig that says %q", err, c.refused)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if a.serverListen() != c.server || a.loopback != c.loopback {
				t.Errorf("got %s, loopback %v; want %s, %v", a.serverListen(), a.loopback, c.server, c.loopback)
			}
		})
	}
}

func TestConfigRefused(t *testing.T) {
	t.Parallel()
	for says, c := range map[string]Config{
		"no store directory":       {},
		`"fsync" or "interval"`:    {StoreDir: "x", Durability: "always"},
		"store is -1 bytes":        {StoreDir: "x", MaxStoreBytes: -1},
		"bucket is -1 bytes":       {StoreDir: "x", BucketBytes: -1},
		"event stream is -1 bytes": {StoreDir: "x", EventStoreBytes: -1},
	} {
		if _, _, err := c.withDefaults(); !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), says) {
			t.Errorf("got error %v, want ErrConfig that says %q", err, says)
		}
	}
}

func TestFsyncIsTheDefault(t *testing.T) {
	t.Parallel()
	c, _, err := Config{StoreDir: "x"}.withDefaults()
	if err != nil || c.Durability != DurabilityFsync || c.Logger != slog.Default() {
		t.Errorf("got %+v, %v", c, err)
	}
}

func TestFatalDoesNotEndTheProcess(t *testing.T) {
	t.Parallel()
	l := newServerLog(slog.New(slog.DiscardHandler))
	cause := errors.New("first")
	l.Fatalf("can't go on: %v", cause)
	l.Fatalf("second")
	<-l.failed
	if l.fatal.message != "can't go on: first" || !errors.Is(l.fatal.cause, cause) {
		t.Errorf("kept %+v", l.fatal)
	}
}

func TestDurabilityReachesTheServer(t *testing.T) {
	t.Parallel()
	for durability, want := range map[Durability]bool{DurabilityFsync: true, DurabilityInterval: false} {
		s, err := Start(t.Context(), Config{StoreDir: t.TempDir(), Durability: durability, Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatalf("%+v", err)
		}
		js := s.node.server.JetStreamConfig()
		if js.SyncAlways != want {
			t.Errorf("%s: every write synced is %v, want %v", durability, js.SyncAlways, want)
		}
		if free := topology.ReservedBytes(s.Options()); free > js.MaxStore {
			t.Errorf("streams reserve %d bytes of a store of %d", free, js.MaxStore)
		}
		if err := s.Shutdown(t.Context()); err != nil {
			t.Errorf("%+v", err)
		}
	}
}
