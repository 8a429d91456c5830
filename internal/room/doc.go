// Package room tells how full the places are that a chain is kept in: the event stream, the buckets and the other streams that refuse what
// is new when they are full, the account's JetStream, and the disk.
//
// It owns the levels (ample, scarce from 80 % or from the last GiB of a disk, full), the watch that looks now and then and says each change
// once, and the gate that refuses appends before the disk ends: a server that has run into a full disk answers nobody until it is started
// again, also when there is room by then. It leaves to others what is done about it: raising a limit, freeing a disk, starting a server
// again. What it has in common with the watch of internal/guard is a lock around a state: that one listens, mends and may end, so there is
// no frame to share.
//
// Invariants:
//   - A place that drops its oldest by design is none: it is always full, and nothing is refused.
//   - A level is left downwards only well below where it was reached, so that a place at the limit is not told again and again.
//   - What can't be looked at keeps the state it was last seen in, and the state says why it is old.
package room
