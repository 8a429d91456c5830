package run

import (
	"context"
	"crypto/rand"
	"log/slog"
	"time"

	"github.com/nats-io/nats.go"

	"catenary/audit/proof"
	"catenary/es"
	"catenary/es/natskv"
	"catenary/events"
	"catenary/internal/topology"
)

// ProofConfig says how a projector signs checkpoints.
type ProofConfig struct {
	// KeyFile holds the keys; it is made at the first start of a chain. Empty means that this projector signs nothing.
	KeyFile string
	// NewKeys says why keys sign that have signed none of the chain's checkpoints. Empty means that none do.
	NewKeys string
	// Chain is the name that a new key bears. Empty means one by chance.
	Chain string
	// Every and AfterEvents say when a checkpoint is due. Zero means the defaults of audit/proof.
	Every       time.Duration
	AfterEvents uint64
}

// prepareProofs makes or checks what the proofs rest on.
func prepareProofs(ctx context.Context, nc *nats.Conn, options topology.Options) error {
	if err := natskv.Ensure(ctx, nc, topology.Tiles(options)); err != nil {
		return err
	}
	return proof.EnsureCheckpoints(ctx, nc, options)
}

// newProofs makes the log that signs checkpoints and gives proofs.
func newProofs(ctx context.Context, nc *nats.Conn, store es.Store, c ProofConfig, now func() time.Time, log *slog.Logger) (*proof.Log, error) {
	tiles, err := natskv.OpenKeyValue(ctx, nc, topology.BucketTiles)
	if err != nil {
		return nil, err
	}
	checkpoints, err := proof.OpenCheckpoints(ctx, nc)
	if err != nil {
		return nil, err
	}
	config := proof.Config{
		Events: store, Tiles: proof.BucketTiles{Bucket: tiles}, Checkpoints: checkpoints, Every: c.Every, AfterEvents: c.AfterEvents, Now: now, Logger: log,
		Accepted: func(ctx context.Context) (func(proof.Checkpoint) bool, error) {
			accepted, err := acceptedWitnesses(ctx, store, events.Registry())
			return func(c proof.Checkpoint) bool { return accepted[checkpointWitness(c)] }, err
		},
	}
	if c.KeyFile == "" {
		log.Info("this projector has no key, so it signs no checkpoints")
		return proof.New(config), nil
	}
	var keys proof.KeyFile
	err = withOthers(ctx, func(ctx context.Context) (err error) {
		keys, config.New, err = proof.SigningKeys{Path: c.KeyFile, Chain: c.Chain, NewKeys: c.NewKeys, Random: rand.Reader}.Open(ctx, checkpoints)
		return err
	})
	if err != nil {
		return nil, err
	}
	switch {
	case config.New != nil:
		log.Warn("new keys sign, as told; the next checkpoint says so", "keys", config.New.Keys, "reason", config.New.Reason)
	case c.NewKeys != "":
		log.Info("the keys that are there have signed before, so no new ones are put on record", "keys", keys.Public)
	}
	if keys.Exposed {
		log.Warn("others could read the keys that checkpoints are signed with; they can't any more, but the keys may have to be replaced", "file", keys.Path)
	}
	config.Signers, config.Public = keys.Signers, keys.Public
	log.Info("checkpoints are signed", "chain", keys.Name(), "keys", keys.Public)
	return proof.New(config), nil
}

func serveProofs(ctx context.Context, nc *nats.Conn, l *proof.Log, serves func()) error {
	service, err := proof.Serve(nc, Version(), l)
	return untilStopped(ctx, service, err, serves)
}
