// Package catenary is the root of the module. It holds no code of its own: only the checks over the whole tree live here.
//
// It owns the import table (architecture_test.go), the house's style rules (style_test.go) and the promise that README,
// docs and Makefile tell what the tree really is (docs_test.go). It leaves everything that runs to the packages below;
// README.md says where to begin, docs/architecture says what there is, docs/adr says why.
//
// Invariant: the checks read the files in-process. One that asks `go list` is cached by `go test` and stays green over a
// violation, since the test tool does not see what another program read.
package catenary
