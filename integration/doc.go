// Package integration holds the tests that run Catenary as people do: the built binaries, a bus between them, real
// delivery histories, and the nats tool.
//
// It owns the claims that no package can prove alone: an imported history answers for every moment; a process killed at any
// time leaves nothing lost, doubled or out of order; a change by hand is found; names, versions and sizes survive the whole
// way. It leaves every rule that one package can show to that package's own tests.
//
// Invariants: each test has a chain of its own or names of its own in a shared one; ports are free ones on loopback; every
// process is ended by whoever started it; what is random comes from a seed that the test prints.
package integration
