package run

import (
	"context"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/cockroachdb/errors"
	"github.com/nats-io/nats.go"

	"catenary/agent/depot"
	"catenary/internal/backup"
	"catenary/internal/topology"
)

// BackupArtifacts gives what adds the depot's artifacts to a backup.
func BackupArtifacts(client *depot.Client) func(ctx context.Context, add backup.AddArtifact) error {
	return func(ctx context.Context, add backup.AddArtifact) error {
		for stored, err := range client.List(ctx) {
			if err != nil {
				return errors.Wrap(err, "list the artifacts")
			}
			if err := addArtifact(ctx, client, stored, add); err != nil {
				return err
			}
		}
		return nil
	}
}

func addArtifact(ctx context.Context, client *depot.Client, stored depot.Stored, add backup.AddArtifact) (err error) {
	content, err := client.Open(ctx, stored.Digest, 0)
	if err != nil {
		return errors.Wrapf(err, "artifact %s", stored.Digest)
	}
	defer func() { err = errors.CombineErrors(err, content.Close()) }()
	return add(stored.Digest, stored.File, content)
}

// ServeDepot serves artifacts over a connection in the ledger's account, where no projector runs, while work is done with a client of
// them.
func ServeDepot(ctx context.Context, nc *nats.Conn, options topology.Options, log *slog.Logger, work func(*depot.Client) error) (err error) {
	if err := prepareBulk(ctx, nc, options); err != nil {
		return err
	}
	store, err := depot.OpenStore(ctx, nc, time.Now)
	if err != nil {
		return err
	}
	service, err := depot.Serve(nc, depot.Config{Store: store, Now: time.Now, Version: Version(), Logger: log})
	if err != nil {
		return err
	}
	defer func() { err = errors.CombineErrors(err, service.Stop()) }()
	return work(depot.NewClient(nc, nil))
}

// Restore puts a backup, whose files have been checked, into an empty store: the record, and the artifacts if they are in it. It gives the
// errors of backup.Restore and those of the depot.
func Restore(ctx context.Context, m backup.Manifest, dir string, to backup.Target, log *slog.Logger) error {
	if err := backup.Restore(ctx, m, dir, to); err != nil {
		return err
	}
	files := m.ArtifactFiles()
	if len(files) == 0 {
		return nil
	}
	return ServeDepot(ctx, to.Conn, to.Streams, log, func(client *depot.Client) error {
		for _, f := range files {
			if err := restoreArtifact(ctx, client, dir, f); err != nil {
				return err
			}
		}
		return nil
	})
}

func restoreArtifact(ctx context.Context, client *depot.Client, dir string, f backup.File) (err error) {
	content, err := os.Open(filepath.Join(dir, f.Name))
	if err != nil {
		return errors.Wrap(err, "restore an artifact")
	}
	defer func() { err = errors.CombineErrors(err, content.Close()) }()
	_, err = client.Publish(ctx, io.NewSectionReader(content, 0, f.Bytes), f.Artifact, f.Bytes, f.Title, nil)
	return errors.Wrapf(err, "restore artifact %s", f.Artifact)
}
