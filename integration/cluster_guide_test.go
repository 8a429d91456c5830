package integration

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"catenary/es"
	"catenary/es/estest"
	"catenary/internal/cluster"
	"catenary/internal/topology"
)

// After the loss of a leader the next command is accepted within leaderLossLimit. The servers take up to nine seconds of it to elect another, by chance; where they have
// used up more than their share, it is accepted within electedLimit of that.
const (
	leaderLossLimit = 10 * time.Second
	electedLimit    = 10 * time.Second
	exitStale       = 7 // what is shown may be out of date
	exitTimedOut    = 9 // what became of a command is not known yet
)

// clusterGuide is the guide on clusters while it is walked: what runs, by the line that has started it.
type clusterGuide struct {
	t       *testing.T
	dir     string
	env     []string
	running map[string]*guideProcess
	said    map[string]*estest.Log
	ann     tool
	// leader is the server that was killed, killed is when, and elected gives when another one led the event stream.
	leader  string
	killed  time.Time
	elected <-chan time.Time
}

// guideProcess is a process that stays.
type guideProcess struct {
	cmd   *exec.Cmd
	ended chan struct{}
}

// TestClusterGuide goes through the guide on clusters, line by line: three servers and all parts as processes, one server killed, all restarted one
// after another. While they are, commands are sent all the time: none that was accepted is lost.
func TestClusterGuide(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../docs/guides/cluster.md")
	if err != nil {
		t.Fatal(err)
	}
	g := &clusterGuide{t: t, dir: t.TempDir(), running: map[string]*guideProcess{}, said: map[string]*estest.Log{}}
	g.env = append(quietEnv(g.dir, ""), "PATH="+binaries+":"+os.Getenv("PATH"))
	t.Cleanup(g.stopAll)
	addresses := map[string]string{}
	for _, port := range []string{"4222", "4223", "4224"} {
		_, route, _ := strings.Cut(freeAddress(t), ":")
		addresses["127.0.0.1:"+port] = freeAddress(t) + "," + route
	}
	steps, compared, shown := 0, 0, ""
	var load *commandLoad
	for _, block := range regexp.MustCompile("(?ms)^```(\\w*)\n(.*?)^```$").FindAllStringSubmatch(string(text), -1) {
		switch kind, body := block[1], block[2]; kind {
		case "yaml":
			if err := os.WriteFile(filepath.Join(g.dir, "agent.yaml"), []byte(body), 0o600); err != nil {
				t.Fatal(err)
			}
		case "text":
			compared++
			if !pattern(body).MatchString(shown) {
				t.Errorf("what is shown is not\n%s\nbut\n%s", body, shown)
			}
		default:
			for line := range strings.Lines(body) {
				steps++
				line = strings.TrimSpace(line)
				for written, free := range addresses {
					line = strings.ReplaceAll(line, written, free)
				}
				if line == "kill S1" {
					load = g.load()
				}
				if strings.HasPrefix(line, "kill ") {
					g.kill(strings.TrimPrefix(line, "kill "))
					continue
				}
				if strings.HasPrefix(line, "catenary configure") {
					// Without syncing each event to disk: three servers on one disk share what it can do.
					g.do(line + " --durability interval")
					g.ann = tool{t: t, env: environment(t, filepath.Join(g.dir, "deploy", "ann.env"))}
					continue
				}
				began := time.Now()
				shown = g.do(strings.ReplaceAll(line, "LEADER", g.leader))
				if took := time.Since(began); took > time.Second {
					t.Logf("%s took %s: %s", time.Now().Format(time.TimeOnly), took, line)
				}
			}
		}
	}
	if steps < 25 || compared < 1 || load == nil {
		t.Fatalf("the guide has %d steps and %d outputs: are they still found?", steps, compared)
	}
	load.check(g.ann)
	if text, err := os.ReadFile(filepath.Join(g.dir, "hello.txt")); err != nil || string(text) != "1.0\n" {
		t.Errorf("the agent has brought %q, %v", text, err)
	}
}

// do does what a line says: it starts what stays, and waits until all else has ended with the code that the line names.
func (g *clusterGuide) do(line string) string {
	g.t.Helper()
	// What stays, with the words that say that it can be used; an agent says none.
	for program, ready := range map[string]string{
		"catenary server ": "server is ready", "writer ": "commands are taken", "projector ": "queries are answered", "engine ": "following the stream", "agent ": "",
	} {
		if strings.HasPrefix(line, program) || strings.Contains(line, ") "+program) {
			g.stay(line, ready)
			return ""
		}
	}
	run := func() (string, int) {
		cmd := exec.Command("bash", "-c", line)
		var out bytes.Buffer
		cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = g.dir, g.env, &out, &out
		if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
			g.t.Fatalf("%s: %v", line, err)
		}
		return out.String(), cmd.ProcessState.ExitCode()
	}
	shown, code := run()
	switch {
	case strings.HasSuffix(line, "# exit code 1"):
		// It is 2 while some other stream that the lost server led has no leader yet.
		g.ann.until("one server is off, and all streams have a leader", func() bool {
			if code != 1 {
				shown, code = run()
			}
			return code == 1
		})
		if !strings.Contains(shown, "server "+g.leader+"\n      it does not answer") || !strings.Contains(shown, g.leader+" is off") {
			g.t.Errorf("%s shows\n%s", line, shown)
		}
	case strings.Contains(line, "cluster check"):
		// Copies that have lost their bucket's leader find it again when they do.
		g.ann.until("all is well", func() bool {
			if code != 0 {
				shown, code = run()
			}
			return code == 0
		})
	case strings.Contains(line, `"edge-2"`):
		if id := regexp.MustCompile(`--id ([0-9a-f-]{36})`).FindStringSubmatch(shown); code == exitTimedOut && id != nil {
			line += " --id " + id[1]
			shown, code = run()
		}
		if code != 0 {
			g.t.Fatalf("%s ends with %d and shows\n%s", line, code, shown)
		}
		took, elected := time.Since(g.killed), (<-g.elected).Sub(g.killed)
		g.t.Logf("after the loss of %s another one led after %s, and the command was accepted after %s", g.leader, elected, took)
		if took > leaderLossLimit && took > elected+electedLimit {
			g.t.Errorf("the command after the loss of %s was accepted after %s, %s after there was another leader", g.leader, took, took-elected)
		}
	case code != 0:
		g.t.Fatalf("%s ends with %d and shows\n%s", line, code, shown)
	}
	return shown
}

// stay starts what stays, and waits until it says that it can be used.
func (g *clusterGuide) stay(line, ready string) {
	g.t.Helper()
	said := &estest.Log{}
	cmd := exec.Command("bash", "-c", "exec "+line)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = g.dir, g.env, said, said
	if err := cmd.Start(); err != nil {
		g.t.Fatal(err)
	}
	p := &guideProcess{cmd: cmd, ended: make(chan struct{})}
	go func() {
		defer close(p.ended)
		_ = cmd.Wait() // what it said shows how it ended
	}()
	g.running[line], g.said[line] = p, said
	g.ann.until(fmt.Sprintf("%s says %q", line, ready), func() bool {
		select {
		case <-p.ended:
			g.t.Fatalf("%s has ended:\n%s", line, said)
		default:
		}
		return strings.Contains(said.String(), ready)
	})
}

// server is the line that has started a server.
func (g *clusterGuide) server(name string) string {
	return "catenary server --config deploy/nats-server." + name + ".conf"
}

// kill ends a server as the line says.
func (g *clusterGuide) kill(what string) {
	g.t.Helper()
	signal, name := syscall.SIGTERM, strings.ToLower(what)
	if hard, ok := strings.CutPrefix(what, "-9 "); ok && hard == "LEADER" {
		view := read[cluster.View](g.ann, "cluster", "check")
		for _, s := range view.Streams {
			if s.Account == topology.AccountLedger && s.Name == topology.EventStream {
				g.leader = s.Leader
			}
		}
		signal, name = syscall.SIGKILL, g.leader
	}
	p := g.running[g.server(name)]
	if p == nil {
		g.t.Fatalf("kill %s: server %q does not run", what, name)
	}
	if signal == syscall.SIGKILL {
		g.elected = g.watchElection()
		g.killed = time.Now()
	}
	if err := p.cmd.Process.Signal(signal); err != nil {
		g.t.Fatal(err)
	}
	select {
	case <-p.ended:
	case <-time.After(waitLimit):
		g.t.Fatalf("server %s does not end:\n%s", name, g.said[g.server(name)])
	}
	delete(g.running, g.server(name))
}

// watchElection gives when a server says that it leads the event stream from now on.
func (g *clusterGuide) watchElection() <-chan time.Time {
	servers := maps.Clone(g.said)
	count := func() (n int) {
		for _, said := range servers {
			n += strings.Count(said.String(), "new stream leader for '"+topology.AccountLedger+" > "+topology.EventStream+"'")
		}
		return n
	}
	before, elected := count(), make(chan time.Time, 1)
	go func() {
		tick, late := time.NewTicker(10*time.Millisecond), time.After(waitLimit)
		defer tick.Stop()
		for count() == before {
			select {
			case <-tick.C:
			case <-late:
				close(elected)
				return
			}
		}
		elected <- time.Now()
	}()
	return elected
}

// stopAll ends what runs: the parts before the servers.
func (g *clusterGuide) stopAll() {
	stop := func(servers bool) {
		for line, p := range g.running {
			if strings.HasPrefix(line, "catenary server") == servers {
				_ = p.cmd.Process.Signal(syscall.SIGTERM) // it may be gone already
			}
		}
		for line, p := range g.running {
			if strings.HasPrefix(line, "catenary server") != servers {
				continue
			}
			select {
			case <-p.ended:
			case <-time.After(waitLimit):
				g.t.Errorf("%s does not end:\n%s", line, g.said[line])
				_ = p.cmd.Process.Kill()
				<-p.ended
			}
			if g.t.Failed() {
				g.t.Logf("%s:\n%s", line, g.said[line])
			}
		}
	}
	stop(false)
	stop(true)
}

// environment reads a file of environment variables.
func environment(t *testing.T, path string) []string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Fields(string(text))
}

// loadEvery is how often a command is sent while servers are restarted, if the one before was answered.
const loadEvery = 10 * time.Millisecond

// commandLoad sends commands one after another until it is told to end.
type commandLoad struct {
	t    *testing.T
	end  chan struct{}
	done sync.WaitGroup
	// accepted are the nodes whose command was accepted; who waits for done may read them.
	accepted []string
	sent     int
}

// load begins to send commands as ann.
func (g *clusterGuide) load() *commandLoad {
	g.t.Helper()
	who := map[string]string{}
	for _, line := range g.ann.env {
		name, value, _ := strings.Cut(line, "=")
		who[name] = value
	}
	nc, err := nats.Connect(who["NATS_URL"], nats.UserInfo(who["NATS_USER"], who["NATS_PASSWORD"]), nats.MaxReconnects(-1), nats.ReconnectWait(50*time.Millisecond),
		nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}))
	if err != nil {
		g.t.Fatal(err)
	}
	l := &commandLoad{t: g.t, end: make(chan struct{})}
	l.done.Go(func() {
		defer nc.Close()
		tick := time.NewTicker(loadEvery)
		defer tick.Stop()
		for {
			select {
			case <-l.end:
				return
			case <-tick.C:
			}
			l.sent++
			node := fmt.Sprintf("load-%d", l.sent)
			answer, err := nc.Request(topology.CommandSubject("node", "register"), fmt.Appendf(nil, `{"node":%q}`, node), 5*time.Second)
			if err != nil {
				continue // it may be recorded or not: that it is unclear was said
			}
			var a es.Answer
			if err := json.Unmarshal(answer.Data, &a); err == nil && a.Status == es.StatusAccepted {
				l.accepted = append(l.accepted, node)
			}
		}
	})
	return l
}

// check ends the load, and looks for all that was accepted.
func (l *commandLoad) check(c tool) {
	l.t.Helper()
	close(l.end)
	l.done.Wait()
	l.t.Logf("%d of %d commands were accepted while the servers were restarted", len(l.accepted), l.sent)
	if len(l.accepted) < l.sent/2 || len(l.accepted) == 0 {
		l.t.Errorf("%d of %d commands were accepted while the servers were restarted", len(l.accepted), l.sent)
	}
	found := map[string]bool{}
	c.until("the last command can be read", func() bool {
		for _, n := range strings.Fields(c.must(0, "get", "nodes", "-o", "name").out) {
			found[n] = true
		}
		return found[l.accepted[len(l.accepted)-1]]
	})
	lost := 0
	for _, n := range l.accepted {
		if !found[n] {
			lost++
		}
	}
	if lost > 0 {
		l.t.Errorf("%d of %d accepted commands are lost", lost, len(l.accepted))
	}
}
