package integration

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"catenary/chain"
	"catenary/events"
)

// handingScript brings the modules db and web to a node. db hands on its port, which somebody has written down beside it; web keeps what it was
// handed, and with what news. A port with a gate is handed on once the gate is open.
const handingScript = `
case "$CATENARY_MODULE" in
db)
	if [ -e gated ]; then : >waiting; while [ ! -e open ]; do sleep 0.02; done; fi
	echo "port=$(cat port)" >"$CATENARY_OUTPUTS" ;;
web)
	echo "$CATENARY_VERSION: port ${CATENARY_INPUT_DB_PORT:-none}, changed: ${CATENARY_CHANGED:-none}" >>handed
	cat >record ;;
esac
echo "$CATENARY_VERSION" >"$CATENARY_MODULE"
`

// TestOutputsOverTheWholeChain walks rollouts in which web is handed what db hands on, by an engine and an agent with commands of the operator's: also
// when the agent is killed before it has taken what its command hands on, and the engine before it has heard of it (case E14).
func TestOutputsOverTheWholeChain(t *testing.T) {
	t.Parallel()
	address, store := freeAddress(t), filepath.Join(t.TempDir(), "store")
	up := func() *chainProcess { return up(t, store, address, "interval") }
	bus := up()
	c := tool{t: t, url: bus.url}
	a := newAgent(t, c, "n1")
	path := func(name string) string { return filepath.Join(a.dir, name) }
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(path(name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	there := func(name, text string) {
		t.Helper()
		tick, limit := time.NewTicker(10*time.Millisecond), time.After(waitLimit)
		defer tick.Stop()
		for {
			if found, err := os.ReadFile(path(name)); err == nil && strings.TrimSpace(string(found)) == text {
				return
			}
			select {
			case <-tick.C:
			case <-limit:
				t.Fatalf("%s never says %q; the agent says\n%s", name, text, a.talk)
			}
		}
	}
	config, err := json.Marshal(map[string]any{"node": "n1", "state": path("state"), "every": "200ms", "observe": "1s", "drivers": []map[string]any{{
		"kind": "exec", "name": "script", "dir": a.dir,
		"apply": []string{"/bin/sh", "-ec", handingScript}, "observe": []string{"/bin/sh", "-ec", `test ! -e "$CATENARY_MODULE" || cat "$CATENARY_MODULE"`},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	write("agent.yaml", string(config))
	write("all.yaml", "tiers:\n  - name: all\n    timeout: 10m\n")
	write("port", "5432")
	c.node("n1")
	for _, body := range []string{`{"module":"db"}`, `{"module":"web","requires":["db"]}`} {
		c.must(0, "send", "module", "register", "--data", body)
	}
	for _, m := range []string{"db", "web"} {
		for v := range 5 {
			c.must(0, "send", "publication", "record", "--data", fmt.Sprintf(`{"package":{"name":%q,"version":"%d"},"module":%q}`, m, v+1, m))
		}
	}
	a.start()
	c.must(0, "assign", "n1", "db", "--package", "db@1")
	c.must(0, "node", "wait-converged", "n1", "--timeout", "60s")
	c.must(0, "assign", "n1", "web", "--package", "web@1")
	c.must(0, "node", "wait-converged", "n1", "--timeout", "60s")

	start := func(id string, set ...string) {
		t.Helper()
		args := []string{"rollout", "plan", "--strategy", path("all.yaml"), "--as", id}
		for _, s := range set {
			args = append(args, "--set", s)
		}
		c.must(0, args...)
		c.must(0, "rollout", "start", id)
	}
	write("port", "5433")
	start("two", "db=db@2", "web=web@2")
	c.must(0, "rollout", "wait", "two", "--timeout", "60s")
	start("three", "web=web@3")
	c.must(0, "rollout", "wait", "three", "--timeout", "60s")

	// The command of the agent outlives it, and leaves what it hands on for the next one to find.
	write("port", "5434")
	write("gated", "")
	start("four", "db=db@4", "web=web@4")
	there("waiting", "")
	a.kill()
	write("open", "")
	there("db", "4")
	bus.kill()
	a.start() // without a bus: what it has found is in its outbox
	up()
	c.must(0, "rollout", "wait", "four", "--timeout", "60s")
	start("five", "db=db@5", "web=web@5")
	c.must(0, "rollout", "wait", "five", "--timeout", "60s")
	a.stop()

	there("handed", strings.Join([]string{
		"1: port 5432, changed: CATENARY_INPUT_DB_PORT",
		"2: port 5433, changed: CATENARY_INPUT_DB_PORT",
		"3: port 5433, changed: none",
		"4: port 5434, changed: CATENARY_INPUT_DB_PORT",
		"5: port 5434, changed: none",
	}, "\n"))
	var record chain.Assignment
	text, err := os.ReadFile(path("record"))
	if err == nil {
		err = json.Unmarshal(text, &record)
	}
	db := events.StepName{Node: "n1", Module: "db"}
	if diff := cmp.Diff([]events.Handed{{StepName: db, Values: map[string]string{"port": "5434"}}}, record.Inputs); err != nil || diff != "" {
		t.Errorf("on standard input it gets, with %v (-want +got):\n%s", err, diff)
	}
	whole := read[chain.WholeRollout](c, "rollout", "show", "four")
	if len(whole.Steps) != 2 {
		t.Fatalf("its steps are %+v", whole.Steps)
	}
	by, to := whole.Steps[0], whole.Steps[1]
	if by.Driver == nil || by.Driver.Name != "script" || by.Driver.Configuration == "" || by.Outputs["port"] != "5434" || by.By != events.SettledByReport || by.Attempt != 1 {
		t.Errorf("db ends with %+v", by)
	}
	want := []events.Handed{{StepName: db, Values: map[string]string{"port": "5434"}, Changed: []string{"port"}}}
	if diff := cmp.Diff(want, to.Inputs); diff != "" || to.Driver == nil {
		t.Errorf("web ends with driver %+v, and was handed (-want +got):\n%s", to.Driver, diff)
	}
	if shown := c.must(0, "rollout", "show", "four").out; !strings.Contains(shown, "handed by db on n1: port=5434 (changed)") || !strings.Contains(shown, "hands on: port=5434") {
		t.Errorf("show says\n%s", shown)
	}
}
