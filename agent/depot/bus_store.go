package depot

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cockroachdb/errors"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"catenary/agent/artifacts"
	"catenary/es/natsstore"
	"catenary/internal/streams"
	"catenary/internal/topology"
)

const (
	// requestTimeout bounds one question to the server, which takes milliseconds, and a window of pieces from a slow disk a second or two.
	requestTimeout = 10 * time.Second
	// descriptionsAtOnce is how many descriptions are read by one question: the server gives at most 1,024.
	descriptionsAtOnce = 256
)

// headerPlace says which piece of its artifact a message is, from 1.
const headerPlace = "Cat-Place"

// What the description of an object says besides what object buckets say.
const (
	metaFile    = "file"
	metaStored  = "stored"
	metaUsed    = "used"
	metaWindows = "windows"
)

// Store keeps artifacts in the object bucket. It is safe for use by many goroutines, and by several processes.
type Store struct {
	js     jetstream.JetStream
	stream jetstream.Stream
	now    func() time.Time
}

// Ensure makes the stream of artifacts, or checks that the one that exists can hold them. It gives errors marked [es.ErrFull] or
// [es.ErrUnavailable], and unmarked ones for a stream that can't.
func Ensure(ctx context.Context, nc *nats.Conn, o topology.Options) error {
	want := topology.Artifacts(o)
	found, err := streams.EnsureWithin(ctx, nc, want, topology.ArtifactsLess(o), topology.MinStreamBytes)
	if err != nil {
		return natsstore.EnsureError(err)
	}
	if !slices.Equal(found.Subjects, want.Subjects) || !found.AllowRollup || !found.AllowDirect || found.Discard != want.Discard || found.MaxAge != 0 || found.DenyPurge {
		return errors.Newf("stream %s can't hold artifacts: it must have the subjects %q, refuse the new when it is full, keep without a limit of age, and allow rollups, purges and direct reads; "+
			"update it, or use another server", want.Name, want.Subjects)
	}
	return nil
}

// OpenStore gives access to the artifacts, for which [Ensure] has made room. It gives errors marked [es.ErrUnavailable].
func OpenStore(ctx context.Context, nc *nats.Conn, now func() time.Time) (*Store, error) {
	js, err := jetstream.New(nc, jetstream.WithDefaultTimeout(requestTimeout))
	if err != nil {
		return nil, errors.Wrap(err, "open the artifacts")
	}
	stream, err := js.Stream(ctx, topology.ObjectsStream(topology.ObjectsArtifacts))
	if err != nil {
		return nil, natsstore.ReadError(errors.Wrap(err, "open the artifacts"))
	}
	return &Store{js: js, stream: stream, now: now}, nil
}

// object is what is known of a digest: an artifact, or the note that there was one, or nothing.
type object struct {
	jetstream.ObjectInfo
	// sequence is the description's; zero when there is none.
	sequence uint64
}

// there says whether it is an artifact.
func (o object) there() bool { return o.sequence > 0 && !o.Deleted }

// upload names the row of pieces that is to become the artifact. After a removal it is another row, so that what is removed late is never
// what came after it.
func (o object) upload(digest string) string {
	hex, _ := artifacts.ParseDigest(digest)
	return fmt.Sprintf("%s-%d", hex, o.sequence)
}

func (o object) stored() Stored {
	at := func(name string) time.Time {
		t, err := time.Parse(time.RFC3339Nano, o.Metadata[name])
		if err != nil {
			return o.ModTime
		}
		return t
	}
	return Stored{Digest: o.Name, Bytes: int64(o.Size), File: o.Metadata[metaFile], Stored: at(metaStored), Used: at(metaUsed)}
}

// windows are the first pieces of each window.
func (o object) windows() ([]uint64, error) {
	var list []uint64
	for text := range strings.SplitSeq(o.Metadata[metaWindows], ",") {
		sequence, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			return nil, errors.Wrapf(err, "where the pieces of artifact %s are", o.Name)
		}
		list = append(list, sequence)
	}
	return list, nil
}

func metaSubject(digest string) string {
	return topology.ObjectMetaSubject(topology.ObjectsArtifacts, base64.URLEncoding.EncodeToString([]byte(digest)))
}

func chunkSubject(upload string) string {
	return topology.ObjectChunkSubject(topology.ObjectsArtifacts, upload)
}

// last reads the last message of a subject. Every question has a bound of its own: one that was lost with a server has no answer.
func (s *Store) last(ctx context.Context, subject string) (*jetstream.RawStreamMsg, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	return s.stream.GetLastMsgForSubject(ctx, subject)
}

// publish stores a message after another of its subject.
func (s *Store) publish(ctx context.Context, m *nats.Msg, after uint64) (*jetstream.PubAck, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	return s.js.PublishMsg(ctx, m, jetstream.WithExpectLastSequencePerSubject(after))
}

// object reads what is known of a digest.
func (s *Store) object(ctx context.Context, digest string) (object, error) {
	if _, err := artifacts.ParseDigest(digest); err != nil {
		return object{}, err
	}
	m, err := s.last(ctx, metaSubject(digest))
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return object{}, nil
	}
	if err != nil {
		return object{}, natsstore.ReadError(errors.Wrapf(err, "artifact %s", digest))
	}
	return parseObject(m)
}

func parseObject(m *jetstream.RawStreamMsg) (object, error) {
	o := object{sequence: m.Sequence}
	if err := json.Unmarshal(m.Data, &o.ObjectInfo); err != nil {
		return object{}, errors.Wrapf(err, "description of an artifact, message %d", m.Sequence)
	}
	o.ModTime = m.Time
	return o, nil
}

// artifact reads the description of an artifact that has to be there. It gives errors marked [artifacts.ErrNotFound],
// [artifacts.ErrDigest] and [es.ErrUnavailable].
func (s *Store) artifact(ctx context.Context, digest string) (object, error) {
	o, err := s.object(ctx, digest)
	switch {
	case err != nil:
		return o, err
	case o.there():
		return o, nil
	case o.Deleted:
		return o, errors.Mark(errors.Newf("artifact %s is not in the depot: what there was of it was removed at %s", digest, o.ModTime.UTC().Format(time.RFC3339)), artifacts.ErrNotFound)
	}
	// A follower of a cluster may not have it yet; the leader knows.
	described, err := s.subjects(ctx, metaSubject(digest))
	switch {
	case err != nil:
		return o, errors.Wrapf(err, "artifact %s", digest)
	case len(described) > 0:
		return o, errors.Mark(errors.Newf("artifact %s is not on this server yet", digest), artifacts.ErrUnavailable)
	}
	return o, errors.Mark(errors.Newf("artifact %s is not in the depot", digest), artifacts.ErrNotFound)
}

// Stat says how far the upload of a digest is. It gives errors marked [artifacts.ErrDigest] and [es.ErrUnavailable].
func (s *Store) Stat(ctx context.Context, digest string) (Place, error) {
	o, err := s.object(ctx, digest)
	if err != nil {
		return Place{}, err
	}
	if o.there() {
		stored := o.stored()
		return Place{Stored: &stored}, nil
	}
	p := Place{Upload: o.upload(digest)}
	last, err := s.last(ctx, chunkSubject(p.Upload))
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return p, nil
	}
	if err != nil {
		return Place{}, natsstore.ReadError(errors.Wrapf(err, "upload of %s", digest))
	}
	place, err := placeOf(last)
	if err != nil {
		return Place{}, err
	}
	p.After, p.Have = last.Sequence, (place-1)*ChunkBytes+int64(len(last.Data))
	return p, nil
}

func placeOf(m *jetstream.RawStreamMsg) (int64, error) {
	place, err := strconv.ParseInt(m.Header.Get(headerPlace), 10, 64)
	return place, errors.Wrapf(err, "piece of an artifact, message %d", m.Sequence)
}
