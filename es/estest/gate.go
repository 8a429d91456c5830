package estest

import (
	"net"
	"sync"

	"github.com/nats-io/nats.go"
)

// Gate is a way to the bus that can be shut: what a connection sends meanwhile is kept, and goes out when the gate is
// opened. What the bus sends passes always. A gate serves one connection; it starts open.
type Gate struct {
	mu   sync.Mutex
	shut bool
	kept []byte
	conn net.Conn
}

// Through makes a connection go through the gate.
func (g *Gate) Through() nats.Option { return nats.SetCustomDialer(g) }

// Dial connects to the bus.
func (g *Gate) Dial(network, address string) (net.Conn, error) {
	conn, err := net.Dial(network, address)
	if err != nil {
		return nil, err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.conn, g.kept = conn, nil
	return &gated{Conn: conn, gate: g}, nil
}

// Shut keeps what is sent from now on.
func (g *Gate) Shut() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.shut = true
}

// Open sends what was kept, and all that comes after. It gives the connection's error.
func (g *Gate) Open() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.shut = false
	_, err := g.conn.Write(g.kept)
	g.kept = nil
	return err
}

type gated struct {
	net.Conn
	gate *Gate
}

func (c *gated) Write(p []byte) (int, error) {
	c.gate.mu.Lock()
	defer c.gate.mu.Unlock()
	if c.gate.shut {
		c.gate.kept = append(c.gate.kept, p...)
		return len(p), nil
	}
	return c.Conn.Write(p)
}
