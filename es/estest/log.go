package estest

import (
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"
)

// awaitLimit bounds [Log.Await]. It is reached only when something is broken.
const awaitLimit = 30 * time.Second

// Log keeps what is written, for a test to read meanwhile. The zero value is empty, and it may be used by many goroutines.
type Log struct {
	mu    sync.Mutex
	text  strings.Builder
	grown chan struct{} // closed with the next write; nil while nobody waits
}

// Write implements [io.Writer].
func (l *Log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.grown != nil {
		close(l.grown)
		l.grown = nil
	}
	return l.text.Write(p)
}

// String gives all that was written.
func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// Logger returns a logger that writes here, from a level on.
func (l *Log) Logger(level slog.Level) *slog.Logger {
	return slog.New(slog.NewTextHandler(l, &slog.HandlerOptions{Level: level}))
}

// Grown gives a channel that is closed with the next write.
func (l *Log) Grown() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.grown == nil {
		l.grown = make(chan struct{})
	}
	return l.grown
}

// Await looks at once and after each write whether something is so, and fails the test when it is not in time.
func (l *Log) Await(t testing.TB, is func() bool) {
	t.Helper()
	limit := time.NewTimer(awaitLimit)
	defer limit.Stop()
	for {
		grown := l.Grown()
		if is() {
			return
		}
		select {
		case <-grown:
		case <-limit.C:
			t.Fatalf("it does not come:\n%s", l)
		}
	}
}
