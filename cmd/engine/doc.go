// Command engine walks rollouts, against a server that exists. It connects with the credentials of the ledger's account, reads the event stream
// that a writer has made, takes the lease rollout-engine and answers as the micro service catenary-engine why rollouts do not move.
//
// It is wiring only: what it runs is in internal/run. Any number of engines may run: one walks, the others stand by and one of them takes over
// when it is gone.
//
// The first ^C or SIGTERM lets nothing begin any more and waits for what runs; the second gives the lease back and leaves that to the next engine;
// the third leaves at once. Steps that are under way are named each time.
package main
