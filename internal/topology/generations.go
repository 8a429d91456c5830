package topology

import (
	"strconv"
	"strings"

	"github.com/nats-io/nats.go/jetstream"
)

// MaxGenerations bounds the buckets that one view may have at the same time: each takes the room of a bucket and its copy. The
// account of people may copy these and no others. A name is used again when its bucket was removed.
const MaxGenerations = 9

// viewsBytes bounds the pointers: one small value a view.
const viewsBytes = 16 << 20

// Generation is the name of the n-th generation of a view's bucket. The first has the view's own name.
func Generation(view string, n int) string {
	if n <= 1 {
		return view
	}
	return view + generationMark + strconv.Itoa(n)
}

const generationMark = "-g"

// GenerationOf gives the view and the number of a bucket; false for what is no bucket of a view.
func GenerationOf(bucket string) (view string, n int, ok bool) {
	for _, view := range ChainBuckets() {
		if bucket == view {
			return view, 1, true
		}
		if text, found := strings.CutPrefix(bucket, view+generationMark); found {
			n, err := strconv.Atoi(text)
			return view, n, err == nil && n > 1 && n <= MaxGenerations && Generation(view, n) == bucket
		}
	}
	return "", 0, false
}

// Republish says what is told of the values that are put into a bucket, to whom it concerns, as they are stored; nil for nothing. Of a view
// only the generation that is read may republish. What the projector keeps beside the records has keys of another shape and is
// not told.
func Republish(bucket string) *jetstream.RePublish {
	if view, _, _ := GenerationOf(bucket); view != BucketAssignments {
		return nil
	}
	return &jetstream.RePublish{
		Source:      BucketSubject(bucket, "*.*"),
		Destination: ToldSubject("{{wildcard(1)}}", "{{wildcard(2)}}"),
	}
}

// copied lists every bucket that the account of people may copy: each generation of those that are mirrored.
func copied() []string {
	var buckets []string
	for _, bucket := range MirroredBuckets() {
		buckets = append(buckets, bucket)
		if _, _, ok := GenerationOf(bucket); !ok {
			continue
		}
		for n := 2; n <= MaxGenerations; n++ {
			buckets = append(buckets, Generation(bucket, n))
		}
	}
	return buckets
}

// Views configures the stream behind the pointers to the generations that are read: one value a view, overwritten.
func Views(o Options) jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name:              BucketStream(BucketViews),
		Description:       "Catenary: which generation of a view's bucket is read. Written by the projector only.",
		Subjects:          []string{BucketSubject(BucketViews, ">")},
		Discard:           jetstream.DiscardNew,
		Storage:           jetstream.FileStorage,
		Replicas:          o.replicas(),
		MaxMsgsPerSubject: 1,
		MaxBytes:          viewsBytes,
		AllowDirect:       false,
	}
}
