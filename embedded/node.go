package embedded

import (
	"context"
	"net"
	"net/http"
	"syscall"
	"time"

	"github.com/cockroachdb/errors"
	"github.com/nats-io/nats-server/v2/server"

	"catenary/internal/topology"
)

// readyCheckInterval is how often a starting server is asked; it answers no sooner than after 25 ms itself.
const readyCheckInterval = 25 * time.Millisecond

// mirrorSettleTime bounds how long a stop is put off for a mirror. A mirror asks its origin up to 200 ms after a start, and is
// answered within some milliseconds.
const mirrorSettleTime = 300 * time.Millisecond

// settlePollInterval is how often it is asked meanwhile. A mirror follows within a millisecond.
const settlePollInterval = 5 * time.Millisecond

// node is one running nats-server.
type node struct {
	server *server.Server
	port   int
}

// startNode starts a server with this layout and waits until it takes clients. When it gives an error, nothing runs. It
// gives ErrConfig, ErrListen, ErrStart, and the context's error.
func startNode(ctx context.Context, layout topology.Layout, log *serverLog) (*node, error) {
	options, err := optionsOf(layout)
	if err != nil {
		return nil, err
	}
	s, err := server.NewServer(options)
	if err != nil {
		return nil, errors.Mark(errors.Wrap(err, "server configuration"), ErrConfig)
	}
	log.attach(s)
	s.Start()
	err = awaitReady(ctx, s, log)
	if err == nil && layout.MirrorsLater {
		err = recoverMirrors(s)
	}
	if err != nil {
		s.Shutdown()
		s.WaitForShutdown()
		return nil, err
	}
	return &node{server: s, port: s.Addr().(*net.TCPAddr).Port}, nil
}

// optionsOf gives a layout as the server has it. It gives ErrConfig.
func optionsOf(layout topology.Layout) (*server.Options, error) {
	text, err := layout.Config()
	if err != nil {
		return nil, errors.Mark(err, ErrConfig)
	}
	var options server.Options
	if err := options.ProcessConfigString(text); err != nil {
		return nil, errors.Mark(errors.Wrap(err, "server configuration"), ErrConfig)
	}
	options.NoSigs = true
	options.DisableJetStreamBanner = true
	return &options, nil
}

// reload lets the server have another layout while it runs: other users, and nothing else. It gives ErrConfig.
func (n *node) reload(layout topology.Layout) error {
	layout.MirrorsLater = false // they are there by now, and stay
	options, err := optionsOf(layout)
	if err != nil {
		return err
	}
	options.Port = n.port
	return errors.Mark(errors.Wrap(n.server.ReloadOptions(options), "take another configuration while running"), ErrConfig)
}

// awaitReady waits until a server takes clients, and has its streams.
func awaitReady(ctx context.Context, s *server.Server, log *serverLog) error {
	for {
		select {
		case <-log.failed:
			return startError(log.fatal)
		case <-ctx.Done():
			return errors.Wrap(ctx.Err(), "start the server")
		default:
		}
		if s.ReadyForConnections(readyCheckInterval) && s.JetStreamEnabled() {
			return nil
		}
	}
}

// recoverMirrors turns on the ops account's JetStream, and with it the mirrors, now that their origins are there.
func recoverMirrors(s *server.Server) error {
	ops, err := s.LookupAccount(topology.AccountOps)
	if err == nil {
		err = ops.EnableJetStream(nil, nil)
	}
	if err != nil {
		return errors.Mark(errors.Wrapf(err, "recover the mirrors of account %s", topology.AccountOps), ErrStart)
	}
	return nil
}

func startError(f fatalError) error {
	var listen *net.OpError
	switch {
	case !errors.As(f.cause, &listen):
		return errors.Wrap(ErrStart, f.message)
	case errors.Is(f.cause, syscall.EADDRINUSE):
		return errors.Wrapf(ErrListen, "%s: another program listens there; choose another address, or port 0 for any free one", f.message)
	default:
		return errors.Wrapf(ErrListen, "%s: choose an address of this machine", f.message)
	}
}

// requestSettleTime bounds how long a stop is put off for requests that are being worked on.
const requestSettleTime = 5 * time.Second

// stop stops the server and waits until nothing of it runs. A stream that is being made at that moment would stay open behind it, over files that are
// the next server's. A mirror that has just asked its origin for a consumer would wait half a minute for an answer that a stopped server never gives, so
// it is allowed to get it first.
func (n *node) stop() {
	for deadline := time.Now().Add(requestSettleTime); n.requestsUnderWay() && time.Now().Before(deadline); {
		time.Sleep(settlePollInterval)
	}
	for deadline := time.Now().Add(mirrorSettleTime); n.mirrorsSettling() && time.Now().Before(deadline); {
		time.Sleep(settlePollInterval)
	}
	n.server.Shutdown()
	n.server.WaitForShutdown()
}

// healthy is true when all streams of the node are there and current.
func (n *node) healthy() bool {
	return n.server.Healthz(&server.HealthzOptions{}).StatusCode == http.StatusOK
}

// requestsUnderWay is true while some request to JetStream is being worked on, or waits for that.
func (n *node) requestsUnderWay() bool {
	state, err := n.server.Jsz(nil)
	return err == nil && state.API.Inflight > 0
}

// mirrorsSettling is true while some mirror that is led here has neither heard from its origin nor failed to.
func (n *node) mirrorsSettling() bool {
	state, err := n.server.Jsz(&server.JSzOptions{Account: topology.AccountOps, Streams: true, StreamLeaderOnly: true})
	if err != nil {
		return false // JetStream is off: there is no mirror
	}
	for _, account := range state.AccountDetails {
		for _, stream := range account.Streams {
			if stream.Mirror != nil && stream.Mirror.Active < 0 && stream.Mirror.Error == nil {
				return true
			}
		}
	}
	return false
}
