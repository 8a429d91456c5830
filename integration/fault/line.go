package main

import (
	"bytes"
	"context"
	"io"
	"net"
	"sync"
	"time"

	"github.com/cockroachdb/errors"
)

// line is what a process connects to instead of a server: everything goes through, until somebody says otherwise.
type line struct {
	listener net.Listener
	target   string

	mu      sync.Mutex
	changed *sync.Cond
	state   lineState
	ends    map[*link]bool
	closed  bool
	pumps   sync.WaitGroup
}

// lineState is what is done to what goes through.
type lineState struct {
	// cut lets no connection stand.
	cut bool
	// mute holds back what is sent to the server, deaf what comes from it.
	mute, deaf bool
	// slow is how long everything takes.
	slow time.Duration
	// lose closes a connection just after the next command on it has gone to the server.
	lose bool
}

// link is one connection through a line.
type link struct {
	near, far net.Conn
	// gone says that nothing more goes to the near end.
	gone bool
}

// newLine listens on loopback.
func newLine(target string) (*line, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, errors.Wrap(err, "listen")
	}
	l := &line{listener: listener, target: target, ends: map[*link]bool{}}
	l.changed = sync.NewCond(&l.mu)
	l.pumps.Go(l.accept)
	return l, nil
}

func (l *line) address() string { return l.listener.Addr().String() }

// set changes what is done. Connections end when it cuts.
func (l *line) set(change func(*lineState)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	change(&l.state)
	if l.state.cut {
		for k := range l.ends {
			l.drop(k)
		}
	}
	l.changed.Broadcast()
}

// heal lets everything through again.
func (l *line) heal() { l.set(func(s *lineState) { *s = lineState{} }) }

func (l *line) close() {
	l.mu.Lock()
	l.closed = true
	_ = l.listener.Close() // nothing is lost with it
	for k := range l.ends {
		l.drop(k)
	}
	l.changed.Broadcast()
	l.mu.Unlock()
	l.pumps.Wait()
}

// drop ends a connection. The lock is held.
func (l *line) drop(k *link) {
	delete(l.ends, k)
	k.gone = true
	_ = k.near.Close() // both ends learn that it is over by what they get then
	_ = k.far.Close()
}

func (l *line) accept() {
	for {
		near, err := l.listener.Accept()
		if err != nil {
			return // it was closed
		}
		l.pumps.Go(func() { l.connect(near) })
	}
}

func (l *line) connect(near net.Conn) {
	l.mu.Lock()
	refused := l.state.cut || l.closed
	l.mu.Unlock()
	var far net.Conn
	var err error
	if !refused {
		dialer := net.Dialer{Timeout: time.Second}
		far, err = dialer.DialContext(context.Background(), "tcp", l.target)
	}
	if refused || err != nil {
		_ = near.Close() // whoever connects tries again
		return
	}
	k := &link{near: near, far: far}
	l.mu.Lock()
	l.ends[k] = true
	if l.state.cut || l.closed {
		l.drop(k)
	}
	l.mu.Unlock()
	var both sync.WaitGroup
	both.Go(func() { l.pump(k, near, far, true) })
	both.Go(func() { l.pump(k, far, near, false) })
	both.Wait()
	l.mu.Lock()
	l.drop(k)
	l.mu.Unlock()
}

// pump takes what comes from one end to the other.
func (l *line) pump(k *link, from io.Reader, to io.Writer, up bool) {
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		if n > 0 && !l.pass(k, to, buffer[:n], up) {
			err = io.EOF
		}
		if err != nil {
			l.mu.Lock()
			l.drop(k)
			l.mu.Unlock()
			return
		}
	}
}

// pass writes on, when it may, and says whether the connection goes on.
func (l *line) pass(k *link, to io.Writer, data []byte, up bool) bool {
	l.mu.Lock()
	for !k.gone && !l.closed && (up && l.state.mute || !up && l.state.deaf) {
		l.changed.Wait()
	}
	slow, gone := l.state.slow, k.gone || l.closed
	lose := up && l.state.lose && bytes.Contains(data, []byte("PUB "))
	if lose {
		// Nothing comes back from now on: the server's answer is lost with the connection.
		l.state.lose, k.gone = false, true
	}
	l.mu.Unlock()
	if gone && !lose {
		return false
	}
	if slow > 0 {
		time.Sleep(slow)
	}
	_, err := to.Write(data)
	return err == nil && !lose
}
