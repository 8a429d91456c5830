package run

import (
	"context"
	"crypto/rand"
	"time"

	"github.com/nats-io/nats.go"

	"catenary/audit/proof"
	"catenary/es/natskv"
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
func (p *projectorPart) newProofs(ctx context.Context) (*proof.Log, error) {
	c := p.cfg.Proofs
	tiles, err := natskv.OpenKeyValue(ctx, p.nc, topology.BucketTiles)
	if err != nil {
		return nil, err
	}
	checkpoints, err := proof.OpenCheckpoints(ctx, p.nc)
	if err != nil {
		return nil, err
	}
	config := proof.Config{
		Events: p.store, Tiles: proof.BucketTiles{Bucket: tiles}, Checkpoints: checkpoints, Every: c.Every, AfterEvents: c.AfterEvents, Now: p.cfg.Now, Logger: p.log,
		Accepted: func(ctx context.Context) (func(proof.Checkpoint) bool, error) {
			accepted, err := acceptedWitnesses(ctx, p.store, p.registry)
			return func(c proof.Checkpoint) bool { return accepted[checkpointWitness(c)] }, err
		},
	}
	if c.KeyFile == "" {
		p.log.Info("this projector has no key, so it signs no checkpoints")
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
		p.log.Warn("new keys sign, as told; the next checkpoint says so", "keys", config.New.Keys, "reason", config.New.Reason)
	case c.NewKeys != "":
		p.log.Info("the keys that are there have signed before, so no new ones are put on record", "keys", keys.Public)
	}
	if keys.Exposed {
		p.log.Warn("others could read the keys that checkpoints are signed with; they can't any more, but the keys may have to be replaced", "file", keys.Path)
	}
	config.Signers, config.Public = keys.Signers, keys.Public
	p.log.Info("checkpoints are signed", "chain", keys.Name(), "keys", keys.Public)
	return proof.New(config), nil
}

// serveProofs gives proofs until the context ends.
func (p *projectorPart) serveProofs(ctx context.Context, serves func()) error {
	service, err := proof.Serve(p.nc, Version(), p.proofs)
	return untilStopped(ctx, service, err, serves)
}
