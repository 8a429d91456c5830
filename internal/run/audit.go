package run

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"

	"github.com/cockroachdb/errors"
	"github.com/nats-io/nats.go"

	"catenary/audit"
	"catenary/audit/store"
	"catenary/chain"
	"catenary/es"
	"catenary/es/dispatch"
	"catenary/es/natskv"
	"catenary/internal/topology"
)

// AuditFile is the name of the audit store in a store directory.
const AuditFile = "audit.db"

// newAuditStore makes the audit store in its file. It gives errors for a folder that can't be made.
func (p *projectorPart) newAuditStore() (*store.Store, error) {
	if err := os.MkdirAll(filepath.Dir(p.cfg.AuditFile), 0o700); err != nil {
		return nil, errors.Wrap(err, "folder of the audit store")
	}
	return store.New(store.Config{
		Path: p.cfg.AuditFile, Events: p.store, Registry: p.registry, Clock: p.cfg.Now, Logger: p.log.With("component", "audit store"),
		Feeds: []store.Feed{
			func(ctx context.Context, s *store.Store) error { return feedActors(ctx, p.nc, s) },
			func(ctx context.Context, s *store.Store) error { return feedRefused(ctx, p.nc, p.cfg.Streams, s) },
		},
	})
}

// lookEvery is how many refused commands are taken in before it is asked again which the stream has let go.
const lookEvery = 256

// feedRefused brings refused commands into the audit store, until the context ends.
func feedRefused(ctx context.Context, nc *nats.Conn, streams topology.Options, s *store.Store) error {
	refused, err := dispatch.OpenRefused(ctx, nc, topology.Refused(streams))
	if err != nil {
		return err
	}
	through, err := s.RefusedThrough(ctx)
	if err != nil {
		return err
	}
	var earliest uint64
	taken := 0
	for r, err := range refused.Follow(ctx, through) {
		if err != nil {
			return err
		}
		if taken%lookEvery == 0 {
			if earliest, err = refused.Earliest(ctx); err != nil {
				return err
			}
		}
		taken++
		if err := s.AddRefused(ctx, earliest, told(r)); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// told gives a refused command as questions tell it.
func told(r dispatch.Refused) audit.Refused {
	return audit.Refused{
		Sequence: r.Sequence, Recorded: r.Recorded, Command: r.Command, Digest: r.Digest, Aggregate: r.Aggregate, Key: r.Key, Verb: r.Verb, Actor: r.Actor, OnBehalfOf: r.OnBehalfOf,
		Status: string(r.Status), Code: r.Code, Message: r.Message, Hint: r.Hint, Causation: r.Causation, Correlation: r.Correlation,
	}
}

// feedActors keeps the names of actors in the audit store what the directory says, until the context ends. An emptied entry goes
// there too.
func feedActors(ctx context.Context, nc *nats.Conn, s *store.Store) error {
	directory, err := natskv.OpenKeyValue(ctx, nc, topology.BucketActors)
	if err != nil {
		return err
	}
	for record, err := range directory.Watch(ctx) {
		if err != nil {
			return err
		}
		id, err := es.UnescapeToken(record.Key)
		if err != nil {
			return errors.Wrapf(err, "actor %s", record.Key)
		}
		var who chain.Actor
		if len(record.Value) > 0 {
			if err := json.Unmarshal(record.Value, &who); err != nil {
				return errors.Wrapf(err, "actor %s: its entry is not one of ours", id)
			}
		}
		if err := s.SetActor(ctx, id, who); err != nil {
			return err
		}
	}
	return ctx.Err()
}
