// Command catenary is the operator's tool: it runs a chain, sends commands, and reads what stands and how it came about.
//
// It owns the command line: flags, output formats, exit codes, the demo. It leaves rules to the writer, records to chain, and
// what runs in a server process to internal/run.
//
// Invariants: data goes to standard output and talk to standard error; every read has the same four formats; JSON is what is
// stored, byte for byte; the exit code tells what a script can act on (catenary help exit-codes). Everything the program
// touches comes in through [Main], so that tests run it whole.
package main
