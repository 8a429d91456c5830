// Package embedded runs a nats-server inside the process: one node, or a cluster of three, with Catenary's accounts, its
// durability and its mirrors.
//
// It owns the server's life (start, ready, stop), its directory (lock, limits, credentials) and the mirrors. The account layout
// and the streams' configurations are internal/topology's; creating the event stream and the buckets is left to es/natsstore and
// es/natskv, which do the same on a server that is not embedded.
//
// # Who may connect
//
// Our own processes take Server.Ledger, an in-process connection in the ledger account with a password made at each start.
// Everyone else connects to Server.ClientURL and lands in the ops account. On loopback a client without credentials is the
// operator; beyond loopback nobody is anonymous, and the operator's credentials stand in Server.CredentialsPath.
//
// # Invariants
//
//   - A store directory belongs to one process at a time: it holds a lock that dies with it.
//   - Nothing listens beyond loopback unless Config.Listen says so. There is no monitoring port, no leaf node, no gateway.
//   - The store has a limit below the disk's free space: a full disk makes the server time out until it is restarted.
//   - With Durability Fsync an acknowledged event MUST survive a power loss; buckets and mirrors need not, since they are derived.
//   - After EnsureMirrors every mirror follows its bucket and holds what it held at the call, value by value in the same order.
//   - After Shutdown no goroutine, connection, listener or lock of a Server is left. (In a cluster one of the server's own
//     goroutines may wait for an answer from a node that was stopped, for up to half a minute.)
package embedded
