package natsstore

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"hash"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/cockroachdb/errors"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nuid"

	"catenary/es"
	"catenary/internal/streams"
	"catenary/internal/topology"
)

const (
	// chunkBytes is the size of one message of a base: small enough that an append on the same connection is not kept waiting
	// behind it.
	chunkBytes = 128 << 10
	// keptBases is how many stay: the newest, and the one before, which somebody may be reading.
	keptBases = 2
	// basePrefix starts the names of bases; the event's sequence follows.
	basePrefix = "base-"
	// baseStall is how long a read waits for the next chunk before the base counts as damaged: a lost one never comes.
	baseStall = 10 * time.Second
	// cleanTimeout bounds the removal of what a failed upload left behind.
	cleanTimeout = 2 * time.Second
)

// Snapshots keeps bases in an object bucket, one object each, so that the usual tools show them. It is safe for use by many
// goroutines. Make it with [OpenSnapshots].
//
// nats.go would do the same, but shows an object whose chunks were refused, and waits for lost ones until its deadline.
type Snapshots struct {
	// chunks reads messages as the event store does.
	chunks *Store
	bucket string

	mu sync.Mutex
	// unfinished are the uploads that no base named when they were last looked at, with the number of their chunks.
	unfinished map[string]uint64
}

// EnsureSnapshots creates the object bucket, or raises its limit to what is asked for. It gives an error for one that can't hold
// objects, and errors marked [es.ErrFull] or [es.ErrUnavailable].
func EnsureSnapshots(ctx context.Context, nc *nats.Conn, options topology.Options) error {
	js, err := jetstream.New(nc)
	if err != nil {
		return errors.Wrap(err, "snapshots")
	}
	want := topology.Snapshots(options)
	_, err = streams.Ensure(ctx, js, streams.Plan{Want: want, Kind: ensureError, Check: func(found jetstream.StreamConfig) error {
		// What else it is does not matter: it is safe to lose.
		if !slices.Equal(found.Subjects, want.Subjects) || !found.AllowRollup {
			return errors.Newf("stream %s has the subjects %q and rollup %v: it can't hold snapshots; delete it, and the writer makes another", want.Name, found.Subjects, found.AllowRollup)
		}
		return nil
	}})
	return err
}

// OpenSnapshots gives the snapshots in the object bucket that [EnsureSnapshots] has made. The connection stays the caller's. It
// gives errors marked [es.ErrUnavailable].
func OpenSnapshots(ctx context.Context, nc *nats.Conn, config Config) (*Snapshots, error) {
	config, err := config.withDefaults()
	if err != nil {
		return nil, err
	}
	config.Stream = topology.ObjectsStream(topology.ObjectsSnapshots)
	s := &Store{config: config, nc: nc, connection: context.Background()}
	s.js, err = jetstream.New(nc, jetstream.WithDefaultTimeout(config.AckTimeout))
	if err != nil {
		return nil, errors.Wrap(err, "snapshots")
	}
	ctx, cancel := context.WithTimeout(ctx, config.RequestTimeout)
	defer cancel()
	if s.stream, err = s.js.Stream(ctx, config.Stream); err != nil {
		return nil, readError(errors.Wrapf(err, "open object bucket %s", topology.ObjectsSnapshots))
	}
	return &Snapshots{chunks: s, bucket: topology.ObjectsSnapshots}, nil
}

// Save keeps what write writes as the base at an event. The base shows up when all of it is stored; then older ones go, but
// for the newest before it that is whole. It gives the errors of write, and errors marked as those of [Store.Append].
func (s *Snapshots) Save(ctx context.Context, sequence uint64, write func(io.Writer) error) error {
	up := &upload{ctx: ctx, js: s.chunks.js, digest: sha256.New(), info: jetstream.ObjectInfo{
		ObjectMeta: jetstream.ObjectMeta{
			Name: baseName(sequence), Description: fmt.Sprintf("Catenary: the writer's world at event %d.", sequence),
			Opts: &jetstream.ObjectMetaOptions{ChunkSize: chunkBytes},
		},
		Bucket: s.bucket, NUID: nuid.Next(),
	}}
	up.subject = topology.ObjectChunkSubject(s.bucket, up.info.NUID)
	err := write(up)
	if err == nil {
		err = up.close(s.bucket)
	}
	if err != nil {
		clean, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanTimeout)
		defer cancel()
		return errors.CombineErrors(err, s.purge(clean, up.subject))
	}
	return s.prune(ctx)
}

func baseName(sequence uint64) string { return fmt.Sprintf("%s%020d", basePrefix, sequence) }

// baseSequence reads the name of a base.
func baseSequence(name string) (sequence uint64, ok bool) {
	_, err := fmt.Sscanf(name, basePrefix+"%d", &sequence)
	return sequence, err == nil && baseName(sequence) == name
}

// upload sends what is written to it in chunks.
type upload struct {
	ctx     context.Context
	js      jetstream.JetStream
	subject string
	info    jetstream.ObjectInfo
	digest  hash.Hash
	chunk   []byte
}

// Write takes in a part. It gives errors marked as those of [Store.Append].
func (u *upload) Write(p []byte) (int, error) {
	written := 0
	for len(p) > 0 {
		if u.chunk == nil {
			u.chunk = make([]byte, 0, chunkBytes)
		}
		n := min(len(p), chunkBytes-len(u.chunk))
		u.chunk = append(u.chunk, p[:n]...)
		written, p = written+n, p[n:]
		if len(u.chunk) == chunkBytes {
			if err := u.send(); err != nil {
				return written, err
			}
		}
	}
	return written, nil
}

// send stores a chunk. One is on its way at a time: their order is the object's, and the client's asynchronous publisher can't
// be ended without leaving a goroutine behind now and then.
func (u *upload) send() error {
	u.digest.Write(u.chunk)
	u.info.Size += uint64(len(u.chunk))
	u.info.Chunks++
	if _, err := u.js.PublishMsg(u.ctx, &nats.Msg{Subject: u.subject, Data: u.chunk}); err != nil {
		return answerError(errors.Wrapf(err, "chunk %d of snapshot %s", u.info.Chunks, u.info.Name))
	}
	u.chunk = u.chunk[:0]
	return nil
}

// close lets the object show up, when all of its chunks are stored.
func (u *upload) close(bucket string) error {
	if len(u.chunk) > 0 {
		if err := u.send(); err != nil {
			return err
		}
	}
	u.info.Digest = jetstream.GetObjectDigestValue(u.digest)
	data, err := json.Marshal(u.info)
	if err != nil {
		return errors.Wrapf(err, "snapshot %s", u.info.Name)
	}
	m := nats.NewMsg(topology.ObjectMetaSubject(bucket, base64.URLEncoding.EncodeToString([]byte(u.info.Name))))
	m.Header.Set(jetstream.MsgRollup, jetstream.MsgRollupSubject)
	m.Data = data
	if _, err := u.js.PublishMsg(u.ctx, m); err != nil {
		return answerError(errors.Wrapf(err, "snapshot %s", u.info.Name))
	}
	return nil
}

// stored is an object of the bucket.
type stored struct {
	jetstream.ObjectInfo
	subject  string
	sequence uint64 // zero when it is no base
}

// list gives the objects of the bucket, newest base first, and the uploads with the number of their chunks.
func (s *Snapshots) list(ctx context.Context) (list []stored, uploads map[string]uint64, err error) {
	ctx, cancel := context.WithTimeout(ctx, s.chunks.config.RequestTimeout)
	defer cancel()
	info, err := s.chunks.stream.Info(ctx, jetstream.WithSubjectFilter(">"))
	if err != nil {
		return nil, nil, readError(errors.Wrapf(err, "list object bucket %s", s.bucket))
	}
	uploads = map[string]uint64{}
	for _, subject := range slices.Sorted(maps.Keys(info.State.Subjects)) {
		if upload, ok := strings.CutPrefix(subject, topology.ObjectChunkSubject(s.bucket, "")); ok {
			uploads[upload] = info.State.Subjects[subject]
			continue
		}
		m, err := s.chunks.stream.GetLastMsgForSubject(ctx, subject)
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			continue // it went meanwhile
		}
		if err != nil {
			return nil, nil, readError(errors.Wrapf(err, "object bucket %s", s.bucket))
		}
		object := stored{subject: subject}
		if json.Unmarshal(m.Data, &object.ObjectInfo) == nil && !object.Deleted {
			if sequence, ok := baseSequence(object.Name); ok {
				object.sequence = sequence
			}
		}
		list = append(list, object)
	}
	slices.SortStableFunc(list, func(a, b stored) int { return cmp.Compare(b.sequence, a.sequence) })
	return list, uploads, nil
}

// prune removes older bases, and the chunks of uploads that were never finished. A base that is not whole counts for none: it
// pushes no other out. Objects of others stay.
func (s *Snapshots) prune(ctx context.Context) error {
	list, uploads, err := s.list(ctx)
	if err != nil {
		return err
	}
	whole := 0
	for _, object := range list {
		chunks := uploads[object.NUID]
		delete(uploads, object.NUID)
		if object.sequence == 0 || whole < keptBases {
			if object.sequence > 0 && chunks == uint64(object.Chunks) {
				whole++
			}
			continue
		}
		if err := s.purge(ctx, object.subject); err != nil {
			return err
		}
		if chunks > 0 {
			if err := s.purge(ctx, topology.ObjectChunkSubject(s.bucket, object.NUID)); err != nil {
				return err
			}
		}
	}
	return s.pruneUnfinished(ctx, uploads)
}

// pruneUnfinished removes the uploads that have not grown since the last look: another writer may be at one that has.
func (s *Snapshots) pruneUnfinished(ctx context.Context, uploads map[string]uint64) error {
	s.mu.Lock()
	before := s.unfinished
	s.unfinished = uploads
	s.mu.Unlock()
	for upload, chunks := range uploads {
		if before[upload] != chunks {
			continue
		}
		if err := s.purge(ctx, topology.ObjectChunkSubject(s.bucket, upload)); err != nil {
			return err
		}
	}
	return nil
}

func (s *Snapshots) purge(ctx context.Context, subject string) error {
	err := s.chunks.stream.Purge(ctx, jetstream.WithPurgeSubject(subject))
	if err != nil {
		return readError(errors.Wrapf(err, "remove %s from object bucket %s", subject, s.bucket))
	}
	return nil
}

// Discard removes all bases, as somebody decided who goes on with a stream that has lost events. It gives errors marked
// [es.ErrUnavailable].
func (s *Snapshots) Discard(ctx context.Context) error { return s.purge(ctx, ">") }

// Load opens the newest base below an event; zero means the newest of all. Reading it gives an error for one that is not
// whole. It gives errors marked [es.ErrNotFound] or [es.ErrUnavailable].
func (s *Snapshots) Load(ctx context.Context, below uint64) (sequence uint64, base io.ReadCloser, err error) {
	list, uploads, err := s.list(ctx)
	if err != nil {
		return 0, nil, err
	}
	for _, object := range list {
		if object.sequence > 0 && (below == 0 || object.sequence < below) {
			return object.sequence, s.read(ctx, object, uploads[object.NUID]), nil
		}
	}
	return 0, nil, errors.Mark(errors.Newf("object bucket %s has no snapshot below event %d", s.bucket, below), es.ErrNotFound)
}

func (s *Snapshots) read(ctx context.Context, object stored, chunks uint64) io.ReadCloser {
	if chunks != uint64(object.Chunks) {
		return io.NopCloser(failed{errors.Newf("snapshot %s has %d chunks, %d are stored", object.Name, object.Chunks, chunks)})
	}
	r := s.chunks.newReader(ctx, topology.ObjectChunkSubject(s.bucket, object.NUID), 0, baseStall)
	return &download{reader: r, info: object.ObjectInfo, digest: sha256.New()}
}

// failed is what can't be read.
type failed struct{ err error }

func (f failed) Read([]byte) (int, error) { return 0, f.err }

// download gives the content of an object.
type download struct {
	reader *reader
	info   jetstream.ObjectInfo
	digest hash.Hash
	chunk  []byte
	chunks uint32
}

func (d *download) Read(p []byte) (int, error) {
	for len(d.chunk) == 0 {
		if d.chunks == d.info.Chunks {
			return 0, d.end()
		}
		m, err := d.reader.next()
		if err != nil {
			return 0, errors.Wrapf(err, "chunk %d of %d of snapshot %s", d.chunks+1, d.info.Chunks, d.info.Name)
		}
		d.chunks++
		d.chunk = m.Body
		d.digest.Write(m.Body)
	}
	n := copy(p, d.chunk)
	d.chunk = d.chunk[n:]
	return n, nil
}

// end gives io.EOF for an object that was read whole.
func (d *download) end() error {
	found := jetstream.GetObjectDigestValue(d.digest)
	if found != d.info.Digest {
		return errors.Newf("snapshot %s has the digest %s, its content gives %s", d.info.Name, d.info.Digest, found)
	}
	return io.EOF
}

// Close lets go of the consumer behind the reading.
func (d *download) Close() error {
	d.reader.close()
	return nil
}
