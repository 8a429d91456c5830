// Command projector folds the event stream into the buckets of the chain, against a server that exists. It connects with the
// credentials of the ledger's account, makes or checks the buckets, and answers questions as the micro service catenary-query.
//
// With the credentials of the mirrors user it makes and keeps the copies of the buckets that people read, too.
//
// It is wiring only: what it runs is in internal/run. Any number of projectors may run; each value is stored once.
package main
