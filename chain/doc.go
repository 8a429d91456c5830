// Package chain holds the records people read: their JSON form, the keys they stand under, and the reader that gets, lists
// and follows them through time.
//
// It owns the field names of records, which are contracts, and the one place that says whether an assignment stands. It
// leaves how records come about to projections, and rules to aggregates, which it never imports.
//
// Invariants: optional fields are left out when they are not so; times are RFC 3339 in UTC; text comes back byte for byte;
// JSON that was given as JSON (manifest, provisioning) is kept byte for byte; a key, once there, is never removed.
package chain
