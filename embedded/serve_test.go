package embedded_test

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/cockroachdb/errors"
	"github.com/nats-io/nats.go"

	"catenary/embedded"
	"catenary/es/estest"
	"catenary/internal/topology"
)

// fileLayout is a server on a free address, with one person.
func fileLayout(t *testing.T, store string) topology.Layout {
	t.Helper()
	return topology.Layout{
		ServerName: "s1", Listen: freeListen(t), StoreDir: store, MaxStoreBytes: 1 << 30,
		Ledger:  topology.User{Name: topology.UserLedger, Password: "l"},
		Mirrors: topology.User{Name: topology.UserMirrors, Password: "m"},
		People:  []topology.User{{Name: "ann", Password: "a"}},
	}
}

func freeListen(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	check(t, err)
	defer func() { check(t, l.Close()) }()
	return l.Addr().String()
}

func writeLayout(t *testing.T, path string, l topology.Layout) {
	t.Helper()
	text, err := l.Config()
	check(t, err)
	check(t, os.WriteFile(path, []byte(text), 0o600))
}

// served runs a server from a file until the test ends, or until stop is called, which gives how it ended.
func served(t *testing.T, file string, log *slog.Logger, reload <-chan os.Signal) (stop func() error) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ready, ended := make(chan string, 1), make(chan error, 1)
	go func() {
		ended <- embedded.Serve(ctx, embedded.ServeConfig{File: file, Logger: log, Reload: reload, Ready: func(address string) { ready <- address }})
	}()
	select {
	case <-ready:
	case err := <-ended:
		cancel()
		t.Fatalf("the server ended with %+v", err)
	}
	var err error
	stopped := false
	stop = func() error {
		if !stopped {
			stopped = true
			cancel()
			err = await(t, "the server's end", ended)
		}
		return err
	}
	t.Cleanup(func() { check(t, stop()) })
	return stop
}

// TestServe runs a server from a file: its store is its own, and another configuration is taken while it runs, unless it can't be.
func TestServe(t *testing.T) {
	t.Parallel()
	var log estest.Log
	dir := t.TempDir()
	file, layout := filepath.Join(dir, "server.conf"), fileLayout(t, filepath.Join(dir, "store"))
	writeLayout(t, file, layout)
	reload := make(chan os.Signal, 1)
	stop := served(t, file, log.Logger(slog.LevelInfo), reload)
	dial(t, "nats://"+layout.Listen, nats.UserInfo("ann", "a"))

	if err := embedded.Serve(testContext(t), embedded.ServeConfig{File: file, Logger: logTo(t)}); !errors.Is(err, embedded.ErrStoreLocked) {
		t.Errorf("a second server over the same store: %v", err)
	}
	check(t, os.WriteFile(file, []byte("listen: {"), 0o600))
	reload <- syscall.SIGHUP
	eventually(t, "it says that the configuration is not taken", func() bool { return strings.Contains(log.String(), "is not taken") })
	layout.People = append(layout.People, topology.User{Name: "bob", Password: "b"})
	writeLayout(t, file, layout)
	reload <- syscall.SIGHUP
	eventually(t, "bob may connect", func() bool {
		nc, err := nats.Connect("nats://"+layout.Listen, nats.UserInfo("bob", "b"))
		if err == nil {
			nc.Close()
		}
		return err == nil
	})
	check(t, stop())
	served(t, file, logTo(t), nil)
}

// TestServeRefuses: what can't work is said before anything listens.
func TestServeRefuses(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		text string
		want error
	}{
		"no configuration": {"listen: {", embedded.ErrConfig},
		"nothing":          {"", embedded.ErrConfig},
		"a brace":          {"{", embedded.ErrConfig},
		"no accounts":      {"jetstream { store_dir: \"" + t.TempDir() + "\" }", embedded.ErrConfig},
		"no jetstream":     {"accounts { LEDGER: { } }", embedded.ErrConfig},
		"no store":         {"accounts { LEDGER: { } }\njetstream { }", embedded.ErrConfig},
		"no such address":  {"accounts { LEDGER: { } }\njetstream { store_dir: \"" + t.TempDir() + "\" }\nlisten: \"192.0.2.1:1\"", embedded.ErrListen},
	} {
		file := filepath.Join(t.TempDir(), "server.conf")
		check(t, os.WriteFile(file, []byte(c.text), 0o600))
		err := embedded.Serve(testContext(t), embedded.ServeConfig{File: file, Logger: slog.New(slog.DiscardHandler), Ready: func(string) { t.Error("it is ready") }})
		if !errors.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := embedded.Serve(testContext(t), embedded.ServeConfig{File: "none"}); !errors.Is(err, embedded.ErrConfig) {
		t.Errorf("no file: %v", err)
	}
}

// TestServeJoins: a store that a server has filled alone is not let into a cluster, which would remove its streams; one that was in the cluster is, and one
// that holds nothing.
func TestServeJoins(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file, layout := filepath.Join(dir, "server.conf"), fileLayout(t, filepath.Join(dir, "store"))
	writeLayout(t, file, layout)
	stop := served(t, file, logTo(t), nil)
	js := jetstreamOf(t, dial(t, "nats://"+layout.Listen, nats.UserInfo(topology.UserLedger, "l")))
	_, err := js.CreateStream(testContext(t), topology.Events(topology.Options{EventStoreBytes: topology.MinStreamBytes}))
	check(t, err)
	check(t, stop())

	joined := layout
	joined.Cluster = &topology.ClusterLayout{Name: "c", Listen: freeListen(t), Secret: "s"}
	joined.Cluster.Routes = []string{joined.Cluster.Listen}
	for i := range 2 {
		joined.Cluster.Routes = append(joined.Cluster.Routes, fmt.Sprintf("127.0.0.1:%d", 1+i))
	}
	writeLayout(t, file, joined)
	err = embedded.Serve(testContext(t), embedded.ServeConfig{File: file, Logger: slog.New(slog.DiscardHandler)})
	if !errors.Is(err, embedded.ErrJoins) || !strings.Contains(err.Error(), "1 streams") || len(errors.GetAllHints(err)) == 0 {
		t.Errorf("it joins with its streams: %v", err)
	}
	// Alone it may go on.
	writeLayout(t, file, layout)
	check(t, served(t, file, logTo(t), nil)())

	joined.StoreDir = filepath.Join(dir, "empty")
	writeLayout(t, file, joined)
	quiet := slog.New(slog.DiscardHandler)
	check(t, served(t, file, quiet, nil)())
	check(t, os.MkdirAll(filepath.Join(joined.StoreDir, "jetstream", topology.AccountLedger, "streams", topology.EventStream), 0o700))
	served(t, file, quiet, nil)
}
