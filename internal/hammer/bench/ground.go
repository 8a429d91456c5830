package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/cockroachdb/errors"
	"github.com/nats-io/nats.go"

	"catenary/embedded"
	"catenary/es/dispatch"
	"catenary/internal/topology"
)

// Sizes of the stores: far above what a run leaves, and small enough for a laptop's disk.
const (
	storeBytes      = 24 << 30
	eventStoreBytes = 4 << 30
	bucketBytes     = 256 << 20
	// shutdownTime bounds stopping a server, which takes milliseconds.
	shutdownTime = 10 * time.Second
)

// ground is the kind of server that rows stand on.
type ground struct {
	durability embedded.Durability
	replicas   int
}

func (g ground) String() string {
	if g.replicas > 1 {
		return fmt.Sprintf("%d replicas, %s", g.replicas, g.durability)
	}
	return "one node, " + string(g.durability)
}

// dispatch is the ground as a writer is told of it.
func (g ground) dispatch() dispatch.Durability {
	return dispatch.Durability{Fsync: g.durability == embedded.DurabilityFsync, Replicas: g.replicas}
}

// server is one running node, or a cluster.
type server interface {
	Ledger(...nats.Option) (*nats.Conn, error)
	Mirrors(...nats.Option) (*nats.Conn, error)
	EnsureMirrors(context.Context) error
	ClientURL() string
	Options() topology.Options
	Shutdown(context.Context) error
}

// start starts a server with an empty store below dir.
func (g ground) start(ctx context.Context, dir string) (server, error) {
	store, err := os.MkdirTemp(dir, "store-")
	if err != nil {
		return nil, errors.Wrap(err, "make a store directory")
	}
	log := slog.New(slog.DiscardHandler)
	if g.replicas > 1 {
		return embedded.StartCluster(ctx, embedded.ClusterConfig{
			StoreDir: store, Durability: g.durability, MaxStoreBytes: storeBytes, EventStoreBytes: eventStoreBytes, BucketBytes: bucketBytes, Logger: log,
		})
	}
	return embedded.Start(ctx, embedded.Config{
		StoreDir: filepath.Join(store, "node"), Durability: g.durability, MaxStoreBytes: storeBytes, EventStoreBytes: eventStoreBytes, BucketBytes: bucketBytes, Logger: log,
	})
}

// on runs work on a server of this kind and stops the server.
func (g ground) on(ctx context.Context, dir string, work func(context.Context, server) error) (err error) {
	s, err := g.start(ctx, dir)
	if err != nil {
		return err
	}
	defer func() {
		stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTime)
		defer cancel()
		err = errors.CombineErrors(err, s.Shutdown(stopping))
	}()
	return work(ctx, s)
}
