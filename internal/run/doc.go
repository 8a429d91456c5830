// Package run wires the parts of a server process together: the writer with its command service, and the projector with its
// query service. The binaries writer and projector run one each, and catenary up runs both beside a server.
//
// It owns what each part needs on the bus and in which order its parts start and stop. It leaves the connection to its
// caller, who restarts a part after the connection has closed for good ([ErrConnectionClosed]).
//
// Invariants: a part that returns has stopped whole, with no goroutine left; it returns nil only because its context ended;
// a service answers only while what is behind it runs.
package run
