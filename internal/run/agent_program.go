package run

import (
	"context"
	"fmt"
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
	fail := func(err error, code int) int {
		_, _ = fmt.Fprintf(stderr, "agent: %v\n", err)
		for _, hint := range errors.GetAllHints(err) {
			_, _ = fmt.Fprintf(stderr, "  hint: %s\n", hint)
		}
		return code
	}
	s, err := LoadAgentSettings(args, env, stderr)
	if errors.Is(err, ErrHelp) {
		return exitOK
	}
	if err != nil {
		return fail(err, exitUsage)
	}
	log := Logger(stderr, s.level, time.RFC3339, false)
	var source *agentArtifacts
	if s.Simulate == 0 {
		source, err = newAgentArtifacts(s, log)
	}
	var drivers []driver.Driver
	if err == nil {
		drivers, err = s.drivers(source)
	}
	if err != nil {
		return fail(err, exitUsage)
	}
	bus, err := s.bus(env, log)
	if err != nil {
		return fail(err, exitUsage)
	}
	monitor, _, closeMonitor, err := OpenMonitor(ctx, MonitorConfig{Program: "agent", HTTP: s.HTTP, Traces: s.Traces, Env: env, Logger: log})
	if err != nil {
		return fail(err, exitUsage)
	}
	defer closeMonitor()
	err = agentOver(ctx, s, bus, drivers, source, monitor, log)
	switch {
	case ctx.Err() != nil && (err == nil || errors.Is(err, context.Canceled)):
		log.Info("stopped")
		return exitOK
	case errors.IsAny(err, natsconn.ErrConfig, ErrSettings):
		return fail(err, exitUsage)
	}
	return fail(err, exitFailed)
}

// agentOver connects and acts, again and again when only the connection was lost for good.
func agentOver(ctx context.Context, s AgentSettings, bus natsconn.Config, drivers []driver.Driver, source *agentArtifacts, m Monitor, log *slog.Logger) error {
	for {
		conn, err := connectAgent(ctx, s.Node, bus, log)
		if err != nil {
			return err
		}
		if s.Simulate > 0 {
			err = Simulate(ctx, conn, SimulateConfig{Prefix: s.Node, Count: s.Simulate, Every: s.every, Observe: s.observe, Logger: log})
		} else {
			source.over(conn)
			err = Agent(ctx, conn, AgentConfig{Node: s.Node, State: s.State, Drivers: drivers, Every: s.every, Observe: s.observe, Monitor: m, Logger: log})
		}
		conn.Close()
		if !errors.Is(err, ErrConnectionClosed) || ctx.Err() != nil {
			return err
		}
		log.Warn("the connection was closed for good; starting again with a new one", "reason", err)
	}
}

// connectAgent connects, and waits for a bus that is away. Credentials that are not taken are tried again too: they may be known later.
func connectAgent(ctx context.Context, node string, bus natsconn.Config, log *slog.Logger) (*natsconn.Conn, error) {
	pace := backoff.NewExponentialBackOff()
	pace.MaxInterval = longestPause
	return backoff.Retry(ctx, func() (*natsconn.Conn, error) {
		conn, err := natsconn.Connect(ctx, bus, nats.CustomInboxPrefix(topology.AgentInbox(es.EscapeToken(node))))
		if errors.Is(err, natsconn.ErrConfig) {
			err = backoff.Permanent(err)
		}
		return conn, err
	}, backoff.WithBackOff(pace), backoff.WithMaxElapsedTime(0), backoff.WithNotify(func(err error, after time.Duration) {
		log.Warn("can't connect", "reason", err, "next try in", after)
	}))
}

// agentClock is the clock of a node. It decides nothing but what was used last.
func agentClock() func() time.Time { return failpoint.Clock(time.Now) }
