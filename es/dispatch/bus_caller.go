package dispatch

import "github.com/nats-io/nats.go/micro"

// Caller says who sent a request to a service of the ledger that changes something: a user whose account the server names, or one of our
// own processes, which is called inside unless it says otherwise. The name comes from the connection, never from the body. It gives an
// error for what nobody sent who waits for an answer, such as a consumer's delivery; an answer to that could do harm, so none MUST be given.
func Caller(req micro.Request, inside string) (Who, error) {
	who, _, err := caller(req, inside)
	return who, err
}
