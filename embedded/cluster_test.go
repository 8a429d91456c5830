package embedded_test

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/cockroachdb/errors"
	"github.com/nats-io/nats.go/jetstream"

	"catenary/embedded"
	"catenary/internal/topology"
)

func TestCluster(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	config := embedded.ClusterConfig{StoreDir: dir, Logger: slog.New(slog.DiscardHandler)}
	c, err := embedded.StartCluster(testContext(t), config)
	check(t, err)
	t.Cleanup(func() { shutdown(t, c) })
	_, js := ledgerOf(t, c)
	check(t, c.EnsureMirrors(testContext(t)))
	if got := actorSpy(t, c)(dial(t, c.NodeURL(2))); got != topology.UserOperator {
		t.Errorf("actor through node 2 is %q, want the operator", got)
	}
	published := publish(t, js, 20)
	awaitMirror(t, c, topology.BucketAssignments, put(t, js, topology.BucketAssignments, "n1.web", 5))

	leader, ok := c.Leader(topology.EventStream)
	if !ok {
		t.Fatal("the event stream has no leader")
	}
	check(t, c.StopNode(leader))
	if err := c.StopNode(leader); !errors.Is(err, embedded.ErrNode) {
		t.Errorf("stopping a stopped node: got error %v, want ErrNode", err)
	}
	published += publish(t, js, 20)
	if next, ok := c.Leader(topology.EventStream); !ok || next == leader {
		t.Errorf("leader is %d, %v after node %d stopped", next, ok, leader)
	}
	check(t, c.StartNode(testContext(t), leader))
	if err := c.StartNode(testContext(t), leader); !errors.Is(err, embedded.ErrNode) {
		t.Errorf("starting a running node: got error %v, want ErrNode", err)
	}
	published += publish(t, js, 20)
	if got := lastSequence(t, js, topology.EventStream); got < uint64(published) {
		t.Errorf("event stream ends at %d, want at least %d", got, published)
	}
	// Mirrors are whole, if not yet following: after a node is lost the server notices a silent origin within ten seconds or two
	// times that.
	trueMirror(t, c, topology.BucketAssignments)
	shutdown(t, c)
	if err := c.StartNode(testContext(t), 0); !errors.Is(err, embedded.ErrStopped) {
		t.Errorf("starting a node of a stopped cluster: got error %v, want ErrStopped", err)
	}
	if _, err := c.Mirrors(); !errors.Is(err, embedded.ErrStopped) {
		t.Errorf("connection of a stopped cluster: got error %v, want ErrStopped", err)
	}
}

// publish appends events one after another; each is tried until it is acknowledged, as a leader may just be leaving.
func publish(t *testing.T, js jetstream.JetStream, count int) int {
	t.Helper()
	for i := range count {
		eventually(t, "an acknowledged event", func() bool {
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			_, err := js.Publish(ctx, "evt.node.n1", fmt.Append(nil, i))
			return err == nil
		})
	}
	return count
}

func shutdown(t *testing.T, c *embedded.Cluster) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := c.Shutdown(ctx); err != nil {
		t.Errorf("stop the cluster: %+v", err)
	}
}

func TestClusterStoreIsLocked(t *testing.T) {
	t.Parallel()
	config := embedded.ClusterConfig{StoreDir: t.TempDir(), Logger: slog.New(slog.DiscardHandler)}
	c, err := embedded.StartCluster(testContext(t), config)
	check(t, err)
	t.Cleanup(func() { shutdown(t, c) })
	if _, err := embedded.StartCluster(testContext(t), config); !errors.Is(err, embedded.ErrStoreLocked) {
		t.Errorf("got error %v, want ErrStoreLocked", err)
	}
}
