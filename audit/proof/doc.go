// Package proof makes the record tamper-evident for people who hold nothing but a few lines of text: a Merkle log over the
// events in stream order, signed checkpoints of it, and proofs that are checked without a server.
//
// It owns the leaf of an event, the tree and its tiles, checkpoints, their keys, proofs, and the form in which an event leaves
// the chain with all that its hash covers. It leaves the hash chain itself to es, and who may ask to the accounts.
//
// # The leaf
//
// The leaf of event n is 40 bytes: n as eight bytes, the highest first, and the SHA-256 that the event carries in Cat-Hash. That
// hash covers the hash of event n-1, the subject, our headers sorted by name, and the body as stored (see es.Head). So a leaf
// says where an event stands, all that it is, and what came before it. Leaves and nodes are hashed as RFC 6962 says: a leaf with
// 0x00 before it, a node with 0x01. Event n is the leaf with the index n-1.
//
// # Checkpoints
//
// A checkpoint is a C2SP signed note (Ed25519) whose text is a tlog-checkpoint: origin, number of events, root; and two lines of
// our own, head with the last event's hash in hex, and time.
//
// # Invariants
//
//   - The tree is derived: its tiles can be lost and are made again from the events.
//   - Nothing is signed that contradicts the newest stored checkpoint: a stream that was cut short or forked gets no signature.
//   - Checking a proof, a checkpoint or an export needs no bus and trusts no server.
package proof
