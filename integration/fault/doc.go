// Command fault breaks a whole chain again and again, and judges what is left of it.
//
// It runs the real binaries, built to fail: one nats-server or three, two writers, a projector, two engines and two agents, each
// connected through a line of its own that can be cut. Senders in this process send commands meanwhile and keep what they were told. What
// happens, and when, follows from a seed (package schedule); what may not have happened is judged by package check, from the senders'
// histories, the event stream, the buckets and what runs on nodes.
//
//	go run ./integration/fault -for 3m            many seeds, one after another
//	go run ./integration/fault -seed 42           one seed again
//	go run ./integration/fault -servers 3 -for 1h three servers
//	go run ./integration/fault -planted           plants each bug and demands that it is found
//	go run ./integration/fault -recovery 60       kills one process at a time and measures how long it takes until all goes on
//
// It owns the processes, the lines between them, the harm to files, the senders and the report. It is started from the module's root.
//
// # Invariants
//
//   - Every process is ended by this one, also when this one is killed.
//   - A run that finds something keeps its directory, and says which seed shows it again.
//   - What an operator does by hand in a run is counted: it is only ever what the guides say.
package main
