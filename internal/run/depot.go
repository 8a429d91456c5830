package run

import (
	"context"
	"log/slog"
	"time"

	"github.com/cockroachdb/errors"
	"github.com/nats-io/nats.go"

	"catenary/agent/artifacts"
	"catenary/agent/depot"
	"catenary/agent/logs"
	"catenary/chain"
	"catenary/es"
	"catenary/es/natskv"
	"catenary/es/project"
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
func serveLogs(ctx context.Context, nc *nats.Conn, log *slog.Logger, serves func()) error {
	service, err := logs.Serve(nc, Version(), log)
	return untilStopped(ctx, service, err, serves)
}

// serveDepot keeps artifacts and gives them out until the context ends.
func serveDepot(ctx context.Context, nc *nats.Conn, stream es.Store, runner *project.Runner, now func() time.Time, log *slog.Logger, serves func()) error {
	store, err := depot.OpenStore(ctx, nc, now)
	if err != nil {
		return stoppedBy(ctx, err)
	}
	reader := chain.NewReader(chain.Config{
		Open: func(ctx context.Context, bucket string) (chain.Bucket, error) { return natskv.Open(ctx, nc, bucket) }, Clock: now,
	})
	service, err := depot.Serve(nc, depot.Config{
		Store: store, Now: now, Version: Version(), Logger: log,
		Facts: func(ctx context.Context, since time.Time) (depot.Facts, error) {
			if err := awaitViews(ctx, stream, runner); err != nil {
				return depot.Facts{}, err
			}
			return depot.ReadFacts(ctx, reader, since)
		},
		Named: func(ctx context.Context, p events.Package) (string, error) {
			digest, err := depot.Named(ctx, reader, p)
			if !errors.Is(err, artifacts.ErrNotFound) {
				return digest, err
			}
			// It may have been recorded a moment ago.
			if err := awaitViews(ctx, stream, runner); err != nil {
				return "", err
			}
			return depot.Named(ctx, reader, p)
		},
	})
	return untilStopped(ctx, service, err, serves)
}

// viewsPatience bounds the wait until all that is recorded shows.
const viewsPatience = 20 * time.Second

// awaitViews waits until every view shows all that is recorded. One that has stopped is an error: what it does not show may be what counts.
func awaitViews(ctx context.Context, events es.Store, runner *project.Runner) error {
	ctx, cancel := context.WithTimeout(ctx, viewsPatience)
	defer cancel()
	tail, err := events.Tail(ctx)
	if err != nil {
		return err
	}
	views, _, err := positions(ctx, runner, tail)
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
