package main

import (
	"context"
	"io"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"catenary/es/estest"
)

// terminal makes a terminal of a size: what a person sees, and what the tool writes to. Both end with the test.
func terminal(t *testing.T, width, height uint16) (seen *os.File, tty *os.File) {
	t.Helper()
	seen, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = seen.Close() })
	fd := int(seen.Fd())
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	tty, err = os.OpenFile("/dev/pts/"+strconv.Itoa(n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tty.Close() })
	resize(t, seen, width, height)
	return seen, tty
}

func resize(t *testing.T, terminal *os.File, width, height uint16) {
	t.Helper()
	if err := unix.IoctlSetWinsize(int(terminal.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Col: width, Row: height}); err != nil {
		t.Fatal(err)
	}
}

// TestWatchOnATerminal watches on a real terminal, makes its window smaller, and leaves it by ^C.
func TestWatchOnATerminal(t *testing.T) {
	t.Parallel()
	c := on(t)
	c.node("terminal-node")
	seen, tty := terminal(t, 100, 30)
	var shown estest.Log
	read := make(chan struct{})
	go func() {
		defer close(read)
		_, _ = io.Copy(&shown, seen) // it ends with an error when the other side is closed
	}()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	exit := make(chan int, 1)
	go func() {
		exit <- Main{
			Program: "catenary", Args: []string{"watch", "--every", "1h"}, Stdin: strings.NewReader(""), Stdout: tty, Stderr: io.Discard, Now: time.Now,
			Env: func(name string) string {
				return map[string]string{"NATS_URL": c.url, "TZ": "UTC", "NO_COLOR": "1"}[name]
			},
		}.Run(ctx)
	}()
	eventually(t, "the picture", func() bool { return strings.Contains(shown.String(), "catenary at "+c.url) })
	if found := shown.String(); !strings.HasPrefix(found, screenEnter) || strings.Contains(found, "\x1b[3") {
		t.Errorf("it begins with %.200q", found)
	}
	// There is no look within the hour: what comes now comes from the size alone.
	resize(t, seen, 30, 3)
	eventually(t, "the picture of a smaller window", func() bool { return strings.Contains(shown.String(), "more: make the") })
	cancel()
	if code := <-exit; code != exitOK {
		t.Errorf("interrupted, it ends with %d", code)
	}
	if err := tty.Close(); err != nil {
		t.Error(err)
	}
	<-read
	if found := shown.String(); !strings.HasSuffix(found, screenLeave) {
		t.Errorf("it leaves the terminal with %.200q", found[max(0, len(found)-200):])
	}
}
