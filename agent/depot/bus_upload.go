package depot

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/cockroachdb/errors"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"catenary/agent/artifacts"
	"catenary/es"
	"catenary/es/natsstore"
	"catenary/internal/parts"
)

// Chunk is a piece of an upload.
type Chunk struct {
	Digest string
	// Bytes is the size of the whole.
	Bytes int64
	// After is the place that it goes to.
	After Place
	Data  []byte
}

// Put stores a piece after those that are there. It gives errors marked errMoved when that is not where it belongs any more,
// [es.ErrTooLarge], [es.ErrFull], [es.ErrUnavailable], [artifacts.ErrDigest] and, for a piece of the wrong size, [parts.ErrRequest].
func (s *Store) Put(ctx context.Context, c Chunk) (Place, error) {
	if err := CheckSize(c.Digest, c.Bytes); err != nil {
		return Place{}, err
	}
	have := c.After.Have
	index := have / ChunkBytes
	if have < 0 || have%ChunkBytes != 0 || have >= c.Bytes || int64(len(c.Data)) != chunkLen(c.Bytes, index) {
		return Place{}, errors.Mark(errors.Newf("a piece of %d bytes at %d of %d: pieces have %d bytes, but for the last one", len(c.Data), have, c.Bytes, ChunkBytes), parts.ErrRequest)
	}
	o, err := s.object(ctx, c.Digest)
	if err != nil {
		return Place{}, err
	}
	if o.there() {
		stored := o.stored()
		return Place{Stored: &stored}, nil
	}
	upload := o.upload(c.Digest)
	if upload != c.After.Upload {
		return Place{}, errors.Mark(errors.Newf("upload %s: it is %s now", c.After.Upload, upload), errMoved)
	}
	m := nats.NewMsg(chunkSubject(upload))
	m.Header.Set(headerPlace, strconv.FormatInt(index+1, 10))
	m.Data = c.Data
	ack, err := s.publish(ctx, m, c.After.After)
	if err != nil {
		return Place{}, putError(errors.Wrapf(err, "piece %d of artifact %s", index+1, c.Digest))
	}
	return Place{Upload: upload, After: ack.Sequence, Have: have + int64(len(c.Data))}, nil
}

// putError translates the failure to store a message. One that may be stored is like one that is elsewhere: whoever goes on asks first.
func putError(err error) error {
	err = natsstore.AnswerError(err)
	if errors.Is(err, es.ErrConflict) {
		return errors.Mark(err, errMoved)
	}
	if errors.Is(err, es.ErrUnclear) {
		return errors.Mark(err, es.ErrUnavailable)
	}
	return err
}

// Finish makes an artifact of an upload that has all its pieces: it reads them from the store, and describes what has the digest. What has
// not is removed. Of an artifact that is there already it takes note that it was published again, when it can still be read whole; one that
// is damaged is removed, with an error marked errMoved, so that it is uploaded anew. It gives errors of type [*artifacts.Mismatch], marked
// errMoved when somebody else was at it, [es.ErrFull], [es.ErrUnavailable] and [artifacts.ErrDigest].
func (s *Store) Finish(ctx context.Context, digest string, bytes int64, file string) (Finished, error) {
	o, err := s.object(ctx, digest)
	if err != nil {
		return Finished{}, err
	}
	if o.there() {
		return s.again(ctx, o)
	}
	if err := CheckSize(digest, bytes); err != nil {
		return Finished{}, err
	}
	upload := o.upload(digest)
	windows, err := s.verify(ctx, upload, digest, bytes)
	if errors.Is(err, artifacts.ErrMismatch) {
		err = errors.CombineErrors(err, s.purge(ctx, upload))
	}
	if err != nil {
		return Finished{}, err
	}
	now := s.now().UTC().Format(time.RFC3339Nano)
	sum, err := hex.DecodeString(strings.TrimPrefix(digest, artifacts.Algorithm))
	if err != nil {
		return Finished{}, errors.Mark(err, artifacts.ErrDigest)
	}
	o.ObjectInfo = jetstream.ObjectInfo{
		ObjectMeta: jetstream.ObjectMeta{
			Name: digest, Description: "Catenary: an artifact, as it was published.", Opts: &jetstream.ObjectMetaOptions{ChunkSize: ChunkBytes},
			Metadata: map[string]string{metaStored: now, metaUsed: now, metaWindows: windows, metaFile: file},
		},
		Bucket: s.bucket(), NUID: upload, Size: uint64(bytes), Chunks: uint32(chunks(bytes)), Digest: objectDigest(sum),
	}
	err = s.describe(ctx, &o)
	return Finished{Stored: o.stored()}, err
}

// again takes note that an artifact was published again.
func (s *Store) again(ctx context.Context, o object) (Finished, error) {
	_, err := s.verify(ctx, o.NUID, o.Name, int64(o.Size))
	switch {
	case errors.IsAny(err, errDamaged, errMoved, artifacts.ErrMismatch):
		// Its pieces stay: to purge messages of a damaged file makes the server lose the others in it.
		err = errors.Mark(errors.Wrapf(err, "artifact %s is to be uploaded anew", o.Name), errMoved)
		return Finished{}, errors.CombineErrors(err, s.undescribe(ctx, &o))
	case err != nil:
		return Finished{}, err
	}
	o.Metadata[metaUsed] = s.now().UTC().Format(time.RFC3339Nano)
	err = s.describe(ctx, &o)
	return Finished{Stored: o.stored(), Again: true}, err
}

// verify reads an upload, and says where each window of it begins.
func (s *Store) verify(ctx context.Context, upload, digest string, bytes int64) (windows string, err error) {
	sum := sha256.New()
	var firsts []string
	var from uint64 = 1
	for index := int64(0); index < chunks(bytes); {
		first := index
		for m, err := range s.pieces(ctx, upload, from, first, chunks(bytes)) {
			if err != nil {
				return "", err
			}
			if index == first {
				firsts = append(firsts, strconv.FormatUint(m.Sequence, 10))
			}
			if want := chunkLen(bytes, index); int64(len(m.Data)) != want {
				return "", errors.WithStack(&artifacts.Mismatch{Expected: digest, Found: fmt.Sprintf("a piece of %d bytes, where %d of %d were left", len(m.Data), want, bytes)})
			}
			sum.Write(m.Data)
			index, from = index+1, m.Sequence+1
		}
		if index == first {
			return "", errors.Mark(errors.Newf("upload %s: %d of %d pieces are there", upload, index, chunks(bytes)), errMoved)
		}
	}
	if found := artifacts.Algorithm + hex.EncodeToString(sum.Sum(nil)); found != digest {
		return "", errors.WithStack(&artifacts.Mismatch{Expected: digest, Found: found})
	}
	return strings.Join(firsts, ","), nil
}

// describe stores the description of an object after the one it was read as.
func (s *Store) describe(ctx context.Context, o *object) error {
	// Older clients read the time from the body.
	o.ModTime = s.now().UTC()
	body, err := json.Marshal(o.ObjectInfo)
	if err != nil {
		return errors.Wrapf(err, "describe artifact %s", o.Name)
	}
	m := nats.NewMsg(metaSubject(o.Name))
	m.Header.Set(jetstream.MsgRollup, jetstream.MsgRollupSubject)
	m.Data = body
	ack, err := s.publish(ctx, m, o.sequence)
	if err != nil {
		return putError(errors.Wrapf(err, "describe artifact %s", o.Name))
	}
	o.sequence = ack.Sequence
	return nil
}
