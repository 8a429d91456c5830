package topology

import "github.com/cockroachdb/errors"

// Shares of a store. The server reserves each stream's MaxBytes when it is created and refuses a stream that would not fit, so
// the limits of all streams together must stay below the store's.
const (
	// eventShares and one share per bucket, mirror, the snapshots and the tiles: the default limits stand in this proportion too.
	eventShares = DefaultEventStoreBytes / DefaultBucketBytes
	// headroomParts: one part in so many of a store stays unreserved, for streams that are added later.
	headroomParts = 16
	// spareShares is the room for one new generation of a bucket and its copy, which stand beside the present ones for a while.
	spareShares = 2
	// MinStreamBytes is the smallest limit that Fit gives the event stream or a bucket.
	MinStreamBytes = 16 << 20
)

// ErrStoreTooSmall is given when the streams' limits exceed the store's; the message has both figures.
var ErrStoreTooSmall = errors.New("store limit is too small for the streams")

// ReservedBytes is what one server reserves for all streams and mirrors under these options.
func ReservedBytes(o Options) int64 {
	sum := Events(o).MaxBytes + Snapshots(o).MaxBytes + Tiles(o).MaxBytes + Artifacts(o).MaxBytes + Logs(o).MaxBytes + fixedBytes(o)
	for _, b := range ChainBuckets() {
		sum += Bucket(b, o).MaxBytes
	}
	for _, b := range MirroredBuckets() {
		sum += Mirror(b, o).MaxBytes
	}
	return sum
}

// neededBytes is what one server reserves at least: artifacts and logs do with less where there is no room.
func neededBytes(o Options) int64 {
	return ReservedBytes(o) - Artifacts(o).MaxBytes - Logs(o).MaxBytes + 2*MinStreamBytes
}

// fixedBytes is what the streams reserve whose limits no option varies.
func fixedBytes(o Options) int64 {
	return Actors(o).MaxBytes + Views(o).MaxBytes + Marks(o).MaxBytes + Baton(o).MaxBytes + Inbox(o).MaxBytes + Parked(o).MaxBytes + Receipts(o).MaxBytes +
		Checkpoints(o).MaxBytes + Refused(o).MaxBytes
}

// Fit completes options so that all streams fit into a store of that many bytes. Limits that are given stay as they are; the
// others get their share of the rest, at most their default. It gives ErrStoreTooSmall.
func Fit(storeBytes int64, o Options) (Options, error) {
	const others = 3 + artifactShares // the snapshots, the tiles and, at most, the logs have a bucket's share each
	// The pointers have a fixed limit.
	given, bucketCount := o, int64(len(ChainBuckets())+len(MirroredBuckets())-1+others+spareShares)
	fixed := fixedBytes(o) + Mirror(BucketViews, o).MaxBytes
	usable := storeBytes - storeBytes/headroomParts - fixed
	switch {
	case o.EventStoreBytes > 0 && o.BucketBytes > 0:
		if need := neededBytes(o); need > storeBytes {
			return Options{}, errors.Wrapf(ErrStoreTooSmall, "%d bytes, but the streams' limits add up to %d; raise the store limit or lower theirs", storeBytes, need)
		}
		return o, nil
	case o.EventStoreBytes > 0:
		o.BucketBytes = min((usable-o.EventStoreBytes)/bucketCount, DefaultBucketBytes)
	case o.BucketBytes > 0:
		o.EventStoreBytes = min(usable-o.BucketBytes*bucketCount, DefaultEventStoreBytes)
	default:
		share := usable / (bucketCount + eventShares)
		o.BucketBytes = min(share, DefaultBucketBytes)
		o.EventStoreBytes = min(share*eventShares, DefaultEventStoreBytes)
	}
	for _, limit := range []int64{given.EventStoreBytes, given.BucketBytes} {
		if limit > 0 && limit < MinStreamBytes {
			return Options{}, errors.Wrapf(ErrStoreTooSmall, "a limit of %d bytes is given, but a stream needs %d; raise it", limit, MinStreamBytes)
		}
	}
	if min(o.EventStoreBytes, o.BucketBytes) < MinStreamBytes {
		return Options{}, errors.Wrapf(ErrStoreTooSmall,
			"%d bytes, but the event stream and %d buckets and mirrors need %d; raise the store limit", storeBytes, bucketCount, leastStoreBytes(given, bucketCount, fixed))
	}
	return o, nil
}

// leastStoreBytes is the smallest store that Fit finds large enough for limits of which some are given.
func leastStoreBytes(o Options, bucketCount, fixed int64) int64 {
	event, bucket := max(o.EventStoreBytes, MinStreamBytes), max(o.BucketBytes, MinStreamBytes)
	if o.EventStoreBytes == 0 && o.BucketBytes == 0 {
		event = eventShares * MinStreamBytes
	}
	const unreserved = headroomParts - 1
	return (event + bucket*bucketCount + fixed + unreserved - 1) / unreserved * headroomParts
}
