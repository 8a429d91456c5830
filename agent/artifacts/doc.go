// Package artifacts says how an agent gets what it is to bring to its node: by digest, verified, into a file.
//
// It owns the contract of a source, the verifying of what a source gives, and the source that is a directory. It leaves where
// artifacts are stored for good, and how they get there, to whoever publishes; what is inside of one to the drivers.
//
// Invariants:
//   - A file that Fetch leaves behind has the digest that was asked for, whole. Whatever else came is gone, with an error.
//   - A digest is "sha256:" and 64 lower-case hexadecimal digits, and nothing else.
package artifacts
