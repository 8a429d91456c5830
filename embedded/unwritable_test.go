package embedded_test

import (
	"context"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/errors"
	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sys/unix"

	"catenary/embedded"
	"catenary/internal/topology"
)

// limitedStore names the store of a process of the test's own, whose files can't grow beyond a limit: to the server that is as good as a full
// disk, and it needs no rights.
const limitedStore = "CATENARY_TEST_LIMITED_STORE"

// mostFileBytes is that limit.
const mostFileBytes = 1 << 20

// TestUnwritable fills the disk under a server. It says so, stores nothing from then on, and has lost nothing when it is started again with
// room.
func TestUnwritable(t *testing.T) {
	t.Parallel()
	ctx := testContext(t)
	cmd := exec.CommandContext(ctx, os.Args[0], "-test.run=^$")
	cmd.Env = append(os.Environ(), limitedStore+"="+t.TempDir())
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

// runLimited is that process.
func runLimited(dir string) error {
	signal.Ignore(syscall.SIGXFSZ) // a write over the limit fails, and does not end the process
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var before unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_FSIZE, &before); err != nil {
		return err
	}
	limited := unix.Rlimit{Cur: mostFileBytes, Max: before.Max}
	if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &limited); err != nil {
		return err
	}
	stored, err := fill(ctx, dir)
	if err != nil {
		return err
	}
	if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &before); err != nil {
		return err
	}
	return withLedger(ctx, dir, func(_ *embedded.Server, js jetstream.JetStream) error {
		stream, err := js.Stream(ctx, topology.EventStream)
		if err != nil {
			return err
		}
		if last := stream.CachedInfo().State.LastSeq; last < stored {
			return errors.Newf("of %d messages %d are there", stored, last)
		}
		_, err = js.Publish(ctx, "evt.node.n1", []byte("again"))
		return errors.Wrap(err, "there is room again")
	})
}

// fill publishes until the server can't store any more, and gives how many messages it has acknowledged.
func fill(ctx context.Context, dir string) (stored uint64, err error) {
	err = withLedger(ctx, dir, func(server *embedded.Server, js jetstream.JetStream) error {
		if _, err := js.CreateStream(ctx, topology.Events(server.Options())); err != nil {
			return err
		}
		for {
			select {
			case <-server.Unwritable():
				return nil
			default:
			}
			bounded, cancel := context.WithTimeout(ctx, time.Second)
			_, err := js.Publish(bounded, "evt.node.n1", make([]byte, 100<<10))
			cancel()
			switch {
			case err == nil:
				stored++
			case ctx.Err() != nil:
				return errors.Wrapf(err, "after %d messages, and the server does not say that it can't write", stored)
			}
		}
	})
	return stored, err
}

func withLedger(ctx context.Context, dir string, work func(*embedded.Server, jetstream.JetStream) error) (err error) {
	server, err := embedded.Start(ctx, embedded.Config{StoreDir: dir, MaxStoreBytes: 8 << 30, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	defer func() { err = errors.CombineErrors(err, server.Shutdown(ctx)) }()
	nc, err := server.Ledger()
	if err != nil {
		return err
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		return err
	}
	return work(server, js)
}
