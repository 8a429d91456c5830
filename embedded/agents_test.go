package embedded_test

import (
	"context"
	"strings"
	"testing"

	"github.com/cockroachdb/errors"
	"github.com/nats-io/nats.go"

	"catenary/embedded"
	"catenary/internal/topology"
)

// TestAgentsCredentials makes credentials for agents, of which the later ones count, and connects with them.
func TestAgentsCredentials(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	first, err := embedded.AddAgent(dir, "n1")
	check(t, err)
	second, err := embedded.AddAgent(dir, "n1")
	check(t, err)
	other, err := embedded.AddAgent(dir, "n=202")
	check(t, err)
	if first.Password == second.Password || first.User != "agent.n1" || other.User != "agent.n=202" {
		t.Errorf("made %+v, %+v and %+v", first, second, other)
	}
	s := start(t, embedded.Config{StoreDir: dir})
	if _, err := nats.Connect(s.ClientURL(), nats.UserInfo(first.User, first.Password)); !errors.Is(err, nats.ErrAuthorization) {
		t.Errorf("with the former password: %v", err)
	}
	refused := make(chan error, 1)
	for node, c := range map[string]embedded.Credentials{"n1": second, "n=202": other} {
		nc, err := nats.Connect(s.ClientURL(), nats.UserInfo(c.User, c.Password), nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { refused <- err }))
		check(t, err)
		t.Cleanup(nc.Close)
		_, err = nc.SubscribeSync(topology.ToldSubject(node, "*"))
		check(t, err)
		check(t, nc.Flush())
		_, err = nc.SubscribeSync(topology.ToldSubject("n3", "*"))
		check(t, err)
		check(t, nc.Flush())
		if err := await(t, "the refusal", refused); !strings.Contains(err.Error(), "told.n3") {
			t.Errorf("refused with %v", err)
		}
	}
}

// TestAgentsWhileRunning makes credentials while a server runs: they are taken, former ones are not, and whoever else is connected stays so, with
// the mirrors following.
func TestAgentsWhileRunning(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := start(t, embedded.Config{StoreDir: dir})
	ledger, js := ledgerOf(t, s)
	check(t, s.EnsureMirrors(testContext(t)))
	ctx, end := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.FollowAgents(ctx) }()
	person := dial(t, s.ClientURL())

	connect := func(c embedded.Credentials) (nc *nats.Conn) {
		t.Helper()
		eventually(t, "the credentials are taken", func() (ok bool) {
			var err error
			nc, err = nats.Connect(s.ClientURL(), nats.UserInfo(c.User, c.Password), nats.NoReconnect())
			return err == nil
		})
		return nc
	}
	first, err := embedded.AddAgent(dir, "n1")
	check(t, err)
	former := connect(first)
	gone := former.StatusChanged(nats.CLOSED)
	second, err := embedded.AddAgent(dir, "n1")
	check(t, err)
	connect(second).Close()
	await(t, "the end of who came with the former password", gone)
	if _, err := nats.Connect(s.ClientURL(), nats.UserInfo(first.User, first.Password)); !errors.Is(err, nats.ErrAuthorization) {
		t.Errorf("with the former password: %v", err)
	}
	for who, nc := range map[string]*nats.Conn{"the ledger": ledger, "a person": person} {
		if stats := nc.Stats(); stats.Reconnects > 0 || !nc.IsConnected() {
			t.Errorf("%s was disconnected: %+v", who, stats)
		}
	}
	awaitMirror(t, s, topology.BucketNodes, put(t, js, topology.BucketNodes, "n1", 3))
	trueMirror(t, s, topology.BucketNodes)
	end()
	check(t, await(t, "the end of following", ended))
}
