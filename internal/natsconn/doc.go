// Package natsconn is how every program connects to the bus: it finds the server and the credentials as the nats tool does,
// stays connected, and turns what a caller can act on into typed errors.
//
// It owns finding, connecting, reconnecting and the mapping of the connection's errors. It leaves what is said on the bus to
// its callers, and restarting a component whose connection has closed for good to the one who runs it (Conn.Closed).
//
// # Where the bus is
//
// Each setting comes from Config, which holds a program's flags; what is empty there comes from the environment (WithEnvironment):
//
//	Server    NATS_URL        Context   NATS_CONTEXT    Creds     NATS_CREDS     NKey      NATS_NKEY
//	User      NATS_USER       Password  NATS_PASSWORD   Cert      NATS_CERT      Key       NATS_KEY
//	CA        NATS_CA
//
// A named context fills what is still empty. Only when nothing at all is given does the context selected with
// `nats context select` count, and without one DefaultServer. (The nats tool also merges a selected context into a given server;
// that would send one server's credentials to another, so it is not done here.)
//
// # Invariants
//
//   - The first connection is made or refused at once. Once connected, it is kept for ever, with jitter.
//   - A request that the server forbids ends with ErrDenied at once. The bus itself only lets it time out.
package natsconn
