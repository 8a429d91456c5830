package embedded

import (
	"log/slog"
	"net"
	"net/netip"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/cockroachdb/errors"

	"catenary/internal/topology"
)

// Errors that a caller acts on. Their messages name the operation, the object and what to do.
var (
	// ErrConfig is a configuration that can't work.
	ErrConfig = errors.New("embedded server: configuration is not valid")
	// ErrListen means that the address can't be listened on: it is taken, or not one of this machine's.
	ErrListen = errors.New("embedded server: can't listen")
	// ErrStore means that the store directory can't be used: not writable, or its limits don't fit.
	ErrStore = errors.New("embedded server: can't use the store directory")
	// ErrStoreLocked means that another running process holds the store directory.
	ErrStoreLocked = errors.New("embedded server: the store directory is in use")
	// ErrStart is any other failure of the server to start; the message is the server's.
	ErrStart = errors.New("embedded server: did not start")
	// ErrStopped is given by a server that was shut down.
	ErrStopped = errors.New("embedded server: is shut down")
)

// Durability says what an acknowledged event survives.
type Durability string

const (
	// DurabilityFsync syncs every event to disk before it is acknowledged: it survives a power loss. It is the default.
	DurabilityFsync Durability = "fsync"
	// DurabilityInterval syncs every two minutes: an acknowledged event survives a killed process, but a power loss may take the
	// last two minutes.
	DurabilityInterval Durability = "interval"
)

// DefaultListen takes a free port on loopback.
const DefaultListen = "127.0.0.1:0"

// Config configures a server.
type Config struct {
	// StoreDir keeps everything the server stores. It is created when it does not exist. Required.
	StoreDir string
	// Listen is host:port for clients. Port 0 takes a free one. Default: DefaultListen.
	Listen string
	// Durability defaults to DurabilityFsync.
	Durability Durability
	// MaxStoreBytes bounds the store. By default it is three quarters of the free disk space, measured at the first start
	// over a directory and kept there, so that the streams' limits don't change with every start.
	MaxStoreBytes int64
	// EventStoreBytes and BucketBytes bound the event stream and each bucket. By default they get their share of the store.
	EventStoreBytes int64
	BucketBytes     int64
	// Users are people and tools of the ops account besides the operator.
	Users []topology.User
	// Restoring says that a backup is being restored into the store: [BeginRestore] has marked it.
	Restoring bool
	// Logger receives the server's log. Default: slog.Default().
	Logger *slog.Logger
}

// address is a parsed Listen.
type address struct {
	host     string
	port     int // 0: any free one
	loopback bool
}

func (a address) String() string { return net.JoinHostPort(a.host, strconv.Itoa(a.port)) }

// serverListen is the address as nats-server spells it: there, port -1 is any free one.
func (a address) serverListen() string {
	if a.port == 0 {
		return net.JoinHostPort(a.host, "-1")
	}
	return a.String()
}

// withDefaults completes and checks a configuration. It gives ErrConfig.
func (c Config) withDefaults() (Config, address, error) {
	if c.StoreDir == "" {
		return c, address{}, errors.Wrap(ErrConfig, "no store directory given")
	}
	dir, err := filepath.Abs(c.StoreDir)
	if err != nil {
		return c, address{}, errors.Mark(errors.Wrapf(err, "store directory %s", c.StoreDir), ErrConfig)
	}
	c.StoreDir = dir
	if c.Listen == "" {
		c.Listen = DefaultListen
	}
	if c.Durability == "" {
		c.Durability = DurabilityFsync
	}
	if c.Durability != DurabilityFsync && c.Durability != DurabilityInterval {
		return c, address{}, errors.Wrapf(ErrConfig, "durability %q: it is %q or %q", c.Durability, DurabilityFsync, DurabilityInterval)
	}
	for name, v := range map[string]int64{"store": c.MaxStoreBytes, "event stream": c.EventStoreBytes, "bucket": c.BucketBytes} {
		if v < 0 {
			return c, address{}, errors.Wrapf(ErrConfig, "limit of the %s is %d bytes: it must be positive, or 0 for the default", name, v)
		}
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	a, err := parseListen(c.Listen)
	return c, a, err
}

func parseListen(listen string) (address, error) {
	host, portText, err := net.SplitHostPort(listen)
	if err != nil {
		return address{}, errors.Wrapf(ErrConfig, "listen address %q is not HOST:PORT, such as 127.0.0.1:4222", listen)
	}
	port, err := strconv.ParseUint(portText, 10, 16)
	if err != nil {
		return address{}, errors.Wrapf(ErrConfig, "listen address %q: port %q is not a number from 0 (any free one) to 65535", listen, portText)
	}
	a := address{host: host, port: int(port)}
	if a.host == "" {
		a.host = "0.0.0.0"
	}
	a.loopback = isLoopback(a.host)
	if !a.loopback && strings.ContainsAny(a.host, " /\\\"") {
		return address{}, errors.Wrapf(ErrConfig, "listen address %q: %q is not a host", listen, a.host)
	}
	return a, nil
}

// isLoopback is true only for what can't be reached from elsewhere by its spelling; a host name that resolves to loopback
// today may resolve elsewhere tomorrow.
func isLoopback(host string) bool {
	if host == "localhost" {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.IsLoopback()
}
