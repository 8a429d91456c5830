// Package run wires the parts of the binaries together: writer, projector, engine and agent, each with its services, its monitor and its
// settings. Each binary runs one, and catenary up all but the agent beside a server.
//
// It owns what each part needs on the bus, in which order it starts and stops, and what it tells of itself. It leaves the connection of
// a part to its caller, who restarts it after the connection has closed for good ([ErrConnectionClosed]).
//
// Invariants: a part that returns has stopped whole, with no goroutine left; it returns nil only because its context ended;
// a service answers only while what is behind it runs.
package run
