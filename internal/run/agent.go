package run

import (
	"context"
	"log/slog"
	"path/filepath"
	"time"

	"github.com/cockroachdb/errors"
	"github.com/nats-io/nats.go"

	"catenary/agent"
	"catenary/agent/driver"
	"catenary/agent/driver/exec"
	"catenary/es"
	"catenary/es/dispatch"
	"catenary/es/natskv"
	"catenary/internal/health"
	"catenary/internal/natsconn"
	"catenary/internal/topology"
)

// ErrStateInUse means that another running agent has the state directory.
var ErrStateInUse = errors.New("the agent's state directory is in use")

// outboxDir is where the reports that wait are, in an agent's state directory.
const outboxDir = "outbox"

// AgentConfig is what an agent's process is told.
type AgentConfig struct {
	Node string
	// State is the directory that keeps all that the agent knows.
	State string
	// Drivers are those it has, in order.
	Drivers []driver.Driver
	// Zero means the defaults of package agent.
	Every, Observe, Retry, StopWithin time.Duration
	// Monitor is told how the agent is.
	Monitor Monitor
	Logger  *slog.Logger
}

// Agent acts for a node, over a connection that stays, until the context ends. While the bus is away it goes on with what it knows. It
// gives errors marked [ErrStateInUse], [agent.ErrMemory], dispatch.ErrOutboxDamaged and [ErrConnectionClosed], and those of the file
// system.
func Agent(ctx context.Context, conn *natsconn.Conn, c AgentConfig) error {
	request := func(ctx context.Context, m *nats.Msg) (*nats.Msg, error) {
		reply, err := natsconn.Request(ctx, conn, m)
		if errors.Is(err, natsconn.ErrDenied) {
			err = errors.Mark(err, dispatch.ErrDenied)
		}
		return reply, err
	}
	outbox, err := dispatch.OpenOutbox(dispatch.OutboxConfig{
		Dir: filepath.Join(c.State, outboxDir), Bus: dispatch.NewInboxClient(conn.Conn, request), Logger: c.Logger,
	})
	if errors.Is(err, dispatch.ErrOutboxLocked) {
		err = errors.Mark(errors.Newf("state directory %s: another running agent has it; stop that one, or give this one a directory of its own", c.State), ErrStateInUse)
	}
	if err != nil {
		return err
	}
	if err := endLeft(ctx, c); err != nil {
		return errors.CombineErrors(err, outbox.Close())
	}
	hints, unhear, err := hearTold(conn.Conn, c.Node)
	if err != nil {
		return errors.CombineErrors(err, outbox.Close())
	}
	defer unhear()
	said := newAgentLogs(conn, c.Logger)
	defer said.end(c.Logger)
	answers := c.Monitor.Health.Signal("desk", health.Finding{State: health.Warn, Code: health.Starting, Reason: "it has not answered yet", Next: "see whether a projector runs"})
	defer answers.Drop()
	a, err := agent.New(agent.Config{
		Node: c.Node, Run: newID(), Version: Version(), Drivers: c.Drivers, Memory: agent.Dir(c.State), Desk: watchedDesk{agent.NewBusDesk(request), answers},
		Outbox: agent.Spool{Outbox: outbox}, Hints: hints, Connected: connected(ctx, conn.Conn), Logs: said,
		Every: c.Every, Observe: c.Observe, Retry: c.Retry, StopWithin: c.StopWithin, Logger: c.Logger,
		Did: c.Monitor.didDeeds(c.Node),
	})
	if err == nil {
		defer c.Monitor.looksAtAgent(a)()
		err = Together(ctx, map[string]func(context.Context) error{
			"":           a.Run,
			"outbox":     outbox.Run,
			"connection": func(ctx context.Context) error { return c.Monitor.awaitClosed(ctx, "agent bus", conn.Conn) },
		})
	}
	return errors.CombineErrors(err, outbox.Close())
}

// endLeft ends what an agent that was killed has left at work: it would go on beside what is done now, and might end after it.
func endLeft(ctx context.Context, c AgentConfig) error {
	ended, err := exec.Running(c.State).EndLeft(ctx)
	if ended > 0 {
		c.Logger.Warn("commands that a former run of this agent had left at work were ended", "processes", ended)
	}
	return stoppedBy(ctx, err)
}

// hearTold gives the sources of what is told to a node, as the server republishes it. What is not taken in time is no loss: the latest is
// what counts, and all of it is read anyway.
func hearTold(nc *nats.Conn, node string) (<-chan uint64, func(), error) {
	hints := make(chan uint64, 64)
	sub, err := nc.Subscribe(topology.ToldSubject(es.EscapeToken(node), "*"), func(m *nats.Msg) {
		_, e, err := natskv.ReadRepublished(m)
		if err != nil {
			return // anybody can say something there that is none
		}
		select {
		case hints <- e.Meta.Source.Sequence:
		default:
		}
	})
	if err != nil {
		return nil, nil, errors.Wrap(err, "listen to what the node is told")
	}
	return hints, func() { _ = sub.Unsubscribe() }, nil
}

// connected tells of each time that the bus is there again, until the context ends.
func connected(ctx context.Context, nc *nats.Conn) <-chan struct{} {
	told := make(chan struct{}, 1)
	status := nc.StatusChanged(nats.CONNECTED)
	context.AfterFunc(ctx, func() { nc.RemoveStatusListener(status) })
	go func() {
		for range status {
			select {
			case told <- struct{}{}:
			default:
			}
		}
	}()
	return told
}
