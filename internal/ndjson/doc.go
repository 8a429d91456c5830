// Package ndjson reads rows that others have written: files of newline-delimited JSON, plain or packed by gzip.
//
// It owns how a file is opened and read more than once, its lines and their numbers, and what a row's fields say to the letter. It
// leaves what the fields mean to its callers.
//
// Invariants:
//   - Memory is bounded by the longest line that is allowed; a longer one is reported and passed over.
//   - Text comes back byte for byte: what is no valid text is an error and never replaced.
package ndjson
