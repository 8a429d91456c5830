// Package natskv gives access to buckets over JetStream: guarded, pipelined puts for a projector, reads of any size for
// everybody, and the small mutable buckets that no projector writes.
//
// It owns the form of a value in a bucket (its headers), the generations of buckets with their pointers, how buckets are made and checked, and how they are read fast and
// completely. It leaves what a value says to projections, the order of values to es/project, the names and limits of
// buckets to internal/topology, and the translation of NATS errors to es/natsstore.
//
// Invariants:
//   - A bucket is the stream KV_<bucket>; whatever the nats tool reads from it is the same.
//   - A put is guarded by the bucket's own last sequence, so who puts has seen all that stands before.
//   - A bounded read gives everything that the bucket's leader had when it began, however far a copy lags behind.
//   - A bucket that is fenced takes nothing from anybody and tells nobody anything, until it is opened for writing again.
//   - Of a view's generations only the one that is read tells of its values, so whoever hears of them hears no two generations at once.
//   - Nothing of a read is left behind when its loop ends: no consumer, no goroutine.
package natskv
