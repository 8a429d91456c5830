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
	if err := s.undescribe(ctx, &o); err != nil {
		return err
	}
	err = s.purge(ctx, upload)
	if errors.Is(err, errDamaged) {
		return nil // it is an artifact no more; its pieces have to stay
	}
	return err
}

// undescribe makes an artifact none. A note stays.
func (s *Store) undescribe(ctx context.Context, o *object) error {
	o.Deleted, o.Size, o.Chunks, o.Digest, o.Metadata = true, 0, 0, "", nil
	return s.describe(ctx, o)
}

// purge removes a row of pieces. One that can't be read whole stays, with an error marked errDamaged: to remove messages of a damaged file
// makes the server lose others in it, such as descriptions (tried with 2.15.3).
func (s *Store) purge(ctx context.Context, upload string) error {
	if err := s.readable(ctx, upload); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	err := s.stream.Purge(ctx, jetstream.WithPurgeSubject(chunkSubject(upload)))
	if err != nil {
		return natsstore.ReadError(errors.Wrapf(err, "remove upload %s", upload))
	}
	return nil
}

// readable reads a row of pieces to its end.
func (s *Store) readable(ctx context.Context, upload string) error {
	rows, err := s.subjects(ctx, chunkSubject(upload))
	if err != nil {
		return err
	}
	count := int64(rows[chunkSubject(upload)])
	from := uint64(1)
	for index := int64(0); index < count; {
		first := index
		for m, err := range s.pieces(ctx, upload, from, first, count) {
			if err != nil {
				return err
			}
			index, from = index+1, m.Sequence+1
		}
		if index == first {
			return errors.Mark(errors.Newf("upload %s: %d of %d pieces can be read", upload, index, count), errDamaged)
		}
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
		last, err := s.last(ctx, subject)
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
		if errors.IsAny(err, errMoved, errDamaged) {
			continue // somebody goes on with it after all, or it has to stay
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
