// Package export writes what is exported from the record in the formats that other programs read: newline-delimited JSON,
// CSV and Parquet.
//
// It owns the formats, their columns, and files that are there whole or not at all. It leaves what is exported, and in which
// pieces, to audit, and asking for it to its callers.
//
// # Formats
//
// In JSON a line is an answer's row as it came over the bus; an event has with it, in the field stored, all that its hash covers, so
// that whoever has the lines can check the chain without us: sequence, subject, headers (ours alone, and without the hash),
// the body in base64, the hash of the event before, and the event's own hash. CSV and Parquet have the same columns: what JSON nests
// is one column of JSON text. Times are RFC 3339 in UTC; in Parquet they are timestamps of nanoseconds.
//
// People stand in an export as their opaque ids: names are not part of the record.
//
// # Invariants
//
//   - Memory is bounded: rows go out as they come, in Parquet in groups of [groupRows].
//   - Text comes back byte for byte in every format.
package export
