// Bench measures what the chain does in a second, beside what bare nats.go does on the same server in the same run, and says
// which of the figures it must reach it does not.
//
//	go run ./internal/hammer/bench            # all rows, as `make bench` runs them
//	go run ./internal/hammer/bench -rows '1,024'
//	go run ./internal/hammer/bench load -server nats://127.0.0.1:4222 -callers 64 -for 10s
//	go run ./internal/hammer/bench agents -server nats://127.0.0.1:4222 -count 1000
//
// Rates of one machine say little about another, and a busy machine halves them: the ratio to bare nats.go, which had the same
// server and the same minute, is what counts. So each row is run several times, ours and bare in turn, and the median ratio of
// these pairs stands in the table.
//
// It owns the rows, the bare counterparts and the table; the load itself is internal/hammer's.
package main
