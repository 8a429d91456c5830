package main

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/cockroachdb/errors"
	"github.com/nats-io/nats.go"

	"catenary/integration/fault/schedule"
	"catenary/internal/failpoint"
	"catenary/internal/natsconn"
	"catenary/internal/topology"
)

const (
	// storeBytes is what each server may store: enough that the limits of the streams fit into it.
	storeBytes = 4_000_000_000
	// diskBytes is the size of the disk that is filled.
	diskBytes = "160m"
	// leaseTTL is that of the engines.
	leaseTTL = time.Second
	// readyPatience bounds a start.
	readyPatience = 60 * time.Second
	// reconnectWait is how long a sender waits before it connects again.
	reconnectWait = 20 * time.Millisecond
)

// Words that processes say.
const (
	wordServer       = "Server is ready"
	wordWriter       = "commands are taken"
	wordProjector    = "queries are answered"
	wordEngine       = "following the stream"
	wordWalks        = "walking"
	wordTold         = "is told"
	wordContradicted = "the event stream is not the one that was recorded"
)

// rig is a whole chain in processes.
type rig struct {
	dir      string
	binaries string
	shape    schedule.Shape
	planted  failpoint.Bug
	mounted  bool

	servers   []*server
	processes map[string]*process
	lines     map[string][]*line // one to each server
	routes    map[[2]int]*line   // from one server to another
	people    nats.Option
	operator  nats.Option
	yesterday string // copies of files as they were at the start
}

// server is one nats-server.
type server struct {
	*process
	n               int
	client, cluster string
	store           string
}

// newRig configures a chain in a directory, and starts it.
func newRig(ctx context.Context, binaries, dir string, shape schedule.Shape, planted failpoint.Bug) (*rig, error) {
	r := &rig{
		dir: dir, binaries: binaries, shape: shape, planted: planted, processes: map[string]*process{}, lines: map[string][]*line{}, routes: map[[2]int]*line{},
		yesterday: filepath.Join(dir, "yesterday"),
	}
	err := r.configure()
	if err == nil {
		err = r.startServers(ctx)
	}
	if err == nil {
		err = r.startParts(ctx)
	}
	if err != nil {
		return nil, errors.CombineErrors(err, r.close())
	}
	return r, nil
}

// configure writes the configuration of everything.
func (r *rig) configure() error {
	if err := os.MkdirAll(filepath.Join(r.dir, "data"), 0o700); err != nil {
		return errors.Wrap(err, "make a directory")
	}
	if r.shape.Disk {
		err := syscall.Mount("tmpfs", filepath.Join(r.dir, "data"), "tmpfs", 0, "size="+diskBytes)
		if err != nil && !errors.Is(err, syscall.EPERM) {
			return errors.Wrap(err, "mount a small disk")
		}
		r.mounted = err == nil
	}
	args := []string{"configure", r.dir, "--listen", "127.0.0.1:4222", "--store-bytes", fmt.Sprint(storeBytes), "--durability", "interval", "--person", "sender"}
	for _, node := range agentNodes() {
		args = append(args, "--agent", node)
	}
	if out, err := exec.Command(filepath.Join(r.binaries, "catenary"), args...).CombinedOutput(); err != nil {
		return errors.Wrapf(err, "configure: %s", out)
	}
	text, err := os.ReadFile(filepath.Join(r.dir, "nats-server.conf"))
	if err != nil {
		return errors.Wrap(err, "read the configuration")
	}
	if r.people, err = r.user("sender.env"); err != nil {
		return err
	}
	if r.operator, err = r.user("operator.env"); err != nil {
		return err
	}
	for n := range r.shape.Servers {
		s := &server{n: n, store: filepath.Join(r.dir, "data", fmt.Sprint(n))}
		if s.client, err = freeAddress(); err == nil {
			s.cluster, err = freeAddress()
		}
		if err != nil {
			return err
		}
		r.servers = append(r.servers, s)
	}
	for _, s := range r.servers {
		own, err := r.serverConfig(string(text), s)
		if err == nil {
			err = os.WriteFile(r.confOf(s), []byte(own), 0o600)
		}
		if err != nil {
			return errors.Wrap(err, "write the configuration")
		}
	}
	settings, err := os.ReadFile(filepath.Join(r.dir, "catenary.yaml"))
	if err != nil {
		return errors.Wrap(err, "read the settings")
	}
	direct := strings.Replace(string(settings), "nats://127.0.0.1:4222", r.direct(), 1)
	return errors.Wrap(os.WriteFile(r.directConfig(), []byte(direct), 0o600), "write the settings")
}

// directConfig is where the settings stand that lead to the servers without a line.
func (r *rig) directConfig() string { return filepath.Join(r.dir, "direct.yaml") }

func (r *rig) confOf(s *server) string {
	return filepath.Join(r.dir, fmt.Sprintf("nats-server-%d.conf", s.n))
}

// serverConfig makes of the configuration of one server that of one of several.
func (r *rig) serverConfig(text string, s *server) (string, error) {
	text = strings.Replace(text, `server_name: "catenary"`, fmt.Sprintf(`server_name: "catenary-%d"`, s.n), 1)
	text = strings.Replace(text, `listen: "127.0.0.1:4222"`, fmt.Sprintf("listen: %q", s.client), 1)
	text = regexp.MustCompile(`store_dir: ".*"`).ReplaceAllString(text, fmt.Sprintf("store_dir: %q", s.store))
	if r.shape.Servers == 1 {
		return text, nil
	}
	var routes []string
	for _, other := range r.servers {
		if other == s {
			continue
		}
		l, err := newLine(other.cluster)
		if err != nil {
			return "", err
		}
		r.routes[[2]int{s.n, other.n}] = l
		routes = append(routes, fmt.Sprintf("%q", "nats://"+l.address()))
	}
	// Servers and clients find each other through lines only: what is told of other addresses leads nowhere.
	return text + fmt.Sprintf("cluster {\n  name: catenary\n  listen: %q\n  advertise: \"127.0.0.1:9\"\n  no_advertise: true\n  pool_size: -1\n  routes: [%s]\n}\n", s.cluster, strings.Join(routes, ", ")), nil
}

// user reads a person's credentials.
func (r *rig) user(file string) (nats.Option, error) {
	env, err := readEnv(filepath.Join(r.dir, file))
	return nats.UserInfo(env["NATS_USER"], env["NATS_PASSWORD"]), err
}

func readEnv(path string) (map[string]string, error) {
	text, err := os.ReadFile(path)
	found := map[string]string{}
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		found[name] = value
	}
	return found, errors.Wrap(err, "credentials")
}

// agentNodes are the nodes that have agents, in the order of the agents.
func agentNodes() []string { return []string{"a1", "a2"} }

// add makes a process known. Its log is a file of its own.
func (r *rig) add(name, program string, words []string, args, env []string) (*process, error) {
	log, err := os.OpenFile(filepath.Join(r.dir, name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, errors.Wrap(err, "make a log")
	}
	p := &process{name: name, path: filepath.Join(r.binaries, program), args: args, log: log, words: words, dir: r.dir}
	p.env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + r.dir, "TMPDIR=" + os.TempDir(), "TZ=UTC", "NO_COLOR=1"}, env...)
	if r.planted != "" {
		p.env = append(p.env, failpoint.EnvPlanted+"="+string(r.planted))
	}
	p.supervise()
	r.processes[name] = p
	return p, nil
}

func (r *rig) startServers(ctx context.Context) error {
	names := schedule.Servers(r.shape.Servers)
	for i, s := range r.servers {
		var err error
		if s.process, err = r.add(names[i], "nats-server", []string{wordServer}, []string{"-c", r.confOf(s)}, nil); err != nil {
			return err
		}
		s.start(nil)
	}
	for _, s := range r.servers {
		if err := r.await(ctx, s.name+" to be ready", readyPatience, func() bool { _, ok := s.saidSince(wordServer, time.Time{}); return ok }); err != nil {
			return err
		}
	}
	return nil
}

// url gives where a process finds the servers: through lines of its own.
func (r *rig) url(name string) (string, error) {
	var urls []string
	for _, s := range r.servers {
		l, err := newLine(s.client)
		if err != nil {
			return "", err
		}
		r.lines[name] = append(r.lines[name], l)
		urls = append(urls, "nats://"+l.address())
	}
	return strings.Join(urls, ","), nil
}

// startParts starts all but the servers, the first writer before the others: it makes the streams.
func (r *rig) startParts(ctx context.Context) error {
	settings := []string{"--config", filepath.Join(r.dir, "catenary.yaml"), "--replicas", fmt.Sprint(r.shape.Servers)}
	part := func(name, program string, words []string, more ...string) (*process, error) {
		url, err := r.url(name)
		if err != nil {
			return nil, err
		}
		env := []string{failpoint.EnvClock + "=" + r.clockOf(name)}
		return r.add(name, program, words, slices.Concat(settings, []string{"--server", url}, more), env)
	}
	for i, name := range schedule.Writers() {
		w, err := part(name, "writer", []string{wordWriter, wordContradicted}, "--snapshot-every", fmt.Sprint(snapshotEvery))
		if err != nil {
			return err
		}
		w.start(nil)
		if i > 0 {
			continue
		}
		if err := r.await(ctx, "the writer", readyPatience, func() bool { _, ok := w.saidSince(wordWriter, time.Time{}); return ok }); err != nil {
			return err
		}
	}
	p, err := part(schedule.Projector, "projector", []string{wordProjector}, "--audit", r.auditFile(), "--checkpoint-key", filepath.Join(r.dir, "checkpoint.key"), "--checkpoint-every", "1s")
	if err != nil {
		return err
	}
	p.start(nil)
	for _, name := range schedule.Engines() {
		e, err := part(name, "engine", []string{wordEngine, wordWalks}, "--lease-ttl", leaseTTL.String())
		if err != nil {
			return err
		}
		e.start(nil)
	}
	for i, name := range schedule.Agents() {
		if err := r.addAgent(name, agentNodes()[i]); err != nil {
			return err
		}
	}
	return r.await(ctx, "the projector", readyPatience, func() bool { _, ok := p.saidSince(wordProjector, time.Time{}); return ok })
}

// snapshotEvery lets writers make snapshots within a run, so that they start from them, and are struck while they do.
const snapshotEvery = 500

func (r *rig) auditFile() string           { return filepath.Join(r.dir, "audit", "audit.db") }
func (r *rig) clockOf(name string) string  { return filepath.Join(r.dir, name+".clock") }
func (r *rig) stateOf(agent string) string { return filepath.Join(r.dir, agent, "state") }

// addAgent starts an agent whose driver notes every instruction that it has done.
func (r *rig) addAgent(name, node string) error {
	url, err := r.url(name)
	if err != nil {
		return err
	}
	env, err := readEnv(filepath.Join(r.dir, "agent."+node+".env"))
	if err != nil {
		return err
	}
	apps := filepath.Join(r.dir, name, "apps")
	for _, dir := range []string{apps, filepath.Dir(r.auditFile())} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return errors.Wrap(err, "make a directory")
		}
	}
	shell := func(script string) string { return fmt.Sprintf("[sh, -c, %q]", script) }
	// It takes a while, so that agents are killed while it is at work.
	const note = `echo "$CATENARY_SOURCE" >> "$CATENARY_MODULE.done" && sleep 0.05 && `
	text := fmt.Sprintf("node: %s\nstate: %s\nserver: %q\nevery: 300ms\nobserve: 2s\ndrivers:\n  - kind: exec\n    name: script\n    dir: %s\n    apply: %s\n    remove: %s\n    observe: %s\n",
		node, r.stateOf(name), url, apps,
		shell(note+`printf %s "$CATENARY_VERSION" > "$CATENARY_MODULE.new" && mv "$CATENARY_MODULE.new" "$CATENARY_MODULE.runs"`),
		shell(note+`rm -f "$CATENARY_MODULE.runs"`),
		shell(`test ! -e "$CATENARY_MODULE.runs" || cat "$CATENARY_MODULE.runs"`))
	config := filepath.Join(r.dir, name+".yaml")
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		return errors.Wrap(err, "write an agent's configuration")
	}
	p, err := r.add(name, "agent", []string{wordTold}, []string{"--config", config}, []string{"NATS_USER=" + env["NATS_USER"], "NATS_PASSWORD=" + env["NATS_PASSWORD"]})
	if err != nil {
		return err
	}
	p.start(nil)
	return nil
}

// senders connects as a person, through a line.
func (r *rig) senders() (*nats.Conn, error) {
	url := ""
	if len(r.lines[schedule.Clients]) == 0 {
		if _, err := r.url(schedule.Clients); err != nil {
			return nil, err
		}
	}
	for _, l := range r.lines[schedule.Clients] {
		url += ",nats://" + l.address()
	}
	return r.connect(url[1:], r.people)
}

// connect connects as somebody, and goes on trying for ever.
func (r *rig) connect(url string, who nats.Option) (*nats.Conn, error) {
	nc, err := nats.Connect(url, who, nats.MaxReconnects(-1), nats.ReconnectWait(reconnectWait), nats.ReconnectJitter(reconnectWait, reconnectWait), nats.RetryOnFailedConnect(true),
		nats.IgnoreDiscoveredServers(), nats.Timeout(time.Second), nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}))
	return nc, errors.Wrap(err, "connect")
}

// direct is the servers' own addresses.
func (r *rig) direct() string {
	var urls []string
	for _, s := range r.servers {
		urls = append(urls, "nats://"+s.client)
	}
	return strings.Join(urls, ",")
}

// asOperator connects as the operator, without a line.
func (r *rig) asOperator() (*nats.Conn, error) { return r.connect(r.direct(), r.operator) }

// asLedger connects with the ledger's own rights, without a line.
func (r *rig) asLedger(ctx context.Context) (*natsconn.Conn, error) {
	return natsconn.Connect(ctx, natsconn.Config{Server: r.direct(), NKey: filepath.Join(r.dir, "ledger.nk"), Name: "fault", Logger: slog.New(slog.DiscardHandler)})
}

// streamDir is where a server keeps a stream.
func (s *server) streamDir(account, stream string) string {
	return filepath.Join(s.store, "jetstream", account, "streams", stream)
}

// events is where a server keeps the event stream.
func (s *server) events() string { return s.streamDir(topology.AccountLedger, topology.EventStream) }

// await waits until it is so.
func (r *rig) await(ctx context.Context, what string, patience time.Duration, so func() bool) error {
	limit := time.Now().Add(patience)
	for !so() {
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case time.Now().After(limit):
			return errors.Newf("waited %s in vain for %s", patience, what)
		}
		time.Sleep(10 * time.Millisecond)
	}
	return nil
}

// close ends everything.
func (r *rig) close() error {
	var failure error
	for _, name := range slices.Sorted(maps.Keys(r.processes)) {
		failure = errors.CombineErrors(failure, r.processes[name].close())
	}
	for _, list := range r.lines {
		for _, l := range list {
			l.close()
		}
	}
	for _, l := range r.routes {
		l.close()
	}
	if r.mounted {
		failure = errors.CombineErrors(failure, errors.Wrap(syscall.Unmount(filepath.Join(r.dir, "data"), 0), "unmount the small disk"))
	}
	return failure
}

// remount sets what may be done with the small disk.
func (r *rig) remount(flags uintptr) error {
	err := syscall.Mount("tmpfs", filepath.Join(r.dir, "data"), "", syscall.MS_REMOUNT|flags, "size="+diskBytes)
	return errors.Wrap(err, "change the small disk")
}

// Between these, systems give no port to who asks for any: one that is free now stays so until it is used.
const firstFreePort, lastFreePort, portTries = 15000, 30000, 1000

func freeAddress() (string, error) {
	for tries := 1; ; tries++ {
		address := net.JoinHostPort("127.0.0.1", strconv.Itoa(firstFreePort+rand.IntN(lastFreePort-firstFreePort)))
		l, err := net.Listen("tcp", address)
		switch {
		case err == nil:
			return address, errors.Wrap(l.Close(), "find a free port")
		case tries == portTries:
			return "", errors.Wrap(err, "find a free port")
		}
	}
}

// build builds all programs, able to fail.
func build(ctx context.Context, into string) error {
	for _, args := range [][]string{
		{"build", "-tags", "failpoints", "-o", into + string(filepath.Separator), "./cmd/catenary", "./cmd/writer", "./cmd/projector", "./cmd/engine", "./cmd/agent"},
		{"build", "-o", filepath.Join(into, "nats-server"), "github.com/nats-io/nats-server/v2"},
	} {
		cmd := exec.CommandContext(ctx, "go", args...)
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			return errors.Wrapf(err, "build the programs: %s", bytes.TrimSpace(out))
		}
	}
	return nil
}
