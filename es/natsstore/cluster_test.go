package natsstore_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/cockroachdb/errors"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"catenary/embedded"
	"catenary/es"
	"catenary/es/estest"
	"catenary/es/natsstore"
	"catenary/internal/topology"
)

func cluster(t *testing.T) (*embedded.Cluster, *nats.Conn) {
	t.Helper()
	ctx := deadline(t)
	c, err := embedded.StartCluster(ctx, embedded.ClusterConfig{
		StoreDir: t.TempDir(), Durability: embedded.DurabilityInterval, MaxStoreBytes: 4 << 30, EventStoreBytes: 256 << 20, BucketBytes: 1 << 20,
		Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Shutdown(context.WithoutCancel(ctx)); err != nil {
			t.Error(err)
		}
	})
	nc, err := c.Ledger(nats.MaxReconnects(-1))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	return c, nc
}

// openReplicated makes the stream anew, on three nodes, and opens a store on it.
func openReplicated(t *testing.T, nc *nats.Conn, l estest.Limits) *natsstore.Store {
	t.Helper()
	if err := js(t, nc).DeleteStream(deadline(t), topology.EventStream); err != nil && !errors.Is(err, jetstream.ErrStreamNotFound) {
		t.Fatal(err)
	}
	if l.TotalBytes == 0 {
		l.TotalBytes = 256 << 20
	}
	if err := natsstore.Ensure(deadline(t), nc, topology.Options{Replicas: 3, EventStoreBytes: l.TotalBytes}); err != nil {
		t.Fatal(err)
	}
	if l.MessageBytes > 0 {
		changeStream(t, nc, func(c *jetstream.StreamConfig) { c.MaxMsgSize = int32(l.MessageBytes) })
	}
	awaitListener(t, nc)
	s, err := natsstore.Open(deadline(t), nc, natsstore.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// awaitListener waits until every server knows who takes events: a new stream's leader tells the others a moment after the stream
// was made. It asks for something the stream refuses.
func awaitListener(t *testing.T, nc *nats.Conn) {
	t.Helper()
	for ctx := deadline(t); ; {
		_, err := js(t, nc).Publish(ctx, "evt.node.n1", nil, jetstream.WithExpectLastSequence(1<<40))
		var refused *jetstream.APIError
		switch {
		case errors.As(err, &refused) && refused.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequence:
			return
		case ctx.Err() != nil:
			t.Fatalf("the stream does not answer: %v", err)
		}
	}
}

// TestStoreReplicated runs the suite on three nodes, with a new stream for each test.
func TestStoreReplicated(t *testing.T) {
	t.Parallel()
	_, nc := cluster(t)
	estest.RunStoreSuite(t, func(t *testing.T, l estest.Limits) es.Store { return openReplicated(t, nc, l) })
}

// TestReplicatedAppendsSurviveTheirLeaders appends single events and batches while the stream's leader is killed twice:
// what is not clear is settled, nothing is lost and nothing stands twice. No append carries an id for the server: replicas
// would come to differ over it.
func TestReplicatedAppendsSurviveTheirLeaders(t *testing.T) {
	t.Parallel()
	c, nc := cluster(t)
	s := openReplicated(t, nc, estest.Limits{})
	chain := estest.Chain{Label: "a"}
	if err := es.Wait(deadline(t), chain.Hand(t.Context(), s, 3)); err != nil {
		t.Fatal(err)
	}
	chain.Append(t, s, 2)
	for sequence := uint64(1); sequence <= 5; sequence++ {
		for _, name := range []string{"Nats-Msg-Id", "Nats-Expected-Last-Msg-Id"} {
			if v := raw(t, nc, sequence).Header.Get(name); v != "" {
				t.Errorf("event %d carries %s %q", sequence, name, v)
			}
		}
	}
	ctx := deadline(t)
	stored := make(chan uint64, 600)
	failed := make(chan error, 1)
	go func() {
		defer close(stored)
		for i := range cap(stored) {
			after := chain.Head
			batch := chain.Next(1 + i%3)
			err := es.Wait(ctx, s.Append(ctx, after, batch))
			if err != nil {
				err = es.Settle(ctx, s, after, batch)
			}
			if err != nil {
				failed <- errors.Wrapf(err, "append %d", i)
				return
			}
			stored <- chain.Head.Sequence
		}
	}()
	n := 0
	for range stored {
		if n++; n != 200 && n != 400 {
			continue
		}
		leader, ok := c.Leader(topology.EventStream)
		if !ok {
			t.Fatal("the stream has no leader")
		}
		if err := c.StopNode(leader); err != nil {
			t.Fatal(err)
		}
		if err := c.StartNode(ctx, leader); err != nil {
			t.Fatal(err)
		}
	}
	select {
	case err := <-failed:
		t.Fatal(err)
	default:
	}
	wantChain(t, s, chain.Head.Sequence)
}

// TestAppendToALeaderThatDiedIsUnclearSoon holds a store to what a cluster needs: an append to a leader that was killed is never answered when the
// connection to another server stands, and a writer that waited for it as long as for a slow disk would stand still long after another leads.
func TestAppendToALeaderThatDiedIsUnclearSoon(t *testing.T) {
	t.Parallel()
	const electedWithin = 9 * time.Second
	_, nc := cluster(t)
	s := openReplicated(t, nc, estest.Limits{})
	if limit := s.AckTimeout(); limit >= electedWithin {
		t.Errorf("an append is unclear after %v, and another leads within %v", limit, electedWithin)
	}
}
