// Package guard keeps the streams of a chain as they must be while it runs: who may administer the server can give a stream a limit that
// drops events, or delete it, at any time.
//
// It owns the watch that compares the streams in which something is lost for good, and the buckets of views, with what they must be, at once when the
// server tells of a change and now and then besides; the undoing of a change; and the alarms, which say what was found, whether it is
// undone and what to do. What a stream must be is left to internal/topology, what is a danger to internal/streams, and what the alarms are
// shown as to those who ask.
//
// Invariants:
//   - A stream that is gone is never made again here: an empty one in its place would look like a young chain.
//   - What the server does not take back keeps nothing else from being undone.
//   - Nothing is undone in a stream that a backup is being restored into.
//   - Events that are missing stay an alarm until they are back, whatever the configuration says; nobody appends meanwhile.
package guard
