// Package topology is the one list of what Catenary puts on the bus: accounts, streams, buckets, subjects, services and
// consumers, each with its limits and the reason for them.
//
// It owns names and stream configurations. It leaves creating them to those who hold a connection (es/natsstore,
// es/natskv, embedded) and knows nothing of what flows through them.
//
// Invariants: a name that two processes must agree on stands here and nowhere else; every stream has an explicit size
// limit, since a full disk makes JetStream time out for ever while a reached limit is a clean error.
package topology
