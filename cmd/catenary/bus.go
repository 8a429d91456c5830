package main

import (
	"context"
	"log/slog"
	"time"

	"github.com/cockroachdb/errors"
	"github.com/nats-io/nats.go"

	"catenary/agent"
	"catenary/agent/depot"
	"catenary/agent/desk"
	"catenary/agent/logs"
	"catenary/audit"
	"catenary/audit/proof"
	"catenary/chain"
	"catenary/es/dispatch"
	"catenary/es/natskv"
	"catenary/internal/natsconn"
)

// session is a connection to the bus, and what the tool says and reads over it.
type session struct {
	conn    *natsconn.Conn
	reader  *chain.Reader
	queries *audit.Client
	bus     dispatch.Bus
	inbox   *dispatch.InboxClient
	request agent.RequestFunc
	proofs  *proof.Client
	depot   *depot.Client
	logs    *logs.Client
	zone    *time.Location
	// names gives names in tables; it has a context of its own, since cells are made where none is at hand.
	names func(id string) string
}

func (s *session) cell() cell { return cell{zone: s.zone, actor: s.names} }

// dial connects to the bus. The session's connection MUST be closed.
func (a *app) dial(ctx context.Context, config natsconn.Config) (*session, error) {
	zone, err := a.location()
	if err != nil {
		return nil, err
	}
	config.Name = "catenary"
	conn, err := natsconn.Connect(ctx, config)
	if err != nil {
		return nil, err
	}
	request := func(ctx context.Context, m *nats.Msg) (*nats.Msg, error) {
		answer, err := natsconn.Request(ctx, conn, m)
		if errors.Is(err, natsconn.ErrDenied) {
			err = errors.Mark(err, dispatch.ErrDenied)
		}
		return answer, err
	}
	s := &session{
		conn: conn, zone: zone,
		queries: audit.NewClient(conn.Conn, conn.WithDenial),
		bus:     dispatch.NewClientFunc(request),
		inbox:   dispatch.NewInboxClient(conn.Conn, request),
		request: request,
		depot:   depot.NewClient(conn.Conn, conn.WithDenial),
		logs:    logs.NewClient(conn.Conn, conn.WithDenial),
		proofs:  proof.NewClient(func(ctx context.Context, m *nats.Msg) (*nats.Msg, error) { return natsconn.Request(ctx, conn, m) }),
	}
	s.reader = chain.NewReader(chain.Config{
		Open:      func(ctx context.Context, bucket string) (chain.Bucket, error) { return s.open(ctx, bucket) },
		Positions: s.positions,
		Clock:     a.Now,
	})
	s.names = func(id string) string {
		name, err := s.reader.ActorName(ctx, id)
		if err != nil {
			return id
		}
		return name
	}
	return s, nil
}

// desk asks how nodes are.
func (s *session) desk() *desk.Client { return desk.NewClient(s.request) }

// open opens the copy of a bucket that is read here.
func (s *session) open(ctx context.Context, bucket string) (*natskv.Bucket, error) {
	return natskv.Open(ctx, s.conn.Conn, bucket)
}

// withBus connects, lets work be done and disconnects. What the server forbids ends the work at once.
func (a *app) withBus(ctx context.Context, log *slog.Logger, work func(context.Context, *session) error) error {
	config := a.bus.WithEnvironment(a.Env)
	config.Logger = log
	s, err := a.dial(ctx, config)
	if err != nil {
		return err
	}
	defer s.conn.Close()
	ctx, cancel := s.conn.WithDenial(ctx)
	defer cancel()
	err = work(ctx, s)
	if cause := context.Cause(ctx); err != nil && errors.Is(cause, natsconn.ErrDenied) && !errors.Is(err, natsconn.ErrDenied) {
		return errors.WithSecondaryError(cause, err)
	}
	return err
}

// read connects for a read that is bounded by --timeout.
func (a *app) read(ctx context.Context, work func(context.Context, *session) error) error {
	return a.readWithin(ctx, a.timeout, work)
}

// readWithin connects for a read that is bounded.
func (a *app) readWithin(ctx context.Context, bound time.Duration, work func(context.Context, *session) error) error {
	ctx, cancel := context.WithTimeout(ctx, bound)
	defer cancel()
	return a.withBus(ctx, slog.New(slog.DiscardHandler), work)
}
