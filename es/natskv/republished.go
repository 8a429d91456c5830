package natskv

import (
	"strings"

	"github.com/cockroachdb/errors"
	"github.com/nats-io/nats.go"

	"catenary/es/project"
	"catenary/internal/topology"
)

// Headers that the server adds to a value that it republishes.
const (
	headerStream   = "Nats-Stream"
	headerSubject  = "Nats-Subject"
	headerSequence = "Nats-Sequence"
	headerStored   = "Nats-Time-Stamp"
)

// ReadRepublished reads a value as the server republishes it, on the subject of topology.ToldSubject, and gives the name of its bucket
// beside it.
//
// It is a hint, and may be lost, late or forged: whoever acts on it reads the key, and takes nothing whose source is not after that of
// what they have. Revisions of two generations of a bucket can't be compared. It gives errors marked [project.ErrForeign] for what no
// projector wrote.
func ReadRepublished(m *nats.Msg) (bucket string, e Entry, err error) {
	bucket, ok := strings.CutPrefix(m.Header.Get(headerStream), topology.BucketStream(""))
	key, ok2 := strings.CutPrefix(m.Header.Get(headerSubject), topology.BucketSubject(bucket, ""))
	if !ok || !ok2 {
		return "", Entry{}, errors.Mark(errors.Newf("the message on %s is not republished from a bucket", m.Subject), project.ErrForeign)
	}
	e = Entry{Key: key, Value: m.Data}
	r := headerReader{h: m.Header}
	e.Revision = r.number(headerSequence, r.get(headerSequence))
	e.Stored = r.time(headerStored, r.get(headerStored))
	if e.Meta, err = readHeader(m.Header); err == nil {
		err = r.err
	}
	return bucket, e, errors.Wrapf(err, "value of key %s, republished from bucket %s", key, bucket)
}
