//go:build failpoints

package integration

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/errors"
	"github.com/google/uuid"
	"github.com/nats-io/nats.go"

	"catenary/audit"
	"catenary/chain"
	"catenary/commands"
	"catenary/es"
	"catenary/es/dispatch"
	"catenary/es/estest"
	"catenary/events"
	"catenary/internal/failpoint"
	"catenary/internal/hammer"
)

// The parts of the chain that are killed.
const (
	partServer = "server"
	partWriter = "writer"
	partEngine = "engine"
	partAgent  = "agent"
)

// Two hundred take about ten minutes.
var stepKills = flag.Int("step-kills", 6, "how often to kill something in TestStepsKilled")

// stepPoints are the moments of a step, with the part that passes each and how often it does in one step at least.
var stepPoints = []struct {
	name  failpoint.Name
	owner string
	times int
}{
	{failpoint.EngineLease, partEngine, 1},
	{failpoint.EngineBeforeBegin, partEngine, 1},
	{failpoint.EngineAfterBegin, partEngine, 1},
	{failpoint.EngineBeforeEnd, partEngine, 1},
	{failpoint.EngineAfterEnd, partEngine, 1},
	{failpoint.WriterBeforeAppend, partWriter, 3},
	{failpoint.WriterAfterAppend, partWriter, 3},
	{failpoint.WriterAfterAnswer, partWriter, 3},
	{failpoint.InboxDone, partWriter, 1},
	{failpoint.AgentBeforeState, partAgent, 3},
	{failpoint.AgentBeforeDeed, partAgent, 1},
	{failpoint.AgentAfterDeed, partAgent, 1},
	{failpoint.AgentBeforeReport, partAgent, 1},
	{failpoint.AgentAfterReport, partAgent, 1},
	{failpoint.OutboxSent, partAgent, 1},
}

// stepKill is that a part is killed when a moment of a step has come.
type stepKill struct {
	point         failpoint.Name
	owner, victim string
	passing       int
}

func (k stepKill) String() string {
	return fmt.Sprintf("%s of the %s, passing %d: kill the %s", k.point, k.owner, k.passing, k.victim)
}

// stepKillsOf draws so many kills: each part at each moment once, in any order, before anything comes twice.
func stepKillsOf(n int, random *rand.Rand) []stepKill {
	var kills []stepKill
	for len(kills) < n {
		var round []stepKill
		for _, p := range stepPoints {
			for _, victim := range []string{partServer, partWriter, partEngine, partAgent} {
				round = append(round, stepKill{p.name, p.owner, victim, 1 + random.IntN(p.times)})
			}
		}
		random.Shuffle(len(round), func(i, j int) { round[i], round[j] = round[j], round[i] })
		kills = append(kills, round...)
	}
	return kills[:n]
}

// TestStepsKilled kills the server, the writer, the engine or the agent while one of them is at a named moment of a step: again and again, a
// rollout each time, with real processes, each connected as itself. Every rollout finishes without anybody's help, and its instruction is applied
// once (case E14).
func TestStepsKilled(t *testing.T) {
	seed := *killSeed
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	t.Logf("to repeat the kills: -kill-seed %d", seed)
	r := startStepRig(t)
	r.must(commands.RegisterNode{Node: stepNode}, commands.RegisterModule{ModuleSpec: events.ModuleSpec{Module: stepModule, Delivery: &events.Delivery{Timeout: "1m"}}})
	struck, longest := 0, time.Duration(0)
	for n, kill := range stepKillsOf(*stepKills, rand.New(rand.NewPCG(seed, 0))) {
		hit, took := r.round(n, kill)
		t.Logf("%s: %t, %v", kill, hit, took.Round(time.Millisecond))
		if hit {
			struck++
		}
		longest = max(longest, took)
	}
	t.Logf("%d of %d kills struck; a rollout took %v at most", struck, *stepKills, longest.Round(time.Millisecond))
	if struck < *stepKills*9/10 {
		t.Errorf("only %d of %d moments came: are they still passed?", struck, *stepKills)
	}
	r.judge(*stepKills)
}

const (
	stepNode   = "edge 1"
	stepModule = "till"
)

// stepRig is a chain in processes, of which four can be killed.
type stepRig struct {
	*testing.T
	dir    string
	person tool
	client *commands.Client
	parts  map[string]*part
	before *events.Version
}

// part is a process that can be started again.
type part struct {
	t    *testing.T
	path string
	args []string
	dir  string
	env  []string
	run  *running
}

// start starts it, with orders to fail.
func (p *part) start(orders ...failpoint.Order) {
	p.t.Helper()
	r := &running{cmd: exec.Command(p.path, p.args...), talk: &estest.Log{}, ended: make(chan struct{})}
	r.cmd.Dir, r.cmd.Env = p.dir, append(slices.Clone(p.env), failpoint.EnvPoints+"="+failpoint.Orders(orders).String())
	r.cmd.Stdout, r.cmd.Stderr = r.talk, r.talk
	if err := r.cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	go func() {
		defer close(r.ended)
		_ = r.cmd.Wait() // it is killed, or looked at by who cares
	}()
	p.run = r
}

// again starts it anew after it was told to end, as an operator does.
func (p *part) again(orders ...failpoint.Order) {
	p.t.Helper()
	_ = p.run.cmd.Process.Signal(syscall.SIGTERM) // it may have ended
	tick, late := time.NewTicker(10*time.Millisecond), time.After(waitLimit)
	defer tick.Stop()
	for {
		select {
		case <-p.run.ended:
			p.start(orders...)
			return
		case <-late:
			p.t.Fatalf("%s does not end:\n%s", p.path, p.run.talk)
		case <-tick.C:
			_ = p.run.cmd.Process.Signal(syscall.SIGCONT) // it may be stopped, or stop itself on its way to the end
		}
	}
}

func startStepRig(t *testing.T) *stepRig {
	t.Helper()
	address := freeAddress(t)
	r := &stepRig{T: t, dir: t.TempDir(), parts: map[string]*part{}}
	url := "nats://" + address
	tool{t: t, url: url}.must(0, "configure", r.dir, "--listen", address, "--durability", "interval", "--store-bytes", "4000000000", "--person", "ann", "--agent", stepNode)
	settings := []string{"--config", filepath.Join(r.dir, "catenary.yaml")}
	for name, p := range map[string]part{
		partServer:  {path: buildServer(t), args: []string{"-c", filepath.Join(r.dir, "nats-server.conf")}},
		partWriter:  {path: filepath.Join(binaries, "writer"), args: settings},
		partEngine:  {path: filepath.Join(binaries, "engine"), args: append(slices.Clone(settings), "--lease-ttl", leaseTTL.String())},
		"projector": {path: filepath.Join(binaries, "projector"), args: append(slices.Clone(settings), "--audit", filepath.Join(r.dir, "audit.db"))},
		partAgent:   {path: filepath.Join(binaries, "agent"), args: []string{"--config", r.agentConfig()}, env: r.credentials("agent." + es.EscapeToken(stepNode))},
	} {
		p.t, p.dir, p.env = t, r.dir, append(quietEnv(r.dir, url), p.env...)
		r.parts[name] = &p
	}
	t.Cleanup(func() {
		for _, p := range r.parts {
			if p.run != nil {
				p.run.kill()
			}
		}
	})
	for _, p := range []struct{ name, word string }{{partServer, "Server is ready"}, {partWriter, "commands are taken"}, {"projector", "queries are answered"}, {partEngine, ""}, {partAgent, ""}} {
		r.parts[p.name].start()
		awaitWord(t, []*running{r.parts[p.name].run}, p.word)
	}
	ann := r.credentials("ann")
	r.person = tool{t: t, url: url, env: ann}
	values := map[string]string{}
	for _, v := range ann {
		name, value, _ := strings.Cut(v, "=")
		values[name] = value
	}
	nc, err := nats.Connect(url, nats.UserInfo(values["NATS_USER"], values["NATS_PASSWORD"]), nats.MaxReconnects(-1), nats.ReconnectWait(20*time.Millisecond),
		nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	r.client = commands.NewClient(dispatch.NewClient(nc))
	return r
}

// credentials are the variables of somebody's file.
func (r *stepRig) credentials(name string) []string {
	r.Helper()
	text, err := os.ReadFile(filepath.Join(r.dir, name+".env"))
	if err != nil {
		r.Fatal(err)
	}
	return strings.Fields(string(text))
}

// agentConfig is that of an agent whose driver notes each apply before it does it.
func (r *stepRig) agentConfig() string {
	r.Helper()
	config := filepath.Join(r.dir, "agent.yaml")
	text := fmt.Sprintf(`node: %q
state: %s/agent
every: 300ms
drivers:
  - kind: exec
    name: script
    dir: %[2]s
    apply: [sh, -c, 'echo "$CATENARY_SOURCE" >> applies && printf %%s "$CATENARY_VERSION" > new && mv new runs']
    observe: [sh, -c, 'test ! -e runs || cat runs']
`, stepNode, r.dir)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		r.Fatal(err)
	}
	return config
}

// must sends commands, which have to be done.
func (r *stepRig) must(payloads ...es.Payload) {
	r.Helper()
	for _, p := range payloads {
		if err := r.send(p); err != nil {
			r.Fatal(err)
		}
	}
}

// send sends a command, again and again under the same id until it is done.
func (r *stepRig) send(p es.Payload) error {
	id, late := uuid.Must(uuid.NewV7()).String(), time.Now().Add(waitLimit)
	for {
		ctx, cancel := context.WithTimeout(r.Context(), sendTry)
		a, err := r.client.Send(ctx, p, dispatch.Options{ID: id})
		cancel()
		switch {
		case err == nil && a.Status == es.StatusAccepted:
			return nil
		case time.Now().After(late), err == nil && a.Status != es.StatusBusy && a.Status != es.StatusUnknown:
			return errors.Newf("%s %s: %+v, %v", p.Ref(), p.Verb(), a, err)
		case err != nil:
			// Nobody may listen, and then the answer is there at once.
			<-time.After(5 * time.Millisecond)
		}
	}
}

// round walks one rollout, and kills. It says whether the moment came, and how long the rollout took.
func (r *stepRig) round(n int, kill stepKill) (struck bool, took time.Duration) {
	r.Helper()
	id, next := fmt.Sprintf("r%03d", n), events.Version{Reference: events.Reference{Package: &events.Package{Name: stepModule, Version: fmt.Sprint(n)}}}
	plan, err := hammer.Planned(id, events.Raw(`{"tiers":[{"name":"all"}]}`), events.PlannedStep{
		Tier: "all", StepName: events.StepName{Node: stepNode, Module: stepModule}, Before: r.before, After: &next,
	})
	if err != nil {
		r.Fatal(err)
	}
	r.must(plan...)
	r.before = &next
	owner, order := r.parts[kill.owner], failpoint.Order{Name: kill.point, Action: failpoint.Kill, At: kill.passing}
	if kill.victim != kill.owner {
		order.Action = failpoint.Stop
	}
	owner.again(order)
	begun := time.Now()
	started := make(chan error, 1)
	go func() { started <- r.send(commands.StartRollout{ID: id}) }()
	tick, late := time.NewTicker(10*time.Millisecond), time.After(2*waitLimit)
	defer tick.Stop()
	for looked := time.Now(); ; {
		if !struck && strings.Contains(owner.run.talk.String(), "failpoint "+string(kill.point)) {
			struck = true
			r.parts[kill.victim].run.kill()
			r.parts[kill.victim].start()
		}
		if struck && kill.victim != kill.owner {
			// It stops itself just after it has said so; told at every turn, it goes on whenever that was.
			_ = owner.run.cmd.Process.Signal(syscall.SIGCONT) // it is looked at whether it has ended
		}
		if time.Since(looked) > 50*time.Millisecond {
			if r.finished(id) {
				break
			}
			looked = time.Now()
		}
		select {
		case <-tick.C:
		case <-late:
			r.Fatalf("%s: rollout %s is not finished:\n%s", kill, id, r.person.feed("", "rollout", "why", id).out)
		}
	}
	if err := <-started; err != nil {
		r.Fatalf("%s: %v", kill, err)
	}
	if took = time.Since(begun); !struck {
		owner.again() // the moment may be still to come
	}
	if runs, err := os.ReadFile(filepath.Join(r.dir, "runs")); err != nil || string(runs) != fmt.Sprint(n) {
		r.Errorf("%s: the node runs %q, %v", kill, runs, err)
	}
	if lines := r.applies(); len(lines) != n+1 {
		r.Fatalf("%s: after %d rollouts there were %d applies: %v", kill, n+1, len(lines), lines)
	}
	return struck, took
}

// finished says whether a rollout is finished, as far as anybody can tell now.
func (r *stepRig) finished(id string) bool {
	got := r.person.feed("", "get", "rollout", id, "-o", "json")
	var found chain.Rollout
	return got.code == 0 && json.Unmarshal([]byte(got.out), &found) == nil && found.State == chain.RolloutFinished
}

func (r *stepRig) applies() []string {
	text, err := os.ReadFile(filepath.Join(r.dir, "applies"))
	if err != nil {
		r.Error(err)
	}
	return strings.Fields(string(text))
}

// judge looks at all that was recorded in the end: each instruction was applied once, and reported as applied once; nothing is open.
func (r *stepRig) judge(rollouts int) {
	r.Helper()
	r.person.must(0, "node", "wait-converged", stepNode, "--timeout", "60s")
	told, done, begun, ended := map[string]bool{}, map[string]int{}, 0, 0
	for _, item := range read[[]audit.Item](r.person, "log", "--limit", "100000", "--events") {
		switch item.Type {
		case events.TypeAssignmentAssigned:
			told[fmt.Sprint(item.Sequence)] = true
		case events.TypeAssignmentApplied:
			var seen events.AssignmentApplied
			if err := json.Unmarshal(item.Data, &seen); err != nil {
				r.Fatal(err)
			}
			done[fmt.Sprint(seen.Source)]++
		case events.TypeRolloutStepBegun:
			begun++
		case events.TypeRolloutStepEnded:
			ended++
		}
	}
	applies := r.applies()
	if slices.Sort(applies); !slices.Equal(applies, slices.Sorted(maps.Keys(told))) || len(told) != rollouts {
		r.Errorf("%d instructions, %d were told: %v; applied were %v", rollouts, len(told), slices.Sorted(maps.Keys(told)), applies)
	}
	for source, times := range done {
		if times != 1 || !told[source] {
			r.Errorf("instruction %s is reported as applied %d times", source, times)
		}
	}
	if len(done) != rollouts || begun != rollouts || ended != rollouts {
		r.Errorf("of %d steps %d have begun, %d were reported, %d have ended", rollouts, begun, len(done), ended)
	}
	if steps := read[[]chain.Assignment](r.person, "get", "assignments"); len(steps) != 1 || steps[0].Observed == nil || steps[0].Package.Version != fmt.Sprint(rollouts-1) {
		r.Errorf("in the end there stands %+v", steps)
	}
	r.person.must(0, "verify")
}
