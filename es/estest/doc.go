// Package estest holds what tests of event-sourced code need: one suite that every [es.Store] must pass, a store whose
// faults are scripted, given-when-then for deciders, golden bytes of stored events, a clock and ids that give the same
// in every run, and a real server on a random port.
//
// It leaves to others: given-then for projections (es/project), and every rule of the domain.
//
// Invariants: it is made for tests and never imported by production code; nothing in it sleeps, reads the wall clock for
// a result, or gives another result in the next run.
package estest
