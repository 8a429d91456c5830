// Package events holds the facts: one file per aggregate, each event a struct, and the registry that binds them to their
// stored names.
//
// It owns the stored names and the shape of event bodies, and the small value types that events, commands and records
// share. It leaves rules to aggregates and the shape of views to chain.
//
// Invariants: a stored name and the meaning of its fields never change; a new meaning is a new version with an upcaster;
// each version's bytes are pinned by a golden file. The events of an aggregate are a closed sum type, so that every switch
// over them is checked to be exhaustive. Text is kept byte for byte. When a fact became true stands in the envelope, not in
// the body.
package events
