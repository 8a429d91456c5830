// Package cluster says how the servers of a chain are, and what each holds of every stream.
//
// It owns the question to all servers, what their answers come to when they are put together, and the judgement: what is not replicated, who is
// behind or off, what would stop with the next loss. It leaves to its callers who is shown what, and to internal/topology what servers and streams
// should be.
//
// Invariants: the judgement is pure, the same for the same answers; a server that does not answer is named when any other knows of it; what the
// leader of a stream says of its replicas counts, and nobody else's word about them does.
package cluster
