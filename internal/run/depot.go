package run

import (
	"context"
	"time"

	"github.com/cockroachdb/errors"
	"github.com/nats-io/nats.go"

	"catenary/agent/artifacts"
	"catenary/agent/depot"
	"catenary/agent/logs"
	"catenary/chain"
	"catenary/es"
	"catenary/es/natskv"
	"catenary/events"
	"catenary/internal/topology"
)

// prepareBulk makes or checks what is no part of the record: artifacts and logs. It comes after all else, the copies of buckets included,
// since these do with the room that is left.
func prepareBulk(ctx context.Context, nc *nats.Conn, options topology.Options) error {
	if err := depot.Ensure(ctx, nc, options); err != nil {
		return err
	}
	return logs.Ensure(ctx, nc, options)
}

// serveLogs keeps logs and gives them out until the context ends.
func (p *projectorPart) serveLogs(ctx context.Context, serves func()) error {
	service, err := logs.Serve(p.nc, Version(), p.log.With("component", "logs"))
	return untilStopped(ctx, service, err, serves)
}

// serveDepot keeps artifacts and gives them out until the context ends.
func (p *projectorPart) serveDepot(ctx context.Context, serves func()) error {
	store, err := depot.OpenStore(ctx, p.nc, p.cfg.Now)
	if err != nil {
		return stoppedBy(ctx, err)
	}
	reader := chain.NewReader(chain.Config{
		Open: func(ctx context.Context, bucket string) (chain.Bucket, error) { return natskv.Open(ctx, p.nc, bucket) }, Clock: p.cfg.Now,
	})
	service, err := depot.Serve(p.nc, depot.Config{
		Store: store, Now: p.cfg.Now, Version: Version(), Logger: p.log.With("component", "depot"),
		Facts: func(ctx context.Context, since time.Time) (depot.Facts, error) {
			if err := p.awaitViews(ctx); err != nil {
				return depot.Facts{}, err
			}
			return depot.ReadFacts(ctx, reader, since)
		},
		Named: func(ctx context.Context, of events.Package) (string, error) {
			digest, err := depot.Named(ctx, reader, of)
			if !errors.Is(err, artifacts.ErrNotFound) {
				return digest, err
			}
			// It may have been recorded a moment ago.
			if err := p.awaitViews(ctx); err != nil {
				return "", err
			}
			return depot.Named(ctx, reader, of)
		},
	})
	return untilStopped(ctx, service, err, serves)
}

// viewsPatience bounds the wait until all that is recorded shows.
const viewsPatience = 20 * time.Second

// awaitViews waits until every view shows all that is recorded. One that has stopped is an error: what it does not show may be what counts.
func (p *projectorPart) awaitViews(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, viewsPatience)
	defer cancel()
	tail, err := p.store.Tail(ctx)
	if err != nil {
		return err
	}
	views, _, err := positions(ctx, p.runner, tail)
	if err != nil {
		return err
	}
	for _, v := range views {
		if v.Event < tail || v.Stopped != "" {
			return errors.Mark(errors.Newf("view %s shows what was recorded up to event %d of %d (%s): what is needed can't be told", v.View, v.Event, tail, v.Stopped), es.ErrUnavailable)
		}
	}
	return nil
}
