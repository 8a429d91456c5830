package run

import (
	"context"
	"log/slog"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/cockroachdb/errors"
	"github.com/nats-io/nats.go"

	"catenary/audit"
	"catenary/chain"
	"catenary/commands"
	"catenary/embedded"
	"catenary/es"
	"catenary/es/dispatch"
	"catenary/es/natskv"
	"catenary/es/project"
	"catenary/events"
	"catenary/internal/mirrors"
	"catenary/internal/topology"
)

// clustered is a chain over three nodes, and what a person has of it.
type clustered struct {
	*embedded.Cluster
	commands *commands.Client
	queries  *audit.Client
	reader   *chain.Reader
}

func startClustered(t *testing.T) *clustered {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	c, err := embedded.StartCluster(t.Context(), embedded.ClusterConfig{
		StoreDir: filepath.Join(t.TempDir(), "cluster"), MaxStoreBytes: 4 << 30, Durability: embedded.DurabilityInterval,
		EventStoreBytes: 100 << 20, BucketBytes: 20 << 20, Logger: log,
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	connect := func(open func(...nats.Option) (*nats.Conn, error)) *nats.Conn {
		nc, err := open()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(nc.Close)
		return nc
	}
	if err := Prepare(ctx, connect(c.Ledger), c.Options()); err != nil {
		t.Fatal(err)
	}
	copies, err := mirrors.New(connect(c.Ledger), connect(c.Mirrors), c.Options(), log)
	if err != nil {
		t.Fatal(err)
	}
	if err := copies.Ensure(ctx); err != nil {
		t.Fatal(err)
	}
	ready, ended := make(chan struct{}, 2), make(chan error, 2)
	isReady := func() { ready <- struct{}{} }
	writer, projector := connect(c.Ledger), connect(c.Ledger)
	go func() {
		ended <- Writer(ctx, writer, WriterConfig{Streams: c.Options(), Durability: dispatch.Durability{Replicas: 3}, Logger: log, Ready: isReady})
	}()
	go func() {
		ended <- Projector(ctx, projector, ProjectorConfig{Streams: c.Options(), Copies: copies, Logger: log, Ready: isReady})
	}()
	t.Cleanup(func() {
		cancel()
		for range 2 {
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}
		stopping, cancel := context.WithTimeout(context.Background(), waitLimit)
		defer cancel()
		if err := c.Shutdown(stopping); err != nil {
			t.Error(err)
		}
	})
	for range 2 {
		select {
		case <-ready:
		case err := <-ended:
			t.Fatalf("a part ended at its start: %v", err)
		case <-time.After(waitLimit):
			t.Fatal("the chain is not ready")
		}
	}
	people, err := nats.Connect(c.ClientURL(), nats.MaxReconnects(-1), nats.ReconnectWait(10*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(people.Close)
	p := &clustered{Cluster: c, commands: commands.NewClient(dispatch.NewClient(people)).Within(waitLimit), queries: audit.NewClient(people, nil)}
	p.reader = chain.NewReader(chain.Config{
		Open: func(ctx context.Context, bucket string) (chain.Bucket, error) {
			return natskv.Open(ctx, people, bucket)
		},
		Positions: func(ctx context.Context, event uint64) ([]chain.Position, error) {
			found, err := p.queries.Position(ctx, audit.PositionQuestion{Sequence: event, Wait: audit.Duration(time.Second)})
			var positions []chain.Position
			for _, v := range found.Views {
				positions = append(positions, chain.Position{View: v.View, Bucket: v.Bucket, Event: v.Event, Revision: v.Revision, Stopped: v.Stopped})
			}
			return positions, err
		},
	})
	return p
}

// write sends a command, which must be accepted, and gives the event it led to.
func (c *clustered) write(t *testing.T, p es.Payload) uint64 {
	t.Helper()
	answer, err := c.commands.Send(t.Context(), p, dispatch.Options{})
	if err != nil || answer.Status != es.StatusAccepted {
		t.Fatalf("answer %+v, error %v", answer, err)
	}
	return answer.Sequence
}

// patiently does what may fail while a node is away, until it succeeds.
func patiently(t *testing.T, ctx context.Context, do func() error) {
	t.Helper()
	for {
		err := do()
		switch {
		case err == nil:
			return
		case ctx.Err() != nil || !errors.IsAny(err, es.ErrUnavailable, audit.ErrNoService, audit.ErrTimeout, audit.ErrIncomplete):
			t.Fatalf("%+v", err)
		}
	}
}

// TestReadYourWritesInACluster is case C04: writes and reads "at least at sequence s" through the copies of three nodes, while one of
// them is restarted and while the bucket is built anew. What is read is never older.
func TestReadYourWritesInACluster(t *testing.T) {
	t.Parallel()
	const rounds, reads = 100, 5
	c := startClustered(t)
	// reads are bounded by more than an election may take.
	ctx, cancel := context.WithTimeout(t.Context(), 5*waitLimit)
	defer cancel()
	leader, ok := c.Leader(topology.EventStream)
	if !ok {
		t.Fatal("the event stream has no leader")
	}
	follower := (leader + 1) % embedded.ClusterNodes
	c.write(t, commands.RegisterNode{Node: "n1"})
	restarted, rebuilt := make(chan error, 1), make(chan error, 1)
	var result project.Rebuilt
	for i := range rounds {
		switch i {
		case rounds / 10:
			go func() {
				err := c.StopNode(follower)
				if err == nil {
					err = c.StartNode(ctx, follower)
				}
				restarted <- err
			}()
		case rounds / 2:
			if err := <-restarted; err != nil {
				t.Fatal(err)
			}
			go func() {
				var err error
				result, err = c.queries.Rebuild(ctx, audit.RebuildQuestion{View: topology.BucketNodes, RebuildOptions: project.RebuildOptions{Anew: true}}, nil)
				rebuilt <- err
			}()
		}
		event := c.write(t, commands.RelabelNode{Node: "n1", Labels: map[string]string{"round": strconv.Itoa(i)}})
		views := []string{topology.BucketNodes}
		if i%20 == 0 {
			views = nil // all of them
		}
		patiently(t, ctx, func() error { return c.reader.WaitFor(ctx, event, views...) })
		for range reads {
			patiently(t, ctx, func() error {
				got, err := chain.Get(ctx, c.reader, chain.Nodes, "n1")
				if err == nil && (got.Sequence < event || got.Value.Labels["round"] != strconv.Itoa(i)) {
					t.Fatalf("round %d: event %d is read as %+v", i, event, got)
				}
				return err
			})
		}
		// An event that leads to no value of the view is waited for as well.
		if i%25 == 0 {
			event = c.write(t, commands.RegisterModule{ModuleSpec: events.ModuleSpec{Module: "m" + strconv.Itoa(i)}})
			patiently(t, ctx, func() error { return c.reader.WaitFor(ctx, event, topology.BucketNodes) })
		}
	}
	if err := <-rebuilt; err != nil || result.Bucket != topology.Generation(topology.BucketNodes, 2) {
		t.Errorf("rebuilt %+v, error %v", result, err)
	}
	event := c.write(t, commands.RelabelNode{Node: "n1", Labels: map[string]string{"round": "last"}})
	if err := c.reader.WaitFor(ctx, event); err != nil {
		t.Fatal(err)
	}
	if bucket, err := c.reader.Bucket(ctx, topology.BucketNodes); err != nil || bucket != result.Bucket {
		t.Errorf("read from %s, error %v", bucket, err)
	}
	report, err := c.queries.Verify(ctx, nil)
	if err != nil || !report.OK() {
		t.Errorf("report %+v, error %v", report, err)
	}
}
