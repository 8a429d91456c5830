package serving

import "github.com/nats-io/nats.go"

// Respond sends an answer to whoever waits at a reply. It goes past the request's own means: those note an error in the request, which the
// library reads when the handler has returned, and answers come later, from other goroutines. It gives [nats.ErrMsgNoReply] when nobody
// waits, and the connection's errors.
func Respond(nc *nats.Conn, reply string, header nats.Header, body []byte) error {
	if reply == "" {
		return nats.ErrMsgNoReply
	}
	return nc.PublishMsg(&nats.Msg{Subject: reply, Header: header, Data: body})
}
