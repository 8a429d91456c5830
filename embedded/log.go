package embedded

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"

	"github.com/nats-io/nats-server/v2/server"
)

// levelTrace is below slog's levels: the server traces every protocol line.
const levelTrace = slog.LevelDebug - 4

// plaintextWarning is the server's advice against plain passwords. The one it sees here is the anonymous user's, which is made
// at each start, never leaves the process and opens nothing that is not open without it.
const plaintextWarning = "Plaintext passwords detected"

// serverLog carries the server's log to slog. The server's own logger ends the process on a fatal error; this one keeps the
// first for Start to return.
type serverLog struct {
	log    *slog.Logger
	once   sync.Once
	failed chan struct{} // closed after fatal is set
	fatal  fatalError

	stuck      sync.Once
	unwritable chan struct{} // closed when the server can't write to its store any more
}

// fatalError is why the server can't go on: its words, and the error among them if there was one.
type fatalError struct {
	message string
	cause   error
}

var _ server.Logger = (*serverLog)(nil)

func newServerLog(l *slog.Logger) *serverLog {
	return &serverLog{log: l.With("component", "nats-server"), failed: make(chan struct{}), unwritable: make(chan struct{})}
}

// cantWrite tells by what the server says whether it has given up writing to its store. It answers no publisher from then on, until it is
// started again, and says so nowhere else.
func cantWrite(format string) bool {
	format = strings.ToLower(format)
	return strings.Contains(format, "critical write error") || strings.Contains(format, "will be disabled") || strings.Contains(format, "disabling jetstream")
}

func (l *serverLog) watch(format string) {
	if cantWrite(format) {
		l.stuck.Do(func() { close(l.unwritable) })
	}
}

// attach makes the server log here. Lines that nobody would see are not formatted.
func (l *serverLog) attach(s *server.Server) {
	ctx := context.Background()
	s.SetLogger(l, l.log.Enabled(ctx, slog.LevelDebug), l.log.Enabled(ctx, levelTrace))
}

func (l *serverLog) emit(level slog.Level, format string, v []any, attrs ...slog.Attr) {
	if l.log.Enabled(context.Background(), level) {
		l.log.LogAttrs(context.Background(), level, fmt.Sprintf(format, v...), attrs...)
	}
}

// Noticef logs what the server calls a notice: its banner and its changes of state.
func (l *serverLog) Noticef(format string, v ...any) { l.emit(slog.LevelInfo, format, v) }

// Warnf logs a warning.
func (l *serverLog) Warnf(format string, v ...any) {
	level := slog.LevelWarn
	if strings.HasPrefix(format, plaintextWarning) {
		level = slog.LevelDebug
	}
	l.emit(level, format, v)
	l.watch(format)
}

// Errorf logs an error.
func (l *serverLog) Errorf(format string, v ...any) {
	l.emit(slog.LevelError, format, v)
	l.watch(format)
}

// Debugf logs a debug line.
func (l *serverLog) Debugf(format string, v ...any) { l.emit(slog.LevelDebug, format, v) }

// Tracef logs a protocol line.
func (l *serverLog) Tracef(format string, v ...any) { l.emit(levelTrace, format, v) }

// Fatalf logs an error and remembers the first of them.
func (l *serverLog) Fatalf(format string, v ...any) {
	l.emit(slog.LevelError, format, v, slog.Bool("fatal", true))
	l.once.Do(func() {
		l.fatal.message = fmt.Sprintf(format, v...)
		for _, a := range v {
			if err, ok := a.(error); ok {
				l.fatal.cause = err
			}
		}
		close(l.failed)
	})
}
