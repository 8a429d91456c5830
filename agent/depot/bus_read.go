package depot

import (
	"cmp"
	"context"
	"encoding/base64"
	"iter"
	"maps"
	"slices"

	"github.com/cockroachdb/errors"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/synadia-io/orbit.go/jetstreamext"

	"catenary/agent/artifacts"
	"catenary/es/natsstore"
	"catenary/internal/parts"
	"catenary/internal/topology"
)

func (s *Store) bucket() string { return topology.ObjectsArtifacts }

// objectDigest is a digest as object buckets write it.
func objectDigest(sum []byte) string { return "SHA-256=" + base64.URLEncoding.EncodeToString(sum) }

// pieces gives the pieces of a row from a message on: the index-th of count and those after it, up to the end of a window. Of what is
// missing it gives less.
func (s *Store) pieces(ctx context.Context, upload string, from uint64, index, count int64) iter.Seq2[*jetstream.RawStreamMsg, error] {
	return func(yield func(*jetstream.RawStreamMsg, error) bool) {
		ctx, cancel := context.WithTimeout(ctx, requestTimeout)
		defer cancel()
		left := min(windowChunks, count-index)
		messages, err := jetstreamext.GetBatch(ctx, s.js, topology.ObjectsStream(s.bucket()), int(left),
			jetstreamext.GetBatchSeq(from), jetstreamext.GetBatchSubject(chunkSubject(upload)))
		if err != nil {
			yield(nil, natsstore.ReadError(errors.Wrapf(err, "pieces of upload %s", upload)))
			return
		}
		for m, err := range messages {
			if errors.Is(err, jetstreamext.ErrNoMessages) {
				return
			}
			if err != nil {
				yield(nil, natsstore.ReadError(errors.Wrapf(err, "pieces of upload %s", upload)))
				return
			}
			index++
			place, err := placeOf(m)
			if err == nil && place != index {
				// One before it is lost, or can't be read. Publishing it again mends that.
				err = errors.Newf("piece %d comes where %d should: the depot's store is damaged; publish the artifact again", place, index)
				err = errors.Mark(errors.Mark(err, errDamaged), artifacts.ErrUnavailable)
			}
			if !yield(m, err) || err != nil {
				return
			}
		}
	}
}

// Part is a part of an artifact.
type Part struct {
	At   int64
	Data []byte
}

// Read gives an artifact from a place on, up to the end of the window that the place is in, and the size of the whole. Nothing comes
// after the end. It gives errors marked [artifacts.ErrNotFound], [artifacts.ErrDigest], [artifacts.ErrUnavailable] and
// [es.ErrUnavailable].
func (s *Store) Read(ctx context.Context, digest string, at int64) (bytes int64, pieces iter.Seq2[Part, error], err error) {
	o, err := s.artifact(ctx, digest)
	if err != nil {
		return 0, nil, err
	}
	bytes = int64(o.Size)
	switch {
	case at < 0:
		return 0, nil, errors.Mark(errors.Newf("artifact %s from %d on", digest, at), parts.ErrRequest)
	case at >= bytes:
		return bytes, func(func(Part, error) bool) {}, nil
	}
	windows, err := o.windows()
	window := at / WindowBytes
	if err == nil && window >= int64(len(windows)) {
		err = errors.Newf("artifact %s: it is described with %d windows, and has %d bytes", digest, len(windows), bytes)
	}
	if err != nil {
		return 0, nil, err
	}
	index := window * windowChunks
	return bytes, func(yield func(Part, error) bool) {
		for m, err := range s.pieces(ctx, o.NUID, windows[window], index, chunks(bytes)) {
			if err != nil {
				yield(Part{}, err)
				return
			}
			begin, data := index*ChunkBytes, m.Data
			index++
			if skip := min(max(at-begin, 0), int64(len(data))); skip > 0 {
				begin, data = begin+skip, data[skip:]
			}
			if len(data) > 0 && !yield(Part{At: begin, Data: data}, nil) {
				return
			}
		}
		if end := min((window+1)*windowChunks, chunks(bytes)); index < end {
			yield(Part{}, errors.Mark(errors.Newf("artifact %s: piece %d of %d can't be read from the store", digest, index+1, chunks(bytes)), artifacts.ErrUnavailable))
		}
	}, nil
}

// described gives the descriptions of all artifacts, and of those that were removed.
func (s *Store) described(ctx context.Context) ([]object, error) {
	subjects, err := s.subjects(ctx, topology.ObjectMetaSubject(s.bucket(), ">"))
	if err != nil {
		return nil, err
	}
	var found []object
	for some := range slices.Chunk(slices.Sorted(maps.Keys(subjects)), descriptionsAtOnce) {
		if err := s.describedAs(ctx, some, &found); err != nil {
			return nil, natsstore.ReadError(errors.Wrap(err, "list the artifacts"))
		}
	}
	return found, nil
}

func (s *Store) describedAs(ctx context.Context, subjects []string, found *[]object) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	messages, err := jetstreamext.GetLastMsgsFor(ctx, s.js, topology.ObjectsStream(s.bucket()), subjects)
	if err != nil {
		return err
	}
	for m, err := range messages {
		if errors.Is(err, jetstreamext.ErrNoMessages) {
			return nil // they went meanwhile
		}
		if err != nil {
			return err
		}
		o, err := parseObject(m)
		if err != nil {
			return err
		}
		*found = append(*found, o)
	}
	return nil
}

// subjects gives the subjects that fit a filter, each with the number of its messages.
func (s *Store) subjects(ctx context.Context, filter string) (map[string]uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	info, err := s.stream.Info(ctx, jetstream.WithSubjectFilter(filter))
	if err != nil {
		return nil, natsstore.ReadError(errors.Wrap(err, "list the artifacts"))
	}
	return info.State.Subjects, nil
}

// List gives all artifacts, by digest. It gives errors marked [es.ErrUnavailable].
func (s *Store) List(ctx context.Context) ([]Stored, error) {
	all, err := s.described(ctx)
	if err != nil {
		return nil, err
	}
	var list []Stored
	for _, o := range all {
		if o.there() {
			list = append(list, o.stored())
		}
	}
	slices.SortFunc(list, func(a, b Stored) int { return cmp.Compare(a.Digest, b.Digest) })
	return list, nil
}
