package integration

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/nats-io/nats.go"

	"catenary/commands"
	"catenary/es"
	"catenary/es/dispatch"
	"catenary/es/estest"
	"catenary/es/natsstore"
	"catenary/events"
	"catenary/internal/hammer"
	"catenary/internal/topology"
)

const (
	// leaseTTL is that of the engines here.
	leaseTTL = time.Second
	// busy is what a machine that does other things may take besides.
	busy = 10 * time.Second
)

// chainBus is a server without accounts with the parts of a chain in processes of their own, and nodes of straw in this one.
type chainBus struct {
	*testing.T
	url    string
	nc     *nats.Conn
	client *commands.Client
	store  *natsstore.Store
}

// mute is a node of which nobody hears.
const mute = "mute"

func startBus(t *testing.T) *chainBus {
	t.Helper()
	bus := estest.Server(t, false)
	nc := bus.Connect(t)
	writer := startWriter(t, bus.URL())
	awaitWord(t, []*running{writer}, "commands are taken")
	store, err := natsstore.Open(t.Context(), nc, natsstore.Config{})
	if err != nil {
		t.Fatal(err)
	}
	pipeline, err := dispatch.NewPipeline(nc, 0)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		newID := func() string { return uuid.Must(uuid.NewV7()).String() }
		ended <- hammer.Nodes{Follow: store.Follow, Registry: events.Registry(), Sender: hammer.OverBus{Post: pipeline.Post, NewID: newID}, Outcome: func(t events.Told, _ bool) string {
			if t.Node == mute {
				return ""
			}
			return commands.OutcomeApplied
		}}.Run(ctx)
	}()
	t.Cleanup(func() {
		stop()
		<-ended // what the nodes could not say at the end says nothing
		_ = pipeline.Close()
		store.Close()
	})
	return &chainBus{T: t, url: bus.URL(), nc: nc, client: commands.NewClient(dispatch.NewClient(nc)).Within(waitLimit), store: store}
}

func (b *chainBus) do(payloads ...es.Payload) {
	b.Helper()
	for _, p := range payloads {
		if a, err := b.client.Send(b.Context(), p, dispatch.Options{}); err != nil || a.Status != es.StatusAccepted && a.Status != es.StatusUnchanged {
			b.Fatalf("%s %s: %+v, %v", p.Ref(), p.Verb(), a, err)
		}
	}
}

// engine starts an engine.
func (b *chainBus) engine() *running {
	b.Helper()
	return startPart(b.T, "engine", b.url, "--lease-ttl", leaseTTL.String())
}

// start makes nodes known and starts a rollout over them: so many steps a minute.
func (b *chainBus) start(id string, perMinute int, nodes ...string) {
	b.Helper()
	module := "module-" + id
	b.do(commands.RegisterModule{ModuleSpec: events.ModuleSpec{Module: module}})
	var steps []events.PlannedStep
	for _, n := range nodes {
		b.do(commands.RegisterNode{Node: n, ManagedBy: events.ManagedByAgent})
		steps = append(steps, events.PlannedStep{Tier: "all", StepName: events.StepName{Node: n, Module: module}, After: &events.Version{Reference: events.Reference{Artifact: "sha256:ab"}}})
	}
	list, err := hammer.Planned(id, events.Raw(fmt.Sprintf(`{"tiers":[{"name":"all","limit":{"per-minute":%d}}]}`, perMinute)), steps...)
	if err != nil {
		b.Fatal(err)
	}
	b.do(append(list, commands.StartRollout{ID: id})...)
}

// events gives what was recorded of a rollout, in order, by type.
func (b *chainBus) events(id string) []string {
	b.Helper()
	var list []string
	for m, err := range b.store.ReadAggregate(b.Context(), commands.RolloutRef(id)) {
		if err != nil {
			b.Fatal(err)
		}
		list = append(list, m.Header[es.HeaderType][0])
	}
	return list
}

// until polls a rollout's events until they are so.
func (b *chainBus) until(what, id string, so func([]string) bool) []string {
	b.Helper()
	tick, limit := time.NewTicker(20*time.Millisecond), time.After(waitLimit)
	defer tick.Stop()
	for {
		if list := b.events(id); so(list) {
			return list
		}
		select {
		case <-tick.C:
		case <-limit:
			b.Fatalf("%s is never seen: there are %v", what, b.events(id))
		}
	}
}

func number(list []string, kind string) (n int) {
	for _, k := range list {
		if k == kind {
			n++
		}
	}
	return n
}

// TestEnginesTakeTurns is cases B18 and B19: an engine that is killed is replaced within twice its lease, and one that was stopped for three
// leases is fenced when it goes on. Whatever happens to engines, each step begins once.
func TestEnginesTakeTurns(t *testing.T) {
	t.Parallel()
	b := startBus(t)
	const steps = 30
	var nodes []string
	for i := range steps {
		nodes = append(nodes, fmt.Sprintf("n%d", i+1))
	}
	b.start("r", 300, nodes...) // six seconds of steps, one after another
	first := b.engine()
	awaitWord(t, []*running{first}, "walking")
	others := []*running{b.engine(), b.engine()}
	for _, o := range others {
		awaitWord(t, []*running{o}, "standing by")
	}
	b.until("a step", "r", func(list []string) bool { return number(list, events.TypeRolloutStepBegun) > 0 })

	killed := time.Now()
	first.kill()
	second := others[awaitWord(t, others, "walking")]
	took := time.Since(killed)
	t.Logf("killed: another one walks after %v", took)
	if took > 2*leaseTTL+busy {
		t.Errorf("another one walks after %v, and the lease holds for %v", took, leaseTTL)
	}
	third := others[1-slices.Index(others, second)]
	if err := second.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	stopped := time.Now()
	awaitWord(t, []*running{third}, "walking")
	t.Logf("stopped: another one walks after %v", time.Since(stopped))
	<-time.After(time.Until(stopped.Add(3 * leaseTTL)))
	if err := second.cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	awaitWord(t, []*running{second}, "fenced")
	b.refused(es.StatusFenced)

	list := b.until("its end", "r", func(list []string) bool { return number(list, events.TypeRolloutFinished) == 1 })
	if n := number(list, events.TypeRolloutStepBegun); n != steps {
		t.Errorf("%d steps have begun, and there are %d", n, steps)
	}
	// The former holder stands by, and is there when it is needed.
	third.kill()
	b.start("s", 60, "s1")
	b.until("its end", "s", func(list []string) bool { return number(list, events.TypeRolloutFinished) == 1 })
}

// refused demands that a command of an engine was not done for a reason.
func (b *chainBus) refused(status es.Status) {
	b.Helper()
	refused, err := dispatch.OpenRefused(b.Context(), b.nc, topology.Refused(topology.Options{Replicas: 1}))
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(b.Context(), waitLimit)
	defer cancel()
	for r, err := range refused.Follow(ctx, 0) {
		if err != nil {
			b.Fatal(err)
		}
		if r.Status == status {
			return
		}
	}
}

// TestEngineStops tells an engine to stop as people do: idle it is gone in a second, with a step under way it waits for that, told twice it
// leaves the step to the next engine.
func TestEngineStops(t *testing.T) {
	t.Parallel()
	b := startBus(t)
	signal := func(e *running) {
		t.Helper()
		if err := e.cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
	}
	gone := func(e *running, code int) {
		t.Helper()
		select {
		case <-e.ended:
		case <-time.After(waitLimit):
			t.Fatalf("it is still there:\n%s", e.talk)
		}
		if found := e.cmd.ProcessState.ExitCode(); found != code {
			t.Errorf("it ends with %d, want %d:\n%s", found, code, e.talk)
		}
	}
	idle := b.engine()
	awaitWord(t, []*running{idle}, "following the stream")
	begun := time.Now()
	signal(idle)
	gone(idle, 0)
	if took := time.Since(begun); took > time.Second+busy {
		t.Errorf("idle, it is gone after %v", took)
	}
	// A node of which nobody hears keeps its step under way.
	e := b.engine()
	b.start("r", 60, mute, "n1")
	b.until("a step", "r", func(list []string) bool { return number(list, events.TypeRolloutStepBegun) > 0 })
	signal(e)
	awaitWord(t, []*running{e}, "no step begins any more")
	b.do(commands.SettleStep{ID: "r", StepName: events.StepName{Node: mute, Module: "module-r"}, Outcome: events.StepDone, Reason: "seen on the spot"})
	gone(e, 0)
	if list := b.events("r"); number(list, events.TypeRolloutStepBegun) != 1 {
		t.Errorf("told to stop it goes on: %v", list)
	}
	// Told twice it leaves what runs to the next engine.
	e = b.engine() // the lease was given back: nobody has to wait for it to run out
	b.until("the other step", "r", func(list []string) bool { return number(list, events.TypeRolloutFinished) == 1 })
	b.start("s", 60, mute)
	b.until("a step", "s", func(list []string) bool { return number(list, events.TypeRolloutStepBegun) > 0 })
	signal(e)
	awaitWord(t, []*running{e}, "no step begins any more")
	signal(e)
	gone(e, 0)
	if said := e.talk.String(); !strings.Contains(said, "module-s on mute (rollout s)") {
		t.Errorf("told twice it says\n%s", said)
	}
}
