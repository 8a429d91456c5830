// Package memstore keeps the stream of events in memory: for tests, and for programs that need no bus.
//
// It owns an [es.Store] that behaves as the one over JetStream does, limits included. It leaves durability to others:
// what it holds ends with the process.
//
// Invariants: what is stored never changes, whatever a caller does to a message it handed in or got back; sequences start
// at 1 and have no gaps.
package memstore
