package depot

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/cockroachdb/errors"
	"github.com/nats-io/nats.go/jetstream"

	"catenary/agent/artifacts"
	"catenary/es/natsstore"
	"catenary/internal/topology"
)

// Remove removes an artifact, if nothing has happened to it since it was as given: one that was published again stays, with an error
// marked errMoved. A note stays that there was one. It gives errors marked [artifacts.ErrNotFound] and [es.ErrUnavailable].
func (s *Store) Remove(ctx context.Context, decided Stored) error {
	o, err := s.object(ctx, decided.Digest)
	switch {
	case err != nil:
		return err
	case !o.there():
		return errors.Mark(errors.Newf("artifact %s is not in the depot", decided.Digest), artifacts.ErrNotFound)
	case !o.stored().Used.Equal(decided.Used):
		return errors.Mark(errors.Newf("artifact %s was published again", decided.Digest), errMoved)
	}
	upload := o.NUID
	o.Deleted, o.Size, o.Chunks, o.Digest, o.Metadata = true, 0, 0, "", nil
	if err := s.describe(ctx, &o); err != nil {
		return err
	}
	return s.purge(ctx, upload)
}

// purge removes a row of pieces.
func (s *Store) purge(ctx context.Context, upload string) error {
	err := s.stream.Purge(ctx, jetstream.WithPurgeSubject(chunkSubject(upload)))
	if err != nil {
		return natsstore.ReadError(errors.Wrapf(err, "remove upload %s", upload))
	}
	return nil
}

// Upload is a row of pieces that is no artifact.
type Upload struct {
	Name  string    `json:"name"`
	Since time.Time `json:"since"`
}

// SweepUploads removes the rows of pieces that are no artifacts and have not grown for [UploadAge]: uploads that nobody has gone on with,
// and what a removal has left that was cut short. It gives errors marked [es.ErrUnavailable].
func (s *Store) SweepUploads(ctx context.Context) ([]Upload, error) {
	// The rows are read first: one that becomes an artifact meanwhile is among the descriptions then.
	rows, err := s.subjects(ctx, chunkSubject(">"))
	if err != nil {
		return nil, err
	}
	all, err := s.described(ctx)
	if err != nil {
		return nil, err
	}
	for _, o := range all {
		if o.there() {
			delete(rows, chunkSubject(o.NUID))
		}
	}
	var removed []Upload
	for _, subject := range slices.Sorted(maps.Keys(rows)) {
		last, err := s.stream.GetLastMsgForSubject(ctx, subject)
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			continue // it went meanwhile
		}
		if err != nil {
			return removed, natsstore.ReadError(errors.Wrap(err, "look at an upload"))
		}
		upload := Upload{Name: strings.TrimPrefix(subject, topology.ObjectChunkSubject(s.bucket(), "")), Since: last.Time}
		if s.now().Sub(upload.Since) < UploadAge {
			continue
		}
		err = s.abandon(ctx, upload.Name)
		if errors.Is(err, errMoved) {
			continue // somebody goes on with it after all
		}
		if err != nil {
			return removed, err
		}
		removed = append(removed, upload)
	}
	return removed, nil
}

// abandon removes a row of pieces that is no artifact. First it makes sure that it does not become one: whoever goes on with the digest
// begins another row.
func (s *Store) abandon(ctx context.Context, upload string) error {
	hex, _, _ := strings.Cut(upload, "-")
	digest := artifacts.Algorithm + hex
	if _, err := artifacts.ParseDigest(digest); err != nil {
		return s.purge(ctx, upload) // none of ours
	}
	o, err := s.object(ctx, digest)
	if err != nil {
		return err
	}
	switch {
	case o.there() && o.NUID == upload:
		return errors.Mark(errors.Newf("upload %s has become an artifact", upload), errMoved)
	case !o.there() && o.upload(digest) == upload:
		o.ObjectInfo = jetstream.ObjectInfo{ObjectMeta: jetstream.ObjectMeta{Name: digest}, Bucket: s.bucket(), NUID: upload, Deleted: true}
		if err := s.describe(ctx, &o); err != nil {
			return err
		}
	}
	return s.purge(ctx, upload)
}
