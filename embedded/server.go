package embedded

import (
	"context"
	"crypto/rand"
	"log/slog"
	"net"
	"net/netip"
	"path/filepath"
	"slices"
	"strconv"
	"sync"

	"github.com/cockroachdb/errors"
	"github.com/nats-io/nats.go"

	"catenary/internal/mirrors"
	"catenary/internal/topology"
)

// serverName is the one node's name; clusters number theirs.
const serverName = "catenary"

// Server is one nats-server inside this process. All methods may be called at the same time.
type Server struct {
	node            *node
	lock            *storeLock
	log             *slog.Logger
	options         topology.Options
	listen          string
	clientURL       string
	credentialsPath string
	ledger, mirrors topology.User
	// layout is what the server has, and own those of its people that are no agents; storeDir knows the agents.
	layout     topology.Layout
	own        []topology.User
	storeDir   string
	unwritable chan struct{}

	stopOnce sync.Once
	stopped  chan struct{} // closed after stopErr is set
	stopErr  error

	mu      sync.Mutex
	closing bool
	conns   []*nats.Conn
}

// Start starts a server and waits until it takes clients. A store that was not closed cleanly is recovered. The context bounds
// the start only. It gives ErrConfig, ErrListen, ErrStore, ErrStoreLocked, ErrStart, and the context's error.
func Start(ctx context.Context, c Config) (_ *Server, err error) {
	c, listen, err := c.withDefaults()
	if err != nil {
		return nil, err
	}
	lock, err := lockStore(c.StoreDir)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.CombineErrors(err, lock.release())
		}
	}()
	if !c.Restoring {
		if err := checkRestored(c.StoreDir); err != nil {
			return nil, err
		}
	}
	storeBytes, options, err := resolveLimits(c, 1)
	if err != nil {
		return nil, err
	}
	who, err := newUsers(c, listen)
	if err != nil {
		return nil, err
	}
	layout, err := who.layout()
	if err != nil {
		return nil, err
	}
	layout.ServerName = serverName
	layout.Listen = listen.serverListen()
	layout.StoreDir = c.StoreDir
	layout.MaxStoreBytes = storeBytes
	layout.SyncAlways = c.Durability == DurabilityFsync
	layout.MirrorsLater = true
	serverLog := newServerLog(c.Logger)
	n, err := startNode(ctx, layout, serverLog)
	if err != nil {
		return nil, err
	}
	return &Server{
		unwritable:      serverLog.unwritable,
		node:            n,
		lock:            lock,
		log:             c.Logger,
		options:         options,
		listen:          net.JoinHostPort(listen.host, strconv.Itoa(n.port)),
		clientURL:       "nats://" + net.JoinHostPort(reachableHost(listen.host), strconv.Itoa(n.port)),
		credentialsPath: who.credentialsPath,
		ledger:          who.ledger,
		mirrors:         who.mirrors,
		layout:          layout,
		own:             layout.People[:len(layout.People)-who.agents],
		storeDir:        c.StoreDir,
		stopped:         make(chan struct{}),
	}, nil
}

// users are who may connect to one server or to all servers of a cluster.
type users struct {
	ledger, mirrors topology.User
	people          []topology.User
	// agents counts the agents, which are the last of the people.
	agents          int
	anonymous       string
	credentialsPath string
}

func newUsers(c Config, listen address) (users, error) {
	u := users{
		ledger:  topology.User{Name: topology.UserLedger, Password: rand.Text()},
		mirrors: topology.User{Name: topology.UserMirrors, Password: rand.Text()},
	}
	operator := topology.User{Name: topology.UserOperator, Password: rand.Text()}
	if listen.loopback {
		u.anonymous = operator.Name
	} else {
		credentials, path, err := operatorCredentials(c.StoreDir)
		if err != nil {
			return users{}, err
		}
		operator = topology.User{Name: credentials.User, Password: credentials.Password}
		u.credentialsPath = path
	}
	agents, err := agentUsers(c.StoreDir)
	if err != nil {
		return users{}, err
	}
	u.agents = len(agents)
	u.people = slices.Concat([]topology.User{operator}, c.Users, agents)
	return u, nil
}

// layout is the accounts with hashes instead of passwords. Only the anonymous user's password stays plain: the server
// presents it to itself on behalf of a client that has none.
func (u users) layout() (topology.Layout, error) {
	all := slices.Concat([]topology.User{u.ledger, u.mirrors}, u.people)
	for i := range all {
		if u.anonymous != "" && all[i].ID() == u.anonymous {
			continue
		}
		h, err := hashed(all[i])
		if err != nil {
			return topology.Layout{}, err
		}
		all[i] = h
	}
	return topology.Layout{Ledger: all[0], Mirrors: all[1], People: all[2:], Anonymous: u.anonymous}, nil
}

// reachableHost is a host that clients on this machine can dial.
func reachableHost(host string) string {
	if ip, err := netip.ParseAddr(host); err == nil && ip.IsUnspecified() {
		return "127.0.0.1"
	}
	return host
}

// ClientURL is what people, tools and agents connect to.
func (s *Server) ClientURL() string { return s.clientURL }

// Listen is where the server listens, HOST:PORT: a server that is started there again is found by its clients.
func (s *Server) Listen() string { return s.listen }

// CredentialsPath is the file with the operator's credentials. It is empty on loopback, where nobody needs them.
func (s *Server) CredentialsPath() string { return s.credentialsPath }

// Unwritable is closed when the server has given up writing to its store, as on a full disk. It still answers who reads, and nobody who
// publishes, also when there is room again: it has to be shut down, and another started.
func (s *Server) Unwritable() <-chan struct{} { return s.unwritable }

// Options are the streams' limits that fit this server's store. Whoever creates a stream MUST use them.
func (s *Server) Options() topology.Options { return s.options }

// Ledger connects to the ledger account, in-process. Shutdown closes the connection. It gives ErrStopped.
func (s *Server) Ledger(opts ...nats.Option) (*nats.Conn, error) { return s.connect(s.ledger, opts) }

// Mirrors connects to the ops account as the user that makes mirrors, in-process. Shutdown closes the connection. It gives
// ErrStopped.
func (s *Server) Mirrors(opts ...nats.Option) (*nats.Conn, error) { return s.connect(s.mirrors, opts) }

func (s *Server) connect(u topology.User, opts []nats.Option) (*nats.Conn, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing {
		return nil, errors.Wrapf(ErrStopped, "connect as %s", u.Name)
	}
	own := []nats.Option{
		nats.Name("catenary " + u.Name),
		nats.InProcessServer(s.node.server),
		nats.UserInfo(u.Name, u.Password),
		nats.MaxReconnects(-1),
		logAsyncErrors(s.log),
	}
	nc, err := nats.Connect("", append(own, opts...)...)
	if err != nil {
		return nil, errors.Wrapf(err, "connect in-process as %s", u.Name)
	}
	s.conns = append(slices.DeleteFunc(s.conns, (*nats.Conn).IsClosed), nc)
	return nc, nil
}

func logAsyncErrors(log *slog.Logger) nats.Option {
	return nats.ErrorHandler(func(nc *nats.Conn, sub *nats.Subscription, err error) {
		attrs := []any{"connection", nc.Opts.Name, "error", err}
		if sub != nil {
			attrs = append(attrs, "subject", sub.Subject)
		}
		log.Error("bus reported an error", attrs...)
	})
}

// MirrorPath is where a store keeps the mirror of a bucket, below the store's directory. A server that starts without it makes
// the mirror anew.
func MirrorPath(bucket string) string {
	return filepath.Join("jetstream", topology.AccountOps, "streams", topology.BucketStream(bucket))
}

// EnsureMirrors gives the ops account a true mirror of every bucket: see [mirrors.Mirrors.Ensure].
func (s *Server) EnsureMirrors(ctx context.Context) error {
	ledger, err := s.Ledger()
	if err != nil {
		return err
	}
	defer ledger.Close()
	ops, err := s.Mirrors()
	if err != nil {
		return err
	}
	defer ops.Close()
	m, err := mirrors.New(ledger, ops, s.options, s.log)
	if err != nil {
		return err
	}
	return m.Ensure(ctx)
}

// OpenMirrors gives what makes and keeps the mirrors while the server runs, over connections that Shutdown closes. It gives
// ErrStopped.
func (s *Server) OpenMirrors() (*mirrors.Mirrors, error) {
	ledger, err := s.Ledger()
	if err != nil {
		return nil, err
	}
	ops, err := s.Mirrors()
	if err != nil {
		return nil, err
	}
	return mirrors.New(ledger, ops, s.options, s.log)
}

// Shutdown closes the connections it gave out, stops the server and releases the store directory. It may be called more
// than once. When the context ends first the stopping goes on, and WaitForShutdown tells when it is done.
func (s *Server) Shutdown(ctx context.Context) error {
	s.stopOnce.Do(func() { go s.stop() })
	select {
	case <-s.stopped:
		return s.stopErr
	case <-ctx.Done():
		return errors.Wrap(ctx.Err(), "stop the server")
	}
}

// WaitForShutdown returns when a Shutdown is complete.
func (s *Server) WaitForShutdown() { <-s.stopped }

func (s *Server) stop() {
	s.mu.Lock()
	s.closing = true
	conns := s.conns
	s.mu.Unlock()
	for _, nc := range conns {
		nc.Close()
	}
	s.node.stop()
	s.stopErr = s.lock.release()
	close(s.stopped)
}
