package main

import (
	"io"
	"net"
	"testing"
	"time"

	"github.com/cockroachdb/errors"
)

// waitLimit bounds every wait. It is reached only when something is broken.
const waitLimit = 30 * time.Second

// echo listens and gives back what it gets.
func echo(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				_, _ = io.Copy(c, c) // it ends with the connection
				_ = c.Close()
			}()
		}
	}()
	return listener.Addr().String()
}

func dial(t *testing.T, l *line) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", l.address())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	if err := c.SetDeadline(time.Now().Add(waitLimit)); err != nil {
		t.Fatal(err)
	}
	return c
}

func say(t *testing.T, c net.Conn, words string) {
	t.Helper()
	if _, err := io.WriteString(c, words); err != nil {
		t.Fatal(err)
	}
}

func hear(t *testing.T, c net.Conn, words string) {
	t.Helper()
	buffer := make([]byte, len(words))
	if _, err := io.ReadFull(c, buffer); err != nil || string(buffer) != words {
		t.Fatalf("heard %q, %v, want %q", buffer, err, words)
	}
}

// silent demands that nothing comes for a moment.
func silent(t *testing.T, c net.Conn) {
	t.Helper()
	if err := c.SetReadDeadline(time.Now().Add(50 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	buffer := make([]byte, 1)
	var late net.Error
	if n, err := c.Read(buffer); !errors.As(err, &late) || !late.Timeout() {
		t.Fatalf("heard %q, %v", buffer[:n], err)
	}
	if err := c.SetReadDeadline(time.Now().Add(waitLimit)); err != nil {
		t.Fatal(err)
	}
}

// over demands that a connection has ended.
func over(t *testing.T, c net.Conn) {
	t.Helper()
	buffer := make([]byte, 1)
	var late net.Error
	if n, err := c.Read(buffer); err == nil || errors.As(err, &late) && late.Timeout() {
		t.Fatalf("heard %q, %v: it goes on", buffer[:n], err)
	}
}

func newTestLine(t *testing.T) *line {
	t.Helper()
	l, err := newLine(echo(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.close)
	return l
}

func TestLineHoldsBack(t *testing.T) {
	t.Parallel()
	for name, hold := range map[string]func(*lineState){
		"what is sent": func(s *lineState) { s.mute = true },
		"what comes":   func(s *lineState) { s.deaf = true },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newTestLine(t)
			c := dial(t, l)
			say(t, c, "one")
			hear(t, c, "one")
			l.set(hold)
			say(t, c, "two")
			silent(t, c)
			l.heal()
			hear(t, c, "two")
		})
	}
}

func TestLineIsCut(t *testing.T) {
	t.Parallel()
	l := newTestLine(t)
	c := dial(t, l)
	say(t, c, "one")
	hear(t, c, "one")
	l.set(func(s *lineState) { s.cut = true })
	over(t, c)
	over(t, dial(t, l))
	l.heal()
	c = dial(t, l)
	say(t, c, "two")
	hear(t, c, "two")
}

// TestLineLosesAnAnswer closes a connection behind a command: it has gone to the server, and the answer does not come.
func TestLineLosesAnAnswer(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	l, err := newLine(listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.close)
	near := dial(t, l)
	far, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = far.Close() })
	if err := far.SetDeadline(time.Now().Add(waitLimit)); err != nil {
		t.Fatal(err)
	}
	l.set(func(s *lineState) { s.lose = true })
	say(t, near, "PING\r\n")
	hear(t, far, "PING\r\n")
	say(t, far, "PONG\r\n")
	hear(t, near, "PONG\r\n")
	say(t, near, "HPUB a\r\n")
	hear(t, far, "HPUB a\r\n")
	_, _ = io.WriteString(far, "+OK\r\n") // whether it can be written or not, it does not arrive
	over(t, near)
}
