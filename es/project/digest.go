package project

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"hash"
	"strconv"
	"time"

	"github.com/cockroachdb/errors"
)

// Digest gives a SHA-256 in hex over every value of a bucket up to a revision, with its key and what is kept beside it, in
// order. A copy of a bucket is the same when it has the same digest. It gives errors marked [es.ErrUnavailable], and
// others when the bucket does not have that revision.
func Digest(ctx context.Context, bucket Bucket, upTo uint64) (string, error) {
	d := newDigester()
	for e, err := range bucket.All(ctx, 0) {
		if err != nil && !errors.Is(err, ErrForeign) {
			return "", err
		}
		if e.Revision > upTo {
			break
		}
		d.add(e)
	}
	if d.revision < upTo {
		return "", errors.Newf("the bucket ends at value %d, before %d", d.revision, upTo)
	}
	return d.sum(), nil
}

// digester sums up a bucket value by value, so that no more than one is held.
type digester struct {
	hash     hash.Hash
	buf      []byte
	revision uint64
}

func newDigester() *digester { return &digester{hash: sha256.New()} }

// add takes in the next value. Each part is preceded by its length, so that nothing can move from one to the other.
func (d *digester) add(e Entry) {
	d.revision = e.Revision
	m := e.Meta
	d.buf = binary.BigEndian.AppendUint64(d.buf[:0], e.Revision)
	for _, text := range []string{
		e.Key, m.Position.String(), strconv.FormatUint(m.Source.Sequence, 10), m.Source.ID, strconv.Itoa(m.Fold), m.Type,
		m.Recorded.UTC().Format(time.RFC3339Nano), m.Effective.UTC().Format(time.RFC3339Nano), m.Actor, m.OnBehalfOf, strconv.FormatBool(m.Backfill),
	} {
		d.buf = binary.BigEndian.AppendUint32(d.buf, uint32(len(text)))
		d.buf = append(d.buf, text...)
	}
	if m.mends() {
		d.buf = m.Mended.UTC().AppendFormat(d.buf, time.RFC3339Nano)
		d.buf = binary.BigEndian.AppendUint64(d.buf, m.Replaces)
	}
	d.buf = binary.BigEndian.AppendUint32(d.buf, uint32(len(e.Value)))
	d.buf = append(d.buf, e.Value...)
	d.hash.Write(d.buf)
}

func (d *digester) sum() string { return hex.EncodeToString(d.hash.Sum(nil)) }
