package natsconn

import (
	"context"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/cockroachdb/errors"
	"github.com/nats-io/nats.go"
	"github.com/synadia-io/orbit.go/natscontext"
)

const (
	// reconnectWait and reconnectJitter spread the clients of a restarted server over a second.
	reconnectWait   = 250 * time.Millisecond
	reconnectJitter = 750 * time.Millisecond
)

// ErrUnreachable means that no server answered at the address; the message has the address and what to try.
var ErrUnreachable = errors.New("bus: unreachable")

// Conn is a connection that stays. All methods may be called at the same time.
type Conn struct {
	*nats.Conn
	log     *slog.Logger
	denials *denials
	closed  chan struct{}
}

// Connect connects to the bus. The context's deadline bounds the first connection as Config.Timeout does. The options vary one
// connection; those that this package rests on (handlers, reconnecting, timeout) it sets itself. It gives ErrConfig,
// ErrUnreachable, ErrDenied when the server does not accept who connects, and the context's error.
func Connect(ctx context.Context, c Config, opts ...nats.Option) (*Conn, error) {
	if err := ctx.Err(); err != nil {
		return nil, errors.Wrap(err, "connect to the bus")
	}
	if err := c.validate(); err != nil {
		return nil, err
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	if c.Timeout == 0 {
		c.Timeout = DefaultTimeout
	}
	credentials, err := c.credentials()
	if err != nil {
		return nil, err
	}
	conn := &Conn{log: c.Logger, denials: newDenials(), closed: make(chan struct{})}
	var address string
	// The address comes first of ours, so that it is known when another one fails.
	where := func(o *nats.Options) error {
		if c.Server != "" {
			o.Servers = addresses(c.Server)
		}
		if len(o.Servers) == 0 {
			o.Servers = []string{DefaultServer}
		}
		address = strings.Join(o.Servers, ",")
		return nil
	}
	options := slices.Concat([]nats.Option{where}, credentials, opts, conn.options(ctx, c))
	if c.usesContext() {
		conn.Conn, _, err = natscontext.Connect(c.Context, options...)
	} else {
		conn.Conn, err = nats.Connect(c.Server, options...)
	}
	if err != nil {
		return nil, connectError(err, address, c)
	}
	return conn, nil
}

func (c *Conn) options(ctx context.Context, config Config) []nats.Option {
	timeout := config.Timeout
	if deadline, ok := ctx.Deadline(); ok {
		timeout = max(min(timeout, time.Until(deadline)), time.Millisecond)
	}
	return []nats.Option{
		nats.Name(config.Name),
		nats.Timeout(timeout),
		nats.MaxReconnects(-1),
		nats.ReconnectWait(reconnectWait),
		nats.ReconnectJitter(reconnectJitter, reconnectJitter),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			if err != nil {
				c.log.Warn("bus connection lost, reconnecting", "error", err)
			}
		}),
		nats.ReconnectHandler(func(nc *nats.Conn) {
			c.log.Info("bus connection restored", "server", nc.ConnectedUrlRedacted())
		}),
		nats.ErrorHandler(func(_ *nats.Conn, sub *nats.Subscription, err error) {
			attrs := []any{"error", err}
			if sub != nil {
				attrs = append(attrs, "subject", sub.Subject)
			}
			c.log.Warn("bus reported an error", attrs...)
			c.denials.observe(err)
		}),
		nats.ClosedHandler(func(nc *nats.Conn) {
			if err := nc.LastError(); err != nil {
				c.log.Warn("bus connection closed", "error", err)
			}
			close(c.closed)
		}),
	}
}

// Closed is closed when the connection is over for good: closed by its owner, or because the server will not have it back.
// A component that did not close it itself MUST be restarted with a new connection.
func (c *Conn) Closed() <-chan struct{} { return c.closed }

// connectError names the address and what to try. An empty address means that no option of ours ran: the context itself was
// not usable.
func connectError(err error, address string, c Config) error {
	redacted := redact(address)
	var malformed *url.Error
	var file *fs.PathError
	switch {
	case address == "" && c.Context == "":
		return errors.Mark(errors.Wrap(err, "the selected nats context; select another with `nats context select`, or name the server"), ErrConfig)
	case address == "":
		return errors.Mark(errors.Wrapf(err, "nats context %q; `nats context ls` shows the known ones", c.Context), ErrConfig)
	case errors.As(err, &malformed):
		// The address itself is left out: it may hold a password, and where, nobody can tell.
		return errors.Mark(errors.Wrap(malformed.Err, "server address is not a URL such as nats://HOST:4222"), ErrConfig)
	case errors.As(err, &file): // credentials and certificates are read while connecting
		return errors.Mark(errors.Wrapf(file, "connect to %s: give the path of a file that can be read", redacted), ErrConfig)
	case isRefusedLogin(err):
		return errors.Mark(errors.Wrapf(err, "connect to %s: the server does not accept these credentials; check --creds, --context or NATS_USER", redacted), ErrDenied)
	case errors.Is(err, nats.ErrNoServers), errors.Is(err, nats.ErrTimeout), isNetwork(err):
		return errors.Mark(errors.Wrapf(err, "connect to %s: is the server running? start one with `catenary up`, or name it with --server, --context or NATS_URL", redacted), ErrUnreachable)
	default:
		return errors.Mark(errors.Wrapf(err, "connect to %s", redacted), ErrConfig)
	}
}

// isRefusedLogin knows a refusal by its words: while connecting, the client passes on the server's text, not its own sentinels.
func isRefusedLogin(err error) bool {
	text := strings.ToLower(err.Error())
	return slices.ContainsFunc([]error{nats.ErrAuthorization, nats.ErrAuthExpired, nats.ErrAuthRevoked}, func(known error) bool {
		return errors.Is(err, known) || strings.Contains(text, known.Error())
	})
}

func isNetwork(err error) bool {
	var network net.Error
	return errors.As(err, &network) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
}

// addresses splits a list of servers.
func addresses(servers string) []string {
	list := strings.Split(servers, ",")
	for i := range list {
		list[i] = strings.TrimSpace(list[i])
	}
	return slices.DeleteFunc(list, func(a string) bool { return a == "" })
}

// redact hides passwords in a list of URLs.
func redact(servers string) string {
	list := addresses(servers)
	for i, a := range list {
		if u, err := url.Parse(a); err == nil {
			list[i] = u.Redacted()
		}
	}
	return strings.Join(list, ",")
}
