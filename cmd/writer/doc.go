// Command writer decides commands and appends their events, against a server that exists. It connects with the credentials of
// the ledger's account, makes or checks the event stream and the actor directory, and answers as the micro service
// catenary-writer.
//
// It is wiring only: what it runs is in internal/run. Any number of writers may run: one works, the others stand by and
// one of them takes over when it is gone.
package main
