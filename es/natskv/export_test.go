package natskv

import "github.com/nats-io/nats.go"

// Before has something said before each message that is put, on the same connection, by how many were put before it.
func (b *Bucket) Before(say func(put int)) {
	put := 0
	b.puts.publish = func(m *nats.Msg) error {
		say(put)
		put++
		return b.nc.PublishMsg(m)
	}
}
