package natsconn_test

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/errors"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/goleak"

	"catenary/embedded"
	"catenary/internal/natsconn"
	"catenary/internal/topology"
)

const patience = 30 * time.Second

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func testContext(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("%+v", err)
	}
}

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

func startServer(t *testing.T, c embedded.Config) *embedded.Server {
	t.Helper()
	if c.StoreDir == "" {
		c.StoreDir = t.TempDir()
	}
	c.Logger = quiet()
	s, err := embedded.Start(testContext(t), c)
	check(t, err)
	t.Cleanup(func() { stopServer(t, s) })
	return s
}

func stopServer(t *testing.T, s *embedded.Server) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	check(t, s.Shutdown(ctx))
}

func connect(t *testing.T, c natsconn.Config) *natsconn.Conn {
	t.Helper()
	c.Logger = quiet()
	nc, err := natsconn.Connect(testContext(t), c)
	check(t, err)
	t.Cleanup(nc.Close)
	return nc
}

func within(t *testing.T, what string, c <-chan struct{}) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(patience):
		t.Fatalf("waited in vain: %s", what)
	}
}

// TestWhereTheBusIs gives settings as flags, environment and context files, and looks at whom the server sees where.
func TestWhereTheBusIs(t *testing.T) {
	people := []topology.User{{Name: "ana", Password: "a"}, {Name: "bob", Password: "b"}}
	one := startServer(t, embedded.Config{Users: people}).ClientURL()
	two := startServer(t, embedded.Config{Users: people}).ClientURL()

	contexts := func(t *testing.T, selected string) {
		dir := t.TempDir()
		t.Setenv("XDG_CONFIG_HOME", dir)
		check(t, os.MkdirAll(filepath.Join(dir, "nats", "context"), 0o700))
		for name, text := range map[string]string{
			"ana": fmt.Sprintf(`{"url":%q,"user":"ana","password":"a"}`, one),
			"bob": fmt.Sprintf(`{"url":%q,"user":"bob","password":"b"}`, two),
		} {
			check(t, os.WriteFile(filepath.Join(dir, "nats", "context", name+".json"), []byte(text), 0o600))
		}
		if selected != "" {
			check(t, os.WriteFile(filepath.Join(dir, "nats", "context.txt"), []byte(selected+"\n"), 0o600))
		}
	}
	cases := []struct {
		name     string
		selected string
		flags    natsconn.Config
		env      map[string]string
		server   string
		user     string
	}{
		{name: "server by flag", flags: natsconn.Config{Server: one}, server: one},
		{name: "server by environment", env: map[string]string{"NATS_URL": two}, server: two},
		{name: "flag before environment", flags: natsconn.Config{Server: one}, env: map[string]string{"NATS_URL": two}, server: one},
		{name: "user by environment", env: map[string]string{"NATS_URL": one, "NATS_USER": "bob", "NATS_PASSWORD": "b"}, server: one, user: "bob"},
		{name: "user in the URL", flags: natsconn.Config{Server: strings.Replace(one, "nats://", "nats://ana:a@", 1)}, server: one},
		{name: "several servers, the first is away", flags: natsconn.Config{Server: closedPort(t) + ", " + two}, server: two},
		{name: "context by flag", flags: natsconn.Config{Context: "ana"}, server: one, user: "ana"},
		{name: "context by environment", env: map[string]string{"NATS_CONTEXT": "bob"}, server: two, user: "bob"},
		{name: "selected context", selected: "bob", server: two, user: "bob"},
		{name: "named before selected context", selected: "bob", flags: natsconn.Config{Context: "ana"}, server: one, user: "ana"},
		{name: "a server is not given the selected context's credentials", selected: "bob", flags: natsconn.Config{Server: one}, server: one},
		{name: "server over a named context", flags: natsconn.Config{Context: "ana", Server: two}, server: two, user: "ana"},
		{name: "user over a named context", flags: natsconn.Config{Context: "ana", User: "bob", Password: "b"}, server: one, user: "bob"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			contexts(t, c.selected)
			nc := connect(t, c.flags.WithEnvironment(func(name string) string { return c.env[name] }))
			if !strings.HasSuffix(nc.ConnectedAddr(), strings.TrimPrefix(c.server, "nats://")) {
				t.Errorf("connected to %s, want %s", nc.ConnectedAddr(), c.server)
			}
			if nc.Opts.User != c.user {
				t.Errorf("connected as %q, want %q", nc.Opts.User, c.user)
			}
		})
	}
}

func closedPort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	check(t, err)
	check(t, l.Close())
	return "nats://" + l.Addr().String()
}

func TestConnectFailures(t *testing.T) {
	server := startServer(t, embedded.Config{Users: []topology.User{{Name: "ana", Password: "a"}}}).ClientURL()
	closed := closedPort(t)
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	missing := filepath.Join(t.TempDir(), "missing")
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	// Somebody else's server, which speaks first and says something else.
	stranger, err := net.Listen("tcp", "127.0.0.1:0")
	check(t, err)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := stranger.Accept()
			if err != nil {
				return
			}
			_ = conn.Close() // nothing was said, so nothing can be lost
		}
	}()
	t.Cleanup(func() { check(t, stranger.Close()); <-done })

	cases := []struct {
		name   string
		ctx    context.Context
		config natsconn.Config
		want   error
		says   []string
	}{
		{name: "nobody listens", config: natsconn.Config{Server: closed}, want: natsconn.ErrUnreachable, says: []string{closed, "--server", "catenary up"}},
		{name: "no such host", config: natsconn.Config{Server: "nats://host.invalid:4222"}, want: natsconn.ErrUnreachable, says: []string{"host.invalid"}},
		{name: "not a bus", config: natsconn.Config{Server: "nats://" + stranger.Addr().String()}, want: natsconn.ErrUnreachable, says: []string{stranger.Addr().String()}},
		{name: "wrong password", config: natsconn.Config{Server: server, User: "ana", Password: "x"}, want: natsconn.ErrDenied, says: []string{server, "--creds"}},
		{name: "unknown context", config: natsconn.Config{Context: "nowhere"}, want: natsconn.ErrConfig, says: []string{"nowhere", "nats context ls"}},
		{name: "missing nkey", config: natsconn.Config{Server: server, NKey: missing}, want: natsconn.ErrConfig, says: []string{missing}},
		{name: "missing credentials", config: natsconn.Config{Server: server, Creds: missing}, want: natsconn.ErrConfig, says: []string{missing, server}},
		{name: "missing authority", config: natsconn.Config{Server: server, CA: missing}, want: natsconn.ErrConfig, says: []string{missing, server}},
		{name: "password alone", config: natsconn.Config{Password: "x"}, want: natsconn.ErrConfig, says: []string{"without a user"}},
		{name: "two identities", config: natsconn.Config{User: "ana", Creds: missing}, want: natsconn.ErrConfig, says: []string{"more than one"}},
		{name: "certificate alone", config: natsconn.Config{Cert: missing}, want: natsconn.ErrConfig, says: []string{"needs its key"}},
		{name: "not an address", config: natsconn.Config{Server: "nats://ana:secret@b:x"}, want: natsconn.ErrConfig, says: []string{"nats://HOST:4222"}},
		{name: "context ended", ctx: ended, config: natsconn.Config{Server: server}, want: context.Canceled},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			ctx := c.ctx
			if ctx == nil {
				ctx = testContext(t)
			}
			c.config.Logger = quiet()
			nc, err := natsconn.Connect(ctx, c.config)
			if err == nil {
				nc.Close()
			}
			if !errors.Is(err, c.want) || strings.Contains(err.Error(), "secret") {
				t.Fatalf("got error %v, want %v", err, c.want)
			}
			for _, s := range c.says {
				if !strings.Contains(err.Error(), s) {
					t.Errorf("%q does not say %q", err, s)
				}
			}
		})
	}
	t.Run("the selected context is gone", func(t *testing.T) {
		dir := t.TempDir()
		t.Setenv("XDG_CONFIG_HOME", dir)
		check(t, os.MkdirAll(filepath.Join(dir, "nats"), 0o700))
		check(t, os.WriteFile(filepath.Join(dir, "nats", "context.txt"), []byte("nowhere\n"), 0o600))
		_, err := natsconn.Connect(testContext(t), natsconn.Config{Logger: quiet()})
		if !errors.Is(err, natsconn.ErrConfig) || !strings.Contains(err.Error(), "selected") || !strings.Contains(err.Error(), "nowhere") {
			t.Errorf("got error %v", err)
		}
	})
	t.Run("the password is not told", func(t *testing.T) {
		_, err := natsconn.Connect(testContext(t), natsconn.Config{Server: strings.Replace(closed, "nats://", "nats://ana:secret@", 1), Logger: quiet()})
		if !errors.Is(err, natsconn.ErrUnreachable) || strings.Contains(err.Error(), "secret") {
			t.Errorf("got error %v", err)
		}
	})
}

func TestRequest(t *testing.T) {
	t.Parallel()
	s := startServer(t, embedded.Config{})
	ledger, err := s.Ledger()
	check(t, err)
	_, err = ledger.Subscribe(topology.CommandPrefix+".>", func(m *nats.Msg) { check(t, m.Respond([]byte("done"))) })
	check(t, err)
	check(t, ledger.Flush())
	nc := connect(t, natsconn.Config{Server: s.ClientURL()})

	answer, err := natsconn.Request(testContext(t), nc, nats.NewMsg(topology.CommandSubject("node", "register")))
	check(t, err)
	if string(answer.Data) != "done" {
		t.Errorf("answered %q", answer.Data)
	}
	if _, err := natsconn.Request(testContext(t), nc, nats.NewMsg("nobody.listens")); !errors.Is(err, nats.ErrNoResponders) {
		t.Errorf("nobody listens: got error %v, want no responders", err)
	}
	// The bus alone would let this one wait until the context ends.
	denied := topology.LedgerAPIPrefix + ".CONSUMER.CREATE.KV_chain-nodes"
	if _, err := natsconn.Request(testContext(t), nc, nats.NewMsg(denied)); !errors.Is(err, natsconn.ErrDenied) || !strings.Contains(err.Error(), denied) {
		t.Errorf("denied subject: got error %v, want ErrDenied that names it", err)
	}
	ended, cancel := context.WithCancel(testContext(t))
	cancel()
	if _, err := natsconn.Request(ended, nc, nats.NewMsg(denied)); !errors.Is(err, context.Canceled) || errors.Is(err, natsconn.ErrDenied) {
		t.Errorf("ended context: got error %v, want the context's", err)
	}
	// What one may do still works after a refusal.
	_, err = natsconn.Request(testContext(t), nc, nats.NewMsg(topology.CommandSubject("node", "register")))
	check(t, err)
}

// Calls whose subjects the caller does not know end at once too: here a put to a mirror.
func TestWithDenial(t *testing.T) {
	t.Parallel()
	s := startServer(t, embedded.Config{})
	ledger, err := s.Ledger()
	check(t, err)
	js, err := jetstream.New(ledger)
	check(t, err)
	for _, b := range topology.ChainBuckets() {
		_, err := js.CreateStream(testContext(t), topology.Bucket(b, s.Options()))
		check(t, err)
	}
	_, err = js.CreateStream(testContext(t), topology.Views(s.Options()))
	check(t, err)
	_, err = js.CreateStream(testContext(t), topology.Actors(s.Options()))
	check(t, err)
	check(t, s.EnsureMirrors(testContext(t)))
	nc := connect(t, natsconn.Config{Server: s.ClientURL()})
	mirror, err := jetstream.New(nc.Conn)
	check(t, err)
	kv, err := mirror.KeyValue(testContext(t), topology.BucketNodes)
	check(t, err)

	other, cancelOther := nc.WithDenial(testContext(t), "some.other.subject")
	defer cancelOther()
	ctx, cancel := nc.WithDenial(testContext(t))
	defer cancel()
	if _, err := kv.Put(ctx, "n1", []byte("forged")); err == nil {
		t.Error("the put was acknowledged")
	}
	if cause := context.Cause(ctx); !errors.Is(cause, natsconn.ErrDenied) {
		t.Errorf("cause is %v, want ErrDenied", cause)
	}
	if other.Err() != nil {
		t.Errorf("a refusal of another subject ended it: %v", context.Cause(other))
	}
}

func TestStaysConnected(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	first := startServer(t, embedded.Config{StoreDir: dir})
	address := strings.TrimPrefix(first.ClientURL(), "nats://")
	nc := connect(t, natsconn.Config{Server: first.ClientURL(), Name: "stays"})
	lost := nc.StatusChanged(nats.RECONNECTING)
	stopServer(t, first)
	select {
	case <-lost:
	case <-time.After(patience):
		t.Fatal("the loss of the server went unnoticed")
	}
	select {
	case <-nc.Closed():
		t.Fatal("closed by the loss of its server")
	default:
	}
	restored := nc.StatusChanged(nats.CONNECTED)
	startServer(t, embedded.Config{StoreDir: dir, Listen: address})
	select {
	case <-restored:
	case <-time.After(patience):
		t.Fatal("not connected again")
	}
	nc.Close()
	within(t, "the end of a closed connection", nc.Closed())
}

// A server that comes back without knowing the user will not have it back: the component must be restarted.
func TestClosedWhenNoLongerAccepted(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	first := startServer(t, embedded.Config{StoreDir: dir, Users: []topology.User{{Name: "ana", Password: "a"}}})
	address := strings.TrimPrefix(first.ClientURL(), "nats://")
	nc := connect(t, natsconn.Config{Server: first.ClientURL(), User: "ana", Password: "a"})
	stopServer(t, first)
	startServer(t, embedded.Config{StoreDir: dir, Listen: address})
	within(t, "the end of the connection", nc.Closed())
}

// TestWhoConnectsIsOneSetting: what a person has in their environment does not get in the way of a program that is told who it is.
func TestWhoConnectsIsOneSetting(t *testing.T) {
	t.Parallel()
	env := map[string]string{"NATS_USER": "ann", "NATS_PASSWORD": "secret", "NATS_CA": "ca.pem"}
	told := natsconn.Config{NKey: "ledger.nk"}.WithEnvironment(func(name string) string { return env[name] })
	if want := (natsconn.Config{NKey: "ledger.nk", CA: "ca.pem"}); told != want {
		t.Errorf("it connects by %+v, want %+v", told, want)
	}
	asked := natsconn.Config{}.WithEnvironment(func(name string) string { return env[name] })
	if asked.User != "ann" || asked.Password != "secret" {
		t.Errorf("it connects by %+v", asked)
	}
}
