package run

import (
	"context"
	"io"
	"log/slog"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/cockroachdb/errors"
	"github.com/nats-io/nats.go"

	"catenary/agent/driver"
	"catenary/es"
	"catenary/internal/failpoint"
	"catenary/internal/natsconn"
	"catenary/internal/topology"
)

// AgentMain runs the program agent and gives its exit code: 0 when the context has ended, 1 when it can't go on, 2 for settings that can't
// work. Unlike our other programs it waits for a bus that is away at its start: nobody may be there to start it again.
func AgentMain(ctx context.Context, args []string, env func(string) string, stderr io.Writer) int {
	fail := func(err error, code int) int { return failed(stderr, "agent", err, code) }
	s, err := LoadAgentSettings(args, env, stderr)
	if errors.Is(err, ErrHelp) {
		return exitOK
	}
	if err != nil {
		return fail(err, exitUsage)
	}
	log := Logger(stderr, s.level, time.RFC3339, false)
	p, err := newAgentProgram(s, env, log)
	if err != nil {
		return fail(err, exitUsage)
	}
	monitor, _, closeMonitor, err := OpenMonitor(ctx, MonitorConfig{Program: "agent", HTTP: s.HTTP, Traces: s.Traces, Env: env, Logger: log})
	if err != nil {
		return fail(err, exitUsage)
	}
	defer closeMonitor()
	err = p.run(ctx, monitor)
	switch {
	case ctx.Err() != nil && (err == nil || errors.Is(err, context.Canceled)):
		log.Info("stopped")
		return exitOK
	case errors.IsAny(err, natsconn.ErrConfig, ErrSettings):
		return fail(err, exitUsage)
	}
	return fail(err, exitFailed)
}

// agentProgram is an agent with what it was set to.
type agentProgram struct {
	AgentSettings
	bus       natsconn.Config
	artifacts *agentArtifacts // nil for simulated ones
	drivers   []driver.Driver
	log       *slog.Logger
}

func newAgentProgram(s AgentSettings, env func(string) string, log *slog.Logger) (*agentProgram, error) {
	p := &agentProgram{AgentSettings: s, log: log}
	var err error
	if s.Simulate == 0 {
		if p.artifacts, err = newAgentArtifacts(s, log); err != nil {
			return nil, err
		}
	}
	if p.drivers, err = s.drivers(p.artifacts); err != nil {
		return nil, err
	}
	p.bus, err = s.bus(env, log)
	return p, err
}

// run connects and acts, again and again when only the connection was lost for good.
func (p *agentProgram) run(ctx context.Context, m Monitor) error {
	for {
		conn, err := p.connect(ctx)
		if err != nil {
			return err
		}
		if p.Simulate > 0 {
			err = Simulate(ctx, conn, SimulateConfig{Prefix: p.Node, Count: p.Simulate, Every: p.every, Observe: p.observe, Logger: p.log})
		} else {
			p.artifacts.over(conn)
			err = Agent(ctx, conn, AgentConfig{Node: p.Node, State: p.State, Drivers: p.drivers, Every: p.every, Observe: p.observe, Monitor: m, Logger: p.log})
		}
		conn.Close()
		if !errors.Is(err, ErrConnectionClosed) || ctx.Err() != nil {
			return err
		}
		p.log.Warn("the connection was closed for good; starting again with a new one", "reason", err)
	}
}

// connect connects, and waits for a bus that is away. Credentials that are not taken are tried again too: they may be known later.
func (p *agentProgram) connect(ctx context.Context) (*natsconn.Conn, error) {
	pace := backoff.NewExponentialBackOff()
	pace.MaxInterval = longestPause
	return backoff.Retry(ctx, func() (*natsconn.Conn, error) {
		conn, err := natsconn.Connect(ctx, p.bus, nats.CustomInboxPrefix(topology.AgentInbox(es.EscapeToken(p.Node))))
		if errors.Is(err, natsconn.ErrConfig) {
			err = backoff.Permanent(err)
		}
		return conn, err
	}, backoff.WithBackOff(pace), backoff.WithMaxElapsedTime(0), backoff.WithNotify(func(err error, after time.Duration) {
		p.log.Warn("can't connect", "reason", err, "next try in", after)
	}))
}

// agentClock is the clock of a node. It decides nothing but what was used last.
func agentClock() func() time.Time { return failpoint.Clock(time.Now) }
