// Package backup takes the record of a running chain into a directory, and puts it back into an empty store.
//
// It owns the form of a backup (the manifest, the files with their digests, the lines in them), the service in the ledger that gives out
// what is backed up, the client that writes it, and the restoring. It leaves to others: what an event says, the artifacts' own form
// (agent/depot), and all that is derived from the events: buckets, tiles, snapshots and the audit store are folded again.
//
// A backup holds the event stream as it stood at one moment, the checkpoints signed until then, the commands that waited to be done, the directory of
// actors, and artifacts where that was asked for. Everything is read through the ledger's own reader and written as lines of JSON, compressed: no version of the
// server and no replica is needed to read it.
//
// Invariants:
//   - A directory without a manifest is no backup. The manifest is written last, when all else is on the disk.
//   - What is taken is checked on its way: the events of a backup follow each other by their hashes from the first to its head.
//   - Nothing is written into a store before every file of the backup has its digest.
//   - A store into which a restore was begun and not ended says so, and no writer begins on it.
package backup
