package run

import (
	"context"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/cockroachdb/errors"
	"github.com/nats-io/nats.go"

	"catenary/commands"
	"catenary/internal/health"
	"catenary/internal/telemetry"
)

// tracesPatience bounds the export of the last spans when a process ends.
const tracesPatience = 2 * time.Second

// Monitor is what the parts of a process tell how they are. The zero value is told and keeps nothing.
type Monitor struct {
	Health  *health.Registry
	Metrics *telemetry.Metrics
	Tracing *telemetry.Tracing
}

// MonitorConfig says which process is monitored, and how.
type MonitorConfig struct {
	// Program names the process.
	Program string
	// HTTP is where /healthz, /readyz and /metrics are served: see [ListenHTTP]. Empty serves none.
	HTTP string
	// Traces is a file that spans are appended to, one a line. Empty writes none; the variables of OpenTelemetry say where else they go.
	Traces string
	Env    func(name string) string
	// Now is the clock. Default: time.Now.
	Now    func() time.Time
	Logger *slog.Logger
}

// OpenMonitor makes a monitor and serves its pages until it is closed. It gives errors marked [ErrSettings] for what can't be served or
// written to.
func OpenMonitor(ctx context.Context, c MonitorConfig) (m Monitor, page Page, closed func(), err error) {
	if c.Now == nil {
		c.Now = time.Now
	}
	host, err := os.Hostname()
	if err != nil {
		host = "unknown host"
	}
	m.Health = health.New(health.Process{Program: c.Program, Version: Version(), Host: host, PID: os.Getpid()}, c.Now)
	var file *os.File
	if c.Traces != "" {
		if file, err = os.OpenFile(c.Traces, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600); err != nil {
			return Monitor{}, Page{}, nil, errors.Mark(errors.Wrap(err, "setting traces"), ErrSettings)
		}
	}
	release := func(err error) error {
		if file != nil {
			err = errors.CombineErrors(err, file.Close())
		}
		return err
	}
	if m.Tracing, err = newTracing(ctx, c, file); err != nil {
		return Monitor{}, Page{}, nil, release(errors.Mark(err, ErrSettings))
	}
	var serving sync.WaitGroup
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	if c.HTTP != "" {
		m.Metrics = newMetrics(c.Program, m.Health)
		if page, err = ListenHTTP(c.HTTP); err != nil {
			stop()
			return Monitor{}, Page{}, nil, release(err)
		}
		serving.Go(func() { page.serve(running, m, c.Logger) })
		c.Logger.Info("health and metrics are served", "url", page.URL())
	}
	return m, page, func() {
		stop()
		serving.Wait()
		late, cancel := context.WithTimeout(context.WithoutCancel(ctx), tracesPatience)
		defer cancel()
		if err := release(m.Tracing.Close(late)); err != nil {
			c.Logger.Warn("not all traces are exported", "error", err)
		}
	}, nil
}

func newTracing(ctx context.Context, c MonitorConfig, file *os.File) (*telemetry.Tracing, error) {
	if file == nil {
		return telemetry.NewTracing(ctx, c.Env, c.Program, Version(), nil)
	}
	return telemetry.NewTracing(ctx, c.Env, c.Program, Version(), file)
}

// newMetrics makes the metrics of a process, with its checks among them.
func newMetrics(program string, checks *health.Registry) *telemetry.Metrics {
	config := telemetry.Config{Program: program, Version: Version()}
	for _, v := range commands.Commands().Verbs() {
		config.Verbs = append(config.Verbs, telemetry.Verb{Aggregate: v.Aggregate, Verb: v.Verb})
	}
	m := telemetry.New(config)
	m.Look(func(ctx context.Context, set telemetry.Set) {
		for _, c := range checks.Report(ctx).Checks {
			set(telemetry.CheckState, map[health.State]float64{health.OK: 0, health.Warn: 1, health.Fail: 2}[c.State], c.Name)
		}
	})
	return m
}

// answerHealth says on the bus how this process is, until it is stopped: see [health.Gather]. That nobody can ask for it is no reason to
// stop working.
func (m Monitor) answerHealth(ctx context.Context, nc *nats.Conn, log *slog.Logger) (stop func()) {
	if m.Health == nil {
		return func() {}
	}
	answering, cancel := context.WithCancel(ctx)
	var answers sync.WaitGroup
	answers.Go(func() {
		if err := health.Serve(answering, nc, m.Health, log); err != nil && answering.Err() == nil {
			log.Warn("nobody can ask on the bus how this process is", "error", err)
		}
	})
	return func() {
		cancel()
		answers.Wait()
	}
}

// AnswerHealth says on the bus how this process is, until the context ends.
func (m Monitor) AnswerHealth(ctx context.Context, nc *nats.Conn, log *slog.Logger) error {
	stop := m.answerHealth(ctx, nc, log)
	<-ctx.Done()
	stop()
	return nil
}

// awaitClosed waits until a part's connection is closed for good or the context ends, and says meanwhile under a name how it is. It gives
// [ErrConnectionClosed].
func (m Monitor) awaitClosed(ctx context.Context, name string, nc *nats.Conn) error {
	var watching sync.WaitGroup
	defer watching.Wait()
	watched, stop := context.WithCancel(ctx)
	defer stop()
	if m.Health != nil {
		watching.Go(func() { m.watchBus(watched, name, nc) })
	}
	return awaitClosed(ctx, nc)
}

// watchBus says how a connection is, until the context ends.
func (m Monitor) watchBus(ctx context.Context, name string, nc *nats.Conn) {
	const next = "see whether the server runs and can be reached; the part goes on by itself when it is back"
	status := nc.StatusChanged(nats.CONNECTED, nats.RECONNECTING, nats.DISCONNECTED, nats.CLOSED)
	defer nc.RemoveStatusListener(status)
	bus := m.Health.Signal(name, health.Finding{State: health.OK, Reason: "connected"})
	defer bus.Drop()
	if !nc.IsConnected() {
		bus.Fail(health.Away, "the bus is away", next)
	}
	for {
		select {
		case <-ctx.Done():
			return
		case s, open := <-status:
			switch {
			case !open:
				return
			case s == nats.CONNECTED:
				bus.OK("connected to " + nc.ConnectedUrlRedacted())
			case s == nats.CLOSED:
				bus.Fail(health.Away, "the connection is closed for good", "the part is started again with a new one")
			default:
				bus.Fail(health.Away, "the bus is away", next)
			}
		}
	}
}
