package run

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/cockroachdb/errors"
	"github.com/nats-io/nats.go"

	"catenary/internal/natsconn"
)

// Exit codes of the binaries writer, projector and engine.
const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2
)

// longestPause bounds the wait between two tries to connect again.
const longestPause = 10 * time.Second

// stopWithin is how long a part that is told to stop may use its connection. Whatever waits for an answer then, such as from a server that
// is away, is told that none comes. It is a second less than the five that a stop takes at most.
const stopWithin = 4 * time.Second

// Program is a binary that runs one part against a server that exists.
type Program struct {
	// Name is the binary's, About says what it does.
	Name, About string
	// Part runs until the context ends, as [Writer], [Projector] and [Engine] do.
	Part func(ctx context.Context, nc *nats.Conn, s Settings, m Monitor, log *slog.Logger) error
}

// Exec runs the program as the process it is, until SIGINT or SIGTERM tells it to stop, and ends the process with its exit code. A second
// signal ends the process at once.
func (p Program) Exec() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	end := Slack(os.Getenv)
	code := p.Main(ctx, os.Args[1:], os.Getenv, os.Stderr)
	end()
	os.Exit(code)
}

// Main runs the program and gives its exit code: 0 when the context has ended or the part has done its work, 1 when the part can't go on, 2
// for settings that can't work. Talk goes to stderr.
func (p Program) Main(ctx context.Context, args []string, env func(string) string, stderr io.Writer) int {
	settings, err := LoadSettings(p.Name, p.About, args, env, stderr)
	switch {
	case errors.Is(err, ErrHelp):
		return exitOK
	case err != nil:
		return failed(stderr, p.Name, err, exitUsage)
	}
	level, err := settings.level()
	if err != nil {
		return failed(stderr, p.Name, err, exitUsage)
	}
	log := Logger(stderr, level, time.RFC3339, false)
	monitor, _, closeMonitor, err := OpenMonitor(ctx, MonitorConfig{Program: p.Name, HTTP: settings.HTTP, Traces: settings.Traces, Env: env, Logger: log})
	if err != nil {
		return failed(stderr, p.Name, err, exitUsage)
	}
	defer closeMonitor()
	err = p.run(ctx, settings, env, monitor, log)
	switch {
	case ctx.Err() != nil, err == nil:
		log.Info("stopped")
		return exitOK
	case errors.Is(err, natsconn.ErrConfig):
		return failed(stderr, p.Name, err, exitUsage)
	default:
		return failed(stderr, p.Name, err, exitFailed)
	}
}

// failed says why a program ends, and gives its exit code. When even that can't be written, the code has to do.
func failed(stderr io.Writer, program string, err error, code int) int {
	_, _ = fmt.Fprintf(stderr, "%s: %v\n", program, err)
	for _, hint := range errors.GetAllHints(err) {
		_, _ = fmt.Fprintf(stderr, "  hint: %s\n", hint)
	}
	return code
}

// run connects and runs the part, again and again when only the connection was lost for good. A bus that is away at the very
// start is for the supervisor to wait for.
func (p Program) run(ctx context.Context, s Settings, env func(string) string, m Monitor, log *slog.Logger) error {
	conn, err := natsconn.Connect(ctx, s.Bus("catenary "+p.Name, env, log))
	for {
		if err != nil {
			return err
		}
		closed, quiet := closeLate(ctx, conn.Conn, log), m.answerHealth(ctx, conn.Conn, log)
		err = p.Part(ctx, conn.Conn, s, m, log)
		quiet()
		closed()
		conn.Close()
		if !errors.Is(err, ErrConnectionClosed) || ctx.Err() != nil {
			return err
		}
		log.Warn("the connection was closed for good; starting again with a new one", "reason", err)
		pace := backoff.NewExponentialBackOff()
		pace.MaxInterval = longestPause
		conn, err = backoff.Retry(ctx, func() (*natsconn.Conn, error) {
			return natsconn.Connect(ctx, s.Bus("catenary "+p.Name, env, log))
		}, backoff.WithBackOff(pace), backoff.WithMaxElapsedTime(0), backoff.WithNotify(func(err error, after time.Duration) {
			log.Warn("can't connect", "reason", err, "next try in", after)
		}))
	}
}

// closeLate closes a connection when its part still uses it [stopWithin] after the context's end. Its result ends the watch.
func closeLate(ctx context.Context, nc *nats.Conn, log *slog.Logger) (ended func()) {
	watching, end := context.WithCancel(context.WithoutCancel(ctx))
	var watch sync.WaitGroup
	watch.Go(func() {
		select {
		case <-ctx.Done():
		case <-watching.Done():
			return
		}
		late := time.NewTimer(stopWithin)
		defer late.Stop()
		select {
		case <-late.C:
			log.Warn("closing the connection: the bus has not answered in time to stop in order", "after", stopWithin)
			nc.Close()
		case <-watching.Done():
		}
	})
	return func() {
		end()
		watch.Wait()
	}
}
