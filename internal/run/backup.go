package run

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"hash"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/cockroachdb/errors"
	"github.com/nats-io/nats.go"

	"catenary/agent/artifacts"
	"catenary/agent/depot"
	"catenary/es"
	"catenary/internal/backup"
	"catenary/internal/topology"
)

// BackupArtifacts gives what adds the depot's artifacts to a backup. One that is pruned meanwhile is left out, and one that is damaged ends it.
func BackupArtifacts(client *depot.Client) func(ctx context.Context, add backup.AddArtifact) error {
	return func(ctx context.Context, add backup.AddArtifact) error {
		for stored, err := range client.List(ctx) {
			if err != nil {
				return errors.Wrap(err, "list the artifacts")
			}
			err := add(stored.Digest, stored.File, func(ctx context.Context) (io.ReadCloser, error) {
				content, err := client.Open(ctx, stored.Digest, 0)
				if err != nil {
					return nil, unavailable(err)
				}
				return &compared{ReadCloser: content, digest: stored.Digest, sum: sha256.New()}, nil
			})
			if err != nil && !errors.Is(err, artifacts.ErrNotFound) {
				return errors.WithHint(err, "if it is damaged, publish it again, which mends it; or leave out --artifacts")
			}
		}
		return nil
	}
}

// compared is an artifact's content that ends with an error when it is not what its digest says.
type compared struct {
	io.ReadCloser
	digest string
	sum    hash.Hash
}

// Read implements [io.Reader].
func (c *compared) Read(p []byte) (int, error) {
	n, err := c.ReadCloser.Read(p)
	_, _ = c.sum.Write(p[:n]) // a hash takes everything
	if !errors.Is(err, io.EOF) {
		return n, unavailable(err)
	}
	if found := artifacts.Algorithm + hex.EncodeToString(c.sum.Sum(nil)); found != c.digest {
		return n, &artifacts.Mismatch{Expected: c.digest, Found: found}
	}
	return n, io.EOF
}

// unavailable marks an error of the depot after which it may be asked again.
func unavailable(err error) error {
	if errors.Is(err, artifacts.ErrUnavailable) {
		return errors.Mark(err, es.ErrUnavailable)
	}
	return err
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
	if files := m.ArtifactFiles(); len(files) > 0 {
		to.Artifacts = func(ctx context.Context) error {
			return ServeDepot(ctx, to.Conn, to.Streams, log, func(client *depot.Client) error {
				for _, f := range files {
					if err := restoreArtifact(ctx, client, dir, f); err != nil {
						return err
					}
				}
				return nil
			})
		}
	}
	return backup.Restore(ctx, m, dir, to)
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
