package streams

import "github.com/nats-io/nats.go/jetstream"

// Missing counts the messages that are not there any more, of a stream from which nothing is ever removed.
func Missing(s jetstream.StreamState) uint64 { return s.LastSeq - min(s.Msgs, s.LastSeq) }
