package embedded_test

import (
	"bufio"
	"context"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/errors"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nkeys"
	"go.uber.org/goleak"

	"catenary/embedded"
	"catenary/es/estest"
	"catenary/internal/topology"
)

// soon is far above what starting and stopping take (some tens of milliseconds), since the machine may be busy.
const soon = 5 * time.Second

func TestStartAndStop(t *testing.T) {
	ignore := goleak.IgnoreCurrent()
	dir := t.TempDir()
	began := time.Now()
	s := start(t, embedded.Config{StoreDir: dir})
	started := time.Now()
	_, js := ledgerOf(t, s)
	check(t, s.EnsureMirrors(testContext(t)))
	put(t, js, topology.BucketAssignments, "n1.web", 10)
	mirrors, err := s.Mirrors()
	check(t, err)
	// A mirror made anew leaves a consumer behind, which the server removes; that must not outlive it.
	changed := topology.Mirror(topology.BucketAssignments, s.Options())
	changed.MaxBytes /= 2
	_, err = jetstreamOf(t, mirrors).UpdateStream(testContext(t), changed)
	check(t, err)
	check(t, s.EnsureMirrors(testContext(t)))

	stopping := time.Now()
	stop(t, s)
	stopped := time.Now()
	t.Logf("started in %v, stopped in %v", started.Sub(began), stopped.Sub(stopping))
	if took := started.Sub(began); took > soon {
		t.Errorf("start took %v", took)
	}
	if took := stopped.Sub(stopping); took > soon {
		t.Errorf("stop took %v", took)
	}
	s.WaitForShutdown()
	stop(t, s) // a second time does nothing
	if !mirrors.IsClosed() {
		t.Error("a connection outlived its server")
	}
	if _, err := s.Ledger(); !errors.Is(err, embedded.ErrStopped) {
		t.Errorf("connection of a stopped server: got error %v, want ErrStopped", err)
	}
	// Nobody listens any more: that would be a goroutine. The port may be another process's by now.
	check(t, estest.Leaks(ignore))

	// A stream that is being made when the server stops is closed with it.
	making, err := embedded.Start(testContext(t), embedded.Config{StoreDir: t.TempDir(), Logger: logTo(t)})
	check(t, err)
	nc, err := making.Ledger()
	check(t, err)
	for n := range 200 {
		check(t, nc.Publish(fmt.Sprintf("$JS.API.STREAM.CREATE.S%d", n), fmt.Appendf(nil, `{"name":"S%d","subjects":["s.%d"],"max_bytes":1024,"storage":"file"}`, n, n)))
	}
	check(t, nc.Flush())
	stop(t, making)
	check(t, estest.Leaks(ignore))

	// A mirror asks its origin again a moment after a start; a stop in that moment leaves nothing behind either.
	again, err := embedded.Start(testContext(t), embedded.Config{StoreDir: dir, Logger: logTo(t)})
	check(t, err)
	stop(t, again)
	check(t, estest.Leaks(ignore))
}

func TestStoreIsLocked(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	first := start(t, embedded.Config{StoreDir: dir})
	_, err := embedded.Start(testContext(t), embedded.Config{StoreDir: dir, Logger: logTo(t)})
	if !errors.Is(err, embedded.ErrStoreLocked) || !strings.Contains(err.Error(), dir) {
		t.Fatalf("second server over the directory: got error %v, want ErrStoreLocked that names %s", err, dir)
	}
	stop(t, first)
	start(t, embedded.Config{StoreDir: dir})
}

func TestStartFailures(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	check(t, err)
	t.Cleanup(func() { check(t, taken.Close()) })
	file := filepath.Join(t.TempDir(), "file")
	check(t, os.WriteFile(file, nil, 0o600))
	garbled := t.TempDir()
	check(t, os.WriteFile(filepath.Join(garbled, "limits.json"), []byte("{"), 0o600))
	small := t.TempDir()
	check(t, os.WriteFile(filepath.Join(small, "limits.json"), []byte(`{"max_store_bytes":1048576}`), 0o600))
	cancelled, cancel := context.WithCancel(context.Background())
	cancel()

	cases := []struct {
		name   string
		ctx    context.Context
		config embedded.Config
		want   error
		says   string
		hint   string
	}{
		{name: "port taken", config: embedded.Config{Listen: taken.Addr().String()}, want: embedded.ErrListen, says: "another program listens there"},
		{name: "address of another machine", config: embedded.Config{Listen: "192.0.2.1:0"}, want: embedded.ErrListen, says: "an address of this machine"},
		{name: "store below a file", config: embedded.Config{StoreDir: filepath.Join(file, "store")}, want: embedded.ErrStore, says: file},
		{name: "limits unreadable", config: embedded.Config{StoreDir: garbled}, want: embedded.ErrStore, says: "limits.json"},
		{name: "store too small", config: embedded.Config{MaxStoreBytes: 1 << 20}, want: embedded.ErrStore, says: "raise the store limit"},
		{name: "remembered store too small", config: embedded.Config{StoreDir: small}, want: embedded.ErrStore, says: "raise the store limit", hint: filepath.Join(small, "limits.json")},
		{name: "streams above the store", config: embedded.Config{MaxStoreBytes: 4 << 30, EventStoreBytes: 3 << 30, BucketBytes: 1 << 30}, want: embedded.ErrStore, says: "raise the store limit or lower theirs"},
		{name: "context ended", ctx: cancelled, want: context.Canceled, says: "start the server"},
		{name: "a user named like ours", config: embedded.Config{Users: []topology.User{{Name: topology.UserMirrors, Password: "x"}}}, want: embedded.ErrConfig, says: topology.UserMirrors},
		{name: "a password too long", config: embedded.Config{Users: []topology.User{{Name: "ana", Password: strings.Repeat("x", 73)}}}, want: embedded.ErrConfig, says: "ana"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			ctx := c.ctx
			if ctx == nil {
				ctx = testContext(t)
			}
			if c.config.StoreDir == "" {
				c.config.StoreDir = t.TempDir()
			}
			c.config.Logger = slog.New(slog.DiscardHandler)
			s, err := embedded.Start(ctx, c.config)
			if err == nil {
				stop(t, s)
			}
			if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.says) {
				t.Fatalf("got error %v, want %v that says %q", err, c.want, c.says)
			}
			if hints := errors.FlattenHints(err); !strings.Contains(hints, c.hint) {
				t.Errorf("it hints %q, want %q", hints, c.hint)
			}
			if errors.Is(err, embedded.ErrStore) {
				return
			}
			// What failed left nothing behind: the directory can be used.
			start(t, embedded.Config{StoreDir: c.config.StoreDir})
		})
	}
}

func TestRestartKeepsWhatWasStored(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := start(t, embedded.Config{StoreDir: dir})
	_, js := ledgerOf(t, s)
	check(t, s.EnsureMirrors(testContext(t)))
	for i := range 3 {
		_, err := js.Publish(testContext(t), "evt.node.n1", fmt.Append(nil, i))
		check(t, err)
	}
	last := put(t, js, topology.BucketAssignments, "n1.web", 5)
	limits := s.Options()
	stop(t, s)

	s = start(t, embedded.Config{StoreDir: dir})
	if s.Options() != limits {
		t.Errorf("limits changed from %+v to %+v", limits, s.Options())
	}
	check(t, s.EnsureMirrors(testContext(t)))
	js = jetstreamOf(t, connectLedger(t, s))
	if got := lastSequence(t, js, topology.EventStream); got != 3 {
		t.Errorf("event stream ends at %d, want 3", got)
	}
	if got := lastSequence(t, jetstreamOf(t, dial(t, s.ClientURL())), topology.BucketStream(topology.BucketAssignments)); got != last {
		t.Errorf("mirror ends at %d, want %d", got, last)
	}
	// The mirror follows again.
	last = put(t, js, topology.BucketAssignments, "n1.web", 1)
	awaitMirror(t, s, topology.BucketAssignments, last)
}

// victimStore is the environment variable that makes the test binary a process to be killed.
const victimStore = "CATENARY_TEST_VICTIM_STORE"

// runVictim appends events until it is killed and says how many were acknowledged.
func runVictim(dir string) error {
	ctx := context.Background()
	s, err := embedded.Start(ctx, embedded.Config{StoreDir: dir, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	nc, err := s.Ledger()
	if err != nil {
		return err
	}
	js, err := jetstream.New(nc)
	if err != nil {
		return err
	}
	if _, err := js.CreateStream(ctx, topology.Events(s.Options())); err != nil {
		return err
	}
	for {
		ack, err := js.Publish(ctx, "evt.node.n1", []byte("x"))
		if err != nil {
			return err
		}
		fmt.Println(ack.Sequence)
	}
}

func TestStartsAfterBeingKilled(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	self, err := os.Executable()
	check(t, err)
	victim := exec.CommandContext(testContext(t), self)
	victim.Env = append(os.Environ(), victimStore+"="+dir)
	victim.Stderr = t.Output()
	out, err := victim.StdoutPipe()
	check(t, err)
	check(t, victim.Start())
	var acked uint64
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		acked, err = strconv.ParseUint(lines.Text(), 10, 64)
		check(t, err)
		if acked == 50 {
			check(t, victim.Process.Signal(syscall.SIGKILL))
		}
	}
	if err := victim.Wait(); err == nil {
		t.Fatal("the process ended by itself")
	}
	if acked < 50 {
		t.Fatalf("the process acknowledged %d events only", acked)
	}
	s := start(t, embedded.Config{StoreDir: dir})
	if got := lastSequence(t, jetstreamOf(t, connectLedger(t, s)), topology.EventStream); got < acked {
		t.Errorf("event stream ends at %d, but %d were acknowledged", got, acked)
	}
}

func TestWhoMayConnect(t *testing.T) {
	t.Parallel()
	key, err := nkeys.CreateUser()
	check(t, err)
	public, err := key.PublicKey()
	check(t, err)
	users := []topology.User{{Name: `an"a\`, Password: `p"w\ $x`}, {NKey: public}}
	s := start(t, embedded.Config{Users: users})
	if s.CredentialsPath() != "" {
		t.Errorf("credentials on loopback: %s", s.CredentialsPath())
	}
	actors := actorSpy(t, s)
	sign := func(nonce []byte) ([]byte, error) { return key.Sign(nonce) }
	for _, c := range []struct {
		want string
		opts []nats.Option
	}{
		{want: topology.UserOperator},
		{want: `an"a\`, opts: []nats.Option{nats.UserInfo(users[0].Name, users[0].Password)}},
		{want: public, opts: []nats.Option{nats.Nkey(public, sign)}},
	} {
		if got := actors(dial(t, s.ClientURL(), c.opts...)); got != c.want {
			t.Errorf("actor is %q, want %q", got, c.want)
		}
	}
	for name, opts := range map[string][]nats.Option{
		"wrong password": {nats.UserInfo(users[0].Name, "other")},
		"ledger":         {nats.UserInfo(topology.UserLedger, "")},
		"mirrors":        {nats.UserInfo(topology.UserMirrors, "")},
	} {
		if nc, err := nats.Connect(s.ClientURL(), opts...); err == nil {
			nc.Close()
			t.Errorf("%s: connected", name)
		}
	}
}

// A host that is not spelled as loopback counts as reachable by others, even if it resolves to loopback today.
func TestBeyondLoopbackNobodyIsAnonymous(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	const listen = "LOCALHOST:0"
	s := start(t, embedded.Config{StoreDir: dir, Listen: listen})
	if nc, err := nats.Connect(s.ClientURL()); err == nil {
		nc.Close()
		t.Fatal("connected without credentials")
	}
	info, err := os.Stat(s.CredentialsPath())
	check(t, err)
	if info.Mode() != fs.FileMode(0o600) {
		t.Errorf("mode of the credentials is %v, want 0600", info.Mode())
	}
	c, err := embedded.ReadCredentials(s.CredentialsPath())
	check(t, err)
	if got := actorSpy(t, s)(dial(t, s.ClientURL(), nats.UserInfo(c.User, c.Password))); got != topology.UserOperator {
		t.Errorf("actor is %q, want %q", got, topology.UserOperator)
	}
	stop(t, s)
	// They are made once.
	s = start(t, embedded.Config{StoreDir: dir, Listen: listen})
	dial(t, s.ClientURL(), nats.UserInfo(c.User, c.Password))
}

func TestShutdownGivesUpWaiting(t *testing.T) {
	t.Parallel()
	s := start(t, embedded.Config{})
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	// The stopping itself goes on; whichever is first wins here.
	if err := s.Shutdown(ended); err != nil && !errors.Is(err, context.Canceled) {
		t.Errorf("got error %v, want none or the context's", err)
	}
	s.WaitForShutdown()
}

func TestServerLogsThroughSlog(t *testing.T) {
	t.Parallel()
	var out estest.Log
	s := start(t, embedded.Config{Logger: out.Logger(slog.LevelInfo)})
	nc := dial(t, s.ClientURL())
	check(t, nc.Publish("$JS.API.STREAM.DELETE.KV_x", nil))
	check(t, nc.Flush())
	stop(t, s)
	for _, want := range []string{`level=INFO msg="Server is ready"`, `level=ERROR`, "Publish Violation", "component=nats-server"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("log lacks %q", want)
		}
	}
	for _, unwanted := range []string{"level=DEBUG", "Plaintext passwords", "level=WARN"} {
		if strings.Contains(out.String(), unwanted) {
			t.Errorf("log has %q:\n%s", unwanted, out.String())
		}
	}
}
