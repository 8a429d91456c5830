package depot

import (
	"bytes"
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/errors"
	"github.com/nats-io/nats.go"

	"catenary/agent/artifacts"
	"catenary/embedded"
	"catenary/internal/topology"
)

// TestOverAClusterThatLosesItsLeader: the server that leads the artifacts goes while one is uploaded. It comes whole, and is read whole from
// whichever server answers.
func TestOverAClusterThatLosesItsLeader(t *testing.T) {
	t.Parallel()
	ctx := bounded(t)
	cluster, err := embedded.StartCluster(ctx, embedded.ClusterConfig{
		StoreDir: t.TempDir(), Durability: embedded.DurabilityInterval, MaxStoreBytes: 6 << 30, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cluster.Shutdown(context.WithoutCancel(ctx)); err != nil {
			t.Error(err)
		}
	})
	connect := func() *nats.Conn {
		nc, err := cluster.Ledger(nats.MaxReconnects(-1), nats.ReconnectWait(10*time.Millisecond))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(nc.Close)
		return nc
	}
	nc := connect()
	if err := Ensure(ctx, nc, topology.Options{Replicas: 3, BucketBytes: 16 << 20}); err != nil {
		t.Fatal(err)
	}
	store, err := OpenStore(ctx, nc, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	service, err := Serve(nc, Config{Store: store, Version: "0.1.0", Now: time.Now, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := service.Stop(); err != nil {
			t.Error(err)
		}
	})
	client := NewClient(connect(), nil)
	const size = content(12*ChunkBytes + 1)
	var once sync.Once
	_, err = client.Publish(ctx, size, size.digest(), int64(size), "f", func(done int64) {
		if done < 4*ChunkBytes {
			return
		}
		once.Do(func() {
			leader, ok := cluster.Leader(topology.ObjectsStream(topology.ObjectsArtifacts))
			if !ok {
				t.Error("the artifacts have no leader")
				return
			}
			if err := cluster.StopNode(leader); err != nil {
				t.Error(err)
			}
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	deadline := time.After(waitLimit)
	for tick := time.Tick(20 * time.Millisecond); ; {
		got, err := fetch(t, client, size.digest())
		if err == nil {
			if !bytes.Equal(got, size.bytes()) {
				t.Errorf("%d bytes came", len(got))
			}
			return
		}
		if !errors.Is(err, artifacts.ErrUnavailable) {
			t.Fatal(err)
		}
		select {
		case <-tick:
		case <-deadline:
			t.Fatal(err)
		}
	}
}
