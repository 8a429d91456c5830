package run

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/errors"
	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"

	"catenary/agent"
	"catenary/agent/desk"
	"catenary/agent/driver"
	"catenary/agent/driver/sim"
	"catenary/chain"
	"catenary/commands"
	"catenary/es"
	"catenary/es/dispatch"
	"catenary/es/natskv"
	"catenary/events"
	"catenary/internal/natsconn"
	"catenary/internal/topology"
)

// quickly is how often agents of tests do what others do every few seconds.
const quickly = 100 * time.Millisecond

// simulated is a node with an agent that can be stopped and started, over what stays of it.
type simulated struct {
	t     *testing.T
	chain *chainOn
	node  string
	state string
	world *sim.World
	fails []string
	takes string

	stop  context.CancelFunc
	ended chan error
}

func newSimulated(t *testing.T, c *chainOn, node string) *simulated {
	t.Helper()
	s := &simulated{t: t, chain: c, node: node, state: filepath.Join(t.TempDir(), "state"), world: &sim.World{}}
	t.Cleanup(func() {
		if s.stop != nil {
			s.end()
		}
	})
	return s
}

func (s *simulated) connect() *natsconn.Conn {
	s.t.Helper()
	token := es.EscapeToken(s.node)
	conn, err := natsconn.Connect(s.t.Context(), natsconn.Config{
		Server: s.chain.ClientURL(), User: topology.AgentUser(token), Password: "secret", Logger: slog.New(slog.DiscardHandler),
	}, nats.CustomInboxPrefix(topology.AgentInbox(token)))
	if err != nil {
		s.t.Fatal(err)
	}
	return conn
}

func (s *simulated) start() {
	s.t.Helper()
	d, err := sim.New(sim.Config{Name: "sim", Fails: s.fails, Takes: s.takes}, s.world, "1.0.0")
	if err != nil {
		s.t.Fatal(err)
	}
	s.startWith(s.connect(), d)
}

// startWith starts the agent with a driver, over a connection that it closes.
func (s *simulated) startWith(conn *natsconn.Conn, d driver.Driver) {
	ctx, stop := context.WithCancel(context.WithoutCancel(s.t.Context()))
	s.stop, s.ended = stop, make(chan error, 1)
	go func() {
		defer conn.Close()
		s.ended <- Agent(ctx, conn, AgentConfig{
			Node: s.node, State: s.state, Drivers: []driver.Driver{d}, Every: quickly, Observe: quickly, Retry: quickly, StopWithin: quickly,
			Logger: slog.New(slog.NewTextHandler(s.t.Output(), &slog.HandlerOptions{Level: slog.LevelInfo})),
		})
	}()
}

func (s *simulated) end() {
	s.t.Helper()
	s.stop()
	if err := <-s.ended; err != nil {
		s.t.Errorf("the agent of %s ended with %v", s.node, err)
	}
	s.stop = nil
}

func (c *chainOn) nodes(t *testing.T) *desk.Client {
	t.Helper()
	nc, err := nats.Connect(c.ClientURL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	return desk.NewClient(nc.RequestMsgWithContext)
}

// eventually looks until it is so.
func eventually(t *testing.T, what string, so func() bool) {
	t.Helper()
	tick, limit := time.NewTicker(10*time.Millisecond), time.After(waitLimit)
	defer tick.Stop()
	for !so() {
		select {
		case <-tick.C:
		case <-limit:
			t.Fatalf("waited in vain: %s", what)
		}
	}
}

func (c *chainOn) reader(t *testing.T) *chain.Reader {
	t.Helper()
	nc, err := c.Ledger()
	if err != nil {
		t.Fatal(err)
	}
	return chain.NewReader(chain.Config{Open: func(ctx context.Context, bucket string) (chain.Bucket, error) { return natskv.Open(ctx, nc, bucket) }})
}

func pkg(module, version string) events.Reference {
	return events.Reference{Package: &events.Package{Name: module, Version: version}}
}

func registerModule(name string, requires ...string) commands.RegisterModule {
	return commands.RegisterModule{ModuleSpec: events.ModuleSpec{Module: name, Requires: requires, Delivery: &events.Delivery{
		Check: &events.Check{Exec: []string{"/bin/true"}, Interval: "50ms"},
	}}}
}

// outcomes lists the reports of a node that stand in the record, each as "module outcome".
func outcomes(t *testing.T, reader *chain.Reader, node string) []string {
	t.Helper()
	var found []string
	for _, module := range []string{"db", "web"} {
		changes, err := chain.History(t.Context(), reader, chain.Assignments, node, module)
		if errors.Is(err, es.ErrNotFound) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, change := range changes {
			found = append(found, module+" "+change.Type)
		}
	}
	return found
}

func converged(t *testing.T, nodes *desk.Client, name string) {
	t.Helper()
	eventually(t, name+" converges", func() bool {
		n, err := nodes.Node(t.Context(), name)
		return err == nil && n.Converged
	})
}

// TestAgentConverges walks a node through being told something, something else, a failure, and to run it no more.
func TestAgentConverges(t *testing.T) {
	t.Parallel()
	c := startOn(t, t.TempDir(), "127.0.0.1:0", "n1")
	c.send(t, commands.RegisterNode{Node: "n1"}, registerModule("db"), registerModule("web", "db"))
	n1, nodes, reader := newSimulated(t, c, "n1"), c.nodes(t), c.reader(t)
	n1.fails = []string{"bad"}
	n1.start()
	converged(t, nodes, "n1")
	c.send(t, commands.Assign{Node: "n1", Module: "db", Reference: pkg("db", "1")}, commands.Assign{Node: "n1", Module: "web", Reference: pkg("web", "1")})
	eventually(t, "both run, and are well", func() bool {
		found := outcomes(t, reader, "n1")
		return slices.Contains(found, "db "+events.TypeAssignmentHealthy) && slices.Contains(found, "web "+events.TypeAssignmentHealthy)
	})
	converged(t, nodes, "n1")
	if n1.world.Runs("web") != "1" || n1.world.Runs("db") != "1" {
		t.Errorf("it runs %q and %q", n1.world.Runs("web"), n1.world.Runs("db"))
	}

	c.send(t, commands.Assign{Node: "n1", Module: "web", Reference: pkg("web", "bad")})
	eventually(t, "a failure that is reported, with what was said", func() bool {
		n, err := nodes.Node(t.Context(), "n1")
		return err == nil && n.Status != nil && len(n.Status.Failed) == 1 && !n.Converged && slices.Contains(outcomes(t, reader, "n1"), "web "+events.TypeAssignmentApplyFailed)
	})
	if n1.world.Runs("web") != "1" {
		t.Errorf("what ran before does not run: %q", n1.world.Runs("web"))
	}

	n1.world.Set("db", "by hand")
	eventually(t, "the drift", func() bool { return slices.Contains(outcomes(t, reader, "n1"), "db "+events.TypeAssignmentDrifted) })
	n1.world.Set("db", "1")
	eventually(t, "the end of the drift", func() bool {
		a, err := chain.Get(t.Context(), reader, chain.Assignments, "n1", "db")
		return err == nil && a.Value.Observed.Drift == ""
	})
	drifts := 0
	for _, o := range outcomes(t, reader, "n1") {
		if o == "db "+events.TypeAssignmentDrifted {
			drifts++
		}
	}
	if drifts != 1 {
		t.Errorf("%d events of one drift", drifts)
	}

	c.send(t, commands.Unassign{Node: "n1", Module: "web"})
	c.send(t, commands.Unassign{Node: "n1", Module: "db"})
	eventually(t, "both are gone, and that is reported", func() bool {
		found := outcomes(t, reader, "n1")
		return n1.world.Runs("web") == "" && n1.world.Runs("db") == "" && slices.Contains(found, "db "+events.TypeAssignmentRemoved) && slices.Contains(found, "web "+events.TypeAssignmentRemoved)
	})
	converged(t, nodes, "n1")
}

// Case E25, with the chain's part: a node that was away for the whole of several changes comes back to the last one, once.
func TestAwayForSeveralChanges(t *testing.T) {
	t.Parallel()
	c := startOn(t, t.TempDir(), "127.0.0.1:0", "n4")
	c.send(t, commands.RegisterNode{Node: "n4"}, registerModule("web"), commands.Assign{Node: "n4", Module: "web", Reference: pkg("web", "r1")})
	n4, nodes := newSimulated(t, c, "n4"), c.nodes(t)
	n4.start()
	converged(t, nodes, "n4")
	n4.end()
	var last uint64
	for _, v := range []string{"r2", "r3", "r4"} {
		last = c.send(t, commands.Assign{Node: "n4", Module: "web", Reference: pkg("web", v)})
	}
	// Case E34: a node whose agent is away is not taken for one that is well.
	eventually(t, "n4 counts as off", func() bool {
		n, err := nodes.Node(t.Context(), "n4")
		return err == nil && n.State == desk.Off && !n.Converged
	})
	n4.start()
	converged(t, nodes, "n4")
	if got := n4.world.Applies("web"); n4.world.Runs("web") != "r4" || len(got) != 2 || got[1] != last {
		t.Errorf("it runs %s, having applied %v; want r4 by event %d, and nothing between", n4.world.Runs("web"), got, last)
	}
}

// TestForgetfulAgentWaits: an agent that knows nothing can't tell what is over from what stands, so and is told nothing while the view is behind.
func TestForgetfulAgentWaits(t *testing.T) {
	t.Parallel()
	c := startOn(t, t.TempDir(), "127.0.0.1:0", "n1")
	first := c.send(t, commands.RegisterNode{Node: "n1"}, registerModule("web"), commands.Assign{Node: "n1", Module: "web", Reference: pkg("web", "1")})
	n1, nodes := newSimulated(t, c, "n1"), c.nodes(t)
	n1.start()
	converged(t, nodes, "n1")
	n1.end()
	c.send(t, commands.PauseProjection{View: topology.BucketAssignments, Reason: "stay behind"})
	last := c.send(t, commands.Assign{Node: "n1", Module: "web", Reference: pkg("web", "2")})
	n1.state = filepath.Join(t.TempDir(), "state")
	n1.start()
	conn := n1.connect()
	defer conn.Close()
	_, err := agent.NewBusDesk(conn.RequestMsgWithContext).CheckIn(t.Context(), agent.CheckIn{Node: "n1", Run: "another", Every: quickly})
	if !errors.Is(err, agent.ErrNoDesk) || !strings.Contains(err.Error(), "what node n1 is told is not known to its end yet") {
		t.Errorf("an agent that knows nothing is answered with %v", err)
	}
	known, err := agent.NewBusDesk(conn.RequestMsgWithContext).CheckIn(t.Context(), agent.CheckIn{Node: "n1", Run: "another", Every: quickly, Status: agent.Status{Edition: "some"}})
	if err != nil || len(known.Told) != 1 || known.Told[0].Source != first {
		t.Errorf("an agent that knows something is answered with %+v, %v", known, err)
	}
	c.send(t, commands.ResumeProjection{View: topology.BucketAssignments, Reason: "enough"})
	eventually(t, "it runs what it was told last", func() bool { return n1.world.Runs("web") == "2" })
	if got := n1.world.Applies("web"); !slices.Equal(got, []uint64{first, last}) {
		t.Errorf("it has applied %v, want %v", got, []uint64{first, last})
	}
}

// Case E27, the agent's side: an agent that never comes to an end says nothing, and its node is told from one that is off.
func TestAgentThatNeverComesToAnEnd(t *testing.T) {
	t.Parallel()
	c := startOn(t, t.TempDir(), "127.0.0.1:0", "n1")
	c.send(t, commands.RegisterNode{Node: "n1"}, registerModule("web"), commands.Assign{Node: "n1", Module: "web", Reference: pkg("web", "1")})
	n1, nodes, reader := newSimulated(t, c, "n1"), c.nodes(t), c.reader(t)
	n1.takes = "10m"
	n1.start()
	eventually(t, "it is at it", func() bool {
		n, err := nodes.Node(t.Context(), "n1")
		return err == nil && n.State == desk.On && n.Status.Doing != nil && n.Status.Doing.Module == "web" && !n.Converged
	})
	if found := outcomes(t, reader, "n1"); !slices.Equal(found, []string{"web " + events.TypeAssignmentAssigned}) {
		t.Errorf("the record has %v", found)
	}
}

func TestOneAgentForEachState(t *testing.T) {
	t.Parallel()
	c := startOn(t, t.TempDir(), "127.0.0.1:0", "n1")
	c.send(t, commands.RegisterNode{Node: "n1"})
	n1 := newSimulated(t, c, "n1")
	n1.start()
	converged(t, c.nodes(t), "n1")
	conn := n1.connect()
	defer conn.Close()
	err := Agent(t.Context(), conn, AgentConfig{Node: "n1", State: n1.state, Logger: slog.New(slog.DiscardHandler)})
	if !errors.Is(err, ErrStateInUse) {
		t.Errorf("the second one ends with %v", err)
	}
	n1.end()
	conn2 := n1.connect()
	defer conn2.Close()
	err = Agent(t.Context(), conn2, AgentConfig{Node: "n2", State: n1.state, Logger: slog.New(slog.DiscardHandler)})
	if !errors.Is(err, agent.ErrMemory) {
		t.Errorf("the agent of another node ends with %v", err)
	}
}

// TestReach lets an agent's user try what is not its own.
func TestReach(t *testing.T) {
	t.Parallel()
	c := startOn(t, t.TempDir(), "127.0.0.1:0", "n1", "n2")
	c.send(t, commands.RegisterNode{Node: "n1"}, commands.RegisterNode{Node: "n2"}, registerModule("web"),
		commands.Assign{Node: "n1", Module: "web", Reference: pkg("web", "1")}, commands.Assign{Node: "n2", Module: "web", Reference: pkg("web", "1")})
	conn, reader := newSimulated(t, c, "n1").connect(), c.reader(t)
	t.Cleanup(conn.Close)
	request := func(ctx context.Context, m *nats.Msg) (*nats.Msg, error) {
		ctx, cancel := context.WithTimeout(ctx, waitLimit)
		defer cancel()
		reply, err := natsconn.Request(ctx, conn, m)
		if errors.Is(err, natsconn.ErrDenied) {
			err = errors.Mark(err, dispatch.ErrDenied)
		}
		return reply, err
	}
	inbox := commands.NewClient(dispatch.NewInboxClient(conn.Conn, request))
	report := func(node string) commands.Observe {
		return commands.Observe{Seen: events.Seen{Node: node, Module: "web"}, Outcome: commands.OutcomeApplied}
	}
	answer, err := inbox.Send(t.Context(), report("n1"), dispatch.Options{})
	if err != nil || answer.Status != es.StatusStored {
		t.Errorf("its own report: %+v, %v", answer, err)
	}
	answer, err = inbox.Send(t.Context(), report("n2"), dispatch.Options{})
	if err != nil || answer.Status != es.StatusDenied || answer.Error == nil || answer.Error.Code != CodeNotItsNode {
		t.Errorf("another node's report: %+v, %v", answer, err)
	}
	for name, send := range map[string]func() error{
		"another command by the inbox": func() error {
			_, err := inbox.Send(t.Context(), commands.RetireNode{Node: "n1"}, dispatch.Options{})
			return err
		},
		"a command": func() error {
			_, err := commands.NewClient(dispatch.NewClientFunc(request)).Send(t.Context(), report("n1"), dispatch.Options{})
			return err
		},
		"another node's check-in": func() error {
			_, err := agent.NewBusDesk(request).CheckIn(t.Context(), agent.CheckIn{Node: "n2"})
			return err
		},
		"a query": func() error {
			_, err := desk.NewClient(request).Nodes(t.Context())
			return err
		},
		"a bucket": func() error {
			_, err := request(t.Context(), nats.NewMsg("$JS.API.STREAM.INFO.KV_chain-assignments"))
			return err
		},
	} {
		if err := send(); !errors.Is(err, dispatch.ErrDenied) {
			t.Errorf("%s: got error %v", name, err)
		}
	}
	if _, err := agent.NewBusDesk(request).CheckIn(t.Context(), agent.CheckIn{Node: "n1"}); err != nil {
		t.Errorf("its own check-in: %v", err)
	}
	eventually(t, "only its own report is recorded", func() bool { return len(outcomes(t, reader, "n1")) == 2 })
	if diff := cmp.Diff([]string{"web " + events.TypeAssignmentAssigned}, outcomes(t, reader, "n2")); diff != "" {
		t.Errorf("n2 (-want +got):\n%s", diff)
	}
}

// TestManyModules reads a node that is told more than fits into one answer.
func TestManyModules(t *testing.T) {
	t.Parallel()
	c := startOn(t, t.TempDir(), "127.0.0.1:0", "n1")
	c.send(t, commands.RegisterNode{Node: "n1"})
	provisioning := events.Raw(fmt.Sprintf(`{"text":"%060000d"}`, 1))
	const count = 10
	for i := range count {
		module := fmt.Sprintf("m%02d", i)
		c.send(t, commands.RegisterModule{ModuleSpec: events.ModuleSpec{Module: module}},
			commands.Assign{Node: "n1", Module: module, Reference: pkg(module, "1"), Provisioning: provisioning})
	}
	n1 := newSimulated(t, c, "n1")
	n1.start()
	converged(t, c.nodes(t), "n1")
	for i := range count {
		if module := fmt.Sprintf("m%02d", i); n1.world.Runs(module) != "1" {
			t.Errorf("%s runs %q", module, n1.world.Runs(module))
		}
	}
}
