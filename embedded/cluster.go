package embedded

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/cockroachdb/errors"
	"github.com/nats-io/nats.go"
	"golang.org/x/sync/errgroup"

	"catenary/internal/mirrors"
	"catenary/internal/topology"
)

const (
	// ClusterNodes is the size of a cluster: the smallest that survives the loss of a node.
	ClusterNodes = 3
	clusterName  = "catenary"
	// portAttempts bounds how often a cluster is started with other ports because one of them was taken meanwhile.
	portAttempts = 5
	// clusterPollInterval is how often a cluster is asked for its leader. An election takes up to some seconds.
	clusterPollInterval = 10 * time.Millisecond
)

// ErrNode is given for a node number that the cluster does not have, or that is running or stopped already.
var ErrNode = errors.New("embedded cluster: no such node, or not in that state")

// ClusterConfig configures a cluster of three nodes in this process. Its fields mean what those of Config mean; sizes are
// per node.
type ClusterConfig struct {
	// StoreDir holds one directory per node. Required.
	StoreDir        string
	Durability      Durability
	MaxStoreBytes   int64
	EventStoreBytes int64
	BucketBytes     int64
	Users           []topology.User
	Logger          *slog.Logger
}

// Cluster is three nats-servers inside this process, joined by routes on loopback. All methods may be called at the same
// time.
type Cluster struct {
	log             *slog.Logger
	options         topology.Options
	ledger, mirrors topology.User
	urls            []string

	mu      sync.Mutex
	closing bool
	members []*member
	conns   []*nats.Conn
}

// member is a node's place in the cluster; node and lock are nil while it is stopped.
type member struct {
	layout topology.Layout
	log    *slog.Logger
	node   *node
	lock   *storeLock
}

// StartCluster starts three nodes with free ports and waits until they have a leader that knows all of them. It gives the
// errors of Start.
func StartCluster(ctx context.Context, c ClusterConfig) (*Cluster, error) {
	config, listen, err := Config{
		StoreDir: c.StoreDir, Durability: c.Durability, MaxStoreBytes: c.MaxStoreBytes,
		EventStoreBytes: c.EventStoreBytes, BucketBytes: c.BucketBytes, Users: c.Users, Logger: c.Logger,
	}.withDefaults()
	if err != nil {
		return nil, err
	}
	who, err := newUsers(config, listen)
	if err != nil {
		return nil, err
	}
	for attempt := 1; ; attempt++ {
		cluster, err := startCluster(ctx, config, listen, who)
		// A port that was free when it was chosen may be taken when it is used; other ports will do.
		if !errors.Is(err, ErrListen) || attempt == portAttempts {
			return cluster, err
		}
	}
}

func startCluster(ctx context.Context, config Config, listen address, who users) (_ *Cluster, err error) {
	ports, err := freePorts(listen.host, 2*ClusterNodes)
	if err != nil {
		return nil, err
	}
	at := func(port int) string { return net.JoinHostPort(listen.host, strconv.Itoa(port)) }
	clientPorts, routePorts := ports[:ClusterNodes], ports[ClusterNodes:]
	var routes []string
	for _, p := range routePorts {
		routes = append(routes, at(p))
	}
	base, err := who.layout()
	if err != nil {
		return nil, err
	}
	base.SyncAlways = config.Durability == DurabilityFsync
	c := &Cluster{log: config.Logger, ledger: who.ledger, mirrors: who.mirrors}
	for i := range ClusterNodes {
		layout := base
		layout.ServerName = fmt.Sprintf("%s-%d", clusterName, i)
		layout.Listen = at(clientPorts[i])
		layout.StoreDir = filepath.Join(config.StoreDir, fmt.Sprintf("node-%d", i))
		layout.Cluster = &topology.ClusterLayout{Name: clusterName, Listen: routes[i], Routes: routes}
		c.members = append(c.members, &member{layout: layout, log: config.Logger.With("node", i)})
		c.urls = append(c.urls, "nats://"+layout.Listen)
	}
	defer func() {
		if err != nil {
			err = errors.CombineErrors(err, c.Shutdown(context.WithoutCancel(ctx)))
		}
	}()
	for i, m := range c.members {
		if m.lock, err = lockStore(m.layout.StoreDir); err != nil {
			return nil, err
		}
		own := config
		own.StoreDir = m.layout.StoreDir
		stored, options, err := resolveLimits(own, ClusterNodes)
		if err != nil {
			return nil, err
		}
		m.layout.MaxStoreBytes = stored
		// The smallest store decides, since each node holds a replica of each stream.
		if i == 0 || options.EventStoreBytes < c.options.EventStoreBytes {
			c.options = options
		}
	}
	c.options.Replicas = ClusterNodes
	group, groupCtx := errgroup.WithContext(ctx)
	for _, m := range c.members {
		group.Go(func() error { return m.start(groupCtx) })
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	return c, c.awaitLeader(ctx)
}

// Between these, systems give no port to who asks for any: one that is free now stays so until it is listened on.
const (
	firstFreePort = 15000
	lastFreePort  = 30000
	portTries     = 1000
)

// freePorts finds ports that nobody listens on. All are held open until all are found, so that they differ.
func freePorts(host string, count int) ([]int, error) {
	var ports []int
	for tries := 1; len(ports) < count; tries++ {
		port := firstFreePort + rand.IntN(lastFreePort-firstFreePort)
		l, err := net.Listen("tcp", net.JoinHostPort(host, strconv.Itoa(port)))
		switch {
		case err == nil:
			defer func() { _ = l.Close() }() // nobody has connected
			ports = append(ports, port)
		case tries == portTries:
			return nil, errors.Mark(errors.Wrapf(err, "find a free port on %s", host), ErrListen)
		}
	}
	return ports, nil
}

func (m *member) start(ctx context.Context) error {
	n, err := startNode(ctx, m.layout, newServerLog(m.log))
	if err != nil {
		return errors.Wrapf(err, "node %s", m.layout.ServerName)
	}
	m.node = n
	return nil
}

func (m *member) stop() error {
	if m.node != nil {
		m.node.stop()
		m.node = nil
	}
	if m.lock == nil {
		return nil
	}
	lock := m.lock
	m.lock = nil
	return lock.release()
}

// awaitLeader waits until some node leads the cluster and knows all nodes, so that a stream with three replicas can be created
// at once, and until each has the streams it had before.
func (c *Cluster) awaitLeader(ctx context.Context) error {
	return poll(ctx, "cluster: wait for a leader that knows every node", func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		led, healthy := false, true
		for _, m := range c.members {
			led = led || m.node.server.JetStreamIsLeader() && len(m.node.server.JetStreamClusterPeers()) == ClusterNodes
			healthy = healthy && m.node.healthy()
		}
		return led && healthy
	})
}

// poll asks until the answer is yes, or gives the context's error.
func poll(ctx context.Context, operation string, done func() bool) error {
	tick := time.NewTicker(clusterPollInterval)
	defer tick.Stop()
	for !done() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return errors.Wrap(ctx.Err(), operation)
		}
	}
	return nil
}

// ClientURL is what people, tools and agents connect to: all nodes, separated by commas.
func (c *Cluster) ClientURL() string { return strings.Join(c.urls, ",") }

// NodeURL is one node's address.
func (c *Cluster) NodeURL(i int) string { return c.urls[i] }

// Options are the streams' limits and replicas that fit this cluster. Whoever creates a stream MUST use them.
func (c *Cluster) Options() topology.Options { return c.options }

// Ledger connects to the ledger account on any node. Shutdown closes the connection. It gives ErrStopped.
func (c *Cluster) Ledger(opts ...nats.Option) (*nats.Conn, error) {
	return c.connect(c.ledger, opts)
}

// Mirrors connects to the ops account as the user that makes mirrors, on any node. Shutdown closes the connection. It gives
// ErrStopped.
func (c *Cluster) Mirrors(opts ...nats.Option) (*nats.Conn, error) {
	return c.connect(c.mirrors, opts)
}

func (c *Cluster) connect(u topology.User, opts []nats.Option) (*nats.Conn, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closing {
		return nil, errors.Wrapf(ErrStopped, "connect as %s", u.Name)
	}
	own := []nats.Option{
		nats.Name("catenary " + u.Name),
		nats.UserInfo(u.Name, u.Password),
		nats.MaxReconnects(-1),
		nats.ReconnectWait(reconnectWait),
		nats.ReconnectJitter(reconnectWait, reconnectWait),
		logAsyncErrors(c.log),
	}
	nc, err := nats.Connect(c.ClientURL(), append(own, opts...)...)
	if err != nil {
		return nil, errors.Wrapf(err, "connect to the cluster as %s", u.Name)
	}
	c.conns = append(slices.DeleteFunc(c.conns, (*nats.Conn).IsClosed), nc)
	return nc, nil
}

// reconnectWait suits a node that restarts in this process: it is back within a moment.
const reconnectWait = 50 * time.Millisecond

// EnsureMirrors gives the ops account a true mirror of every bucket: see [mirrors.Mirrors.Ensure].
func (c *Cluster) EnsureMirrors(ctx context.Context) error {
	ledger, err := c.Ledger()
	if err != nil {
		return err
	}
	defer ledger.Close()
	ops, err := c.Mirrors()
	if err != nil {
		return err
	}
	defer ops.Close()
	m, err := mirrors.New(ledger, ops, c.options, c.log)
	if err != nil {
		return err
	}
	return m.Ensure(ctx)
}

// Leader says which running node leads a stream of the ledger account, if one does.
func (c *Cluster) Leader(stream string) (int, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	i := slices.IndexFunc(c.members, func(m *member) bool {
		return m.node != nil && m.node.server.JetStreamIsStreamLeader(topology.AccountLedger, stream)
	})
	return i, i >= 0
}

// StopNode stops one node and keeps its store. It gives ErrNode.
func (c *Cluster) StopNode(i int) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if i < 0 || i >= len(c.members) || c.members[i].node == nil {
		return errors.Wrapf(ErrNode, "stop node %d", i)
	}
	return c.members[i].stop()
}

// StartNode starts a stopped node on its store, its ports and its name, and waits until it has caught up with the others. It needs
// at least one of them running. It gives ErrNode, ErrStopped and the errors of Start.
func (c *Cluster) StartNode(ctx context.Context, i int) error {
	n, err := c.startNode(ctx, i)
	if err != nil {
		return err
	}
	return poll(ctx, fmt.Sprintf("cluster: wait for node %d", i), n.healthy)
}

func (c *Cluster) startNode(ctx context.Context, i int) (*node, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.closing:
		return nil, errors.Wrapf(ErrStopped, "start node %d", i)
	case i < 0 || i >= len(c.members) || c.members[i].node != nil:
		return nil, errors.Wrapf(ErrNode, "start node %d", i)
	}
	m := c.members[i]
	lock, err := lockStore(m.layout.StoreDir)
	if err != nil {
		return nil, err
	}
	m.lock = lock
	if err := m.start(ctx); err != nil {
		return nil, errors.CombineErrors(err, m.stop())
	}
	return m.node, nil
}

// Shutdown closes the connections it gave out and stops all nodes. It may be called more than once. When the context ends
// first, the stopping goes on.
func (c *Cluster) Shutdown(ctx context.Context) error {
	stopped := make(chan error, 1)
	go func() { stopped <- c.stop() }()
	select {
	case err := <-stopped:
		return err
	case <-ctx.Done():
		return errors.Wrap(ctx.Err(), "stop the cluster")
	}
}

func (c *Cluster) stop() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closing = true
	for _, nc := range c.conns {
		nc.Close()
	}
	c.conns = nil
	var group errgroup.Group
	for _, m := range c.members {
		group.Go(m.stop)
	}
	return group.Wait()
}
