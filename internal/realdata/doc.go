// Package realdata finds the real delivery histories that tests and benchmarks read.
//
// It owns the answer to "where are they": in shared/data beside a folder above the module, or where CATENARY_DATA points.
// The project commits none of them. What the files mean is left to the tests that read them.
//
// Invariants: this is the one place of the tree that skips a test, so a test that needs the data is never skipped in
// another way; with CATENARY_REQUIRE_DATA=1, which .ci/run sets, a missing folder fails the test instead.
package realdata
