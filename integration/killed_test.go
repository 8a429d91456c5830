package integration

import (
	"maps"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"catenary/es/estest"
)

// killRows is how many rows the killed import has: enough that it lasts for several kills when every event is synced.
const killRows = 6000

// TestKilled kills an import, and the chain under it, again and again at random moments. Then the import is run to its end,
// and nothing may tell the chain from one that was never killed.
func TestKilled(t *testing.T) {
	t.Parallel()
	seed := *killSeed
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	t.Logf("to repeat the kills: -kill-seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	path, versions := loadSlice(t, killRows)

	address, store := freeAddress(t), filepath.Join(t.TempDir(), "store")
	process := up(t, store, address, "fsync")
	c := on(t, process)
	var importer *running
	kills := map[string]int{}
	for range 10 {
		if process == nil {
			process = up(t, store, address, "fsync")
		}
		if importer == nil {
			importer = c.start("import", "deliveries", path, "--wait=false")
		}
		select {
		case <-time.After(time.Duration(20+random.IntN(300)) * time.Millisecond):
		case <-importer.ended:
		}
		if importer.over() {
			break
		}
		victim := []string{"chain", "importer", "both"}[random.IntN(3)]
		kills[victim]++
		if victim != "importer" {
			process.kill()
			process = nil
		}
		if victim != "chain" {
			importer.kill()
			importer = nil
		}
	}
	if len(kills) == 0 {
		t.Fatal("the import was over before the first kill: it needs more rows")
	}
	t.Logf("killed: %v", kills)
	if process == nil {
		up(t, store, address, "fsync")
	}
	if importer != nil {
		<-importer.ended
		// It has outlived its chain, and gone on with the new one by itself; or it began when there was none, and said so.
		if code := importer.cmd.ProcessState.ExitCode(); code != 0 && code != 10 {
			t.Errorf("the import that outlived its chain ended with %d:\n%s", code, importer.talk)
		}
	}
	got := read[imported](c, "import", "deliveries", path)
	if got.Rows != killRows || got.Refused+got.Broken+got.Unclear+len(got.Problems) != 0 {
		t.Errorf("the last import: %+v", got)
	}
	if again := read[imported](c, "import", "deliveries", path); again.Accepted+again.Registered != 0 {
		t.Errorf("the import after the last: %+v, want nothing new", again)
	}
	c.must(0, "verify")

	whole := on(t, up(t, filepath.Join(t.TempDir(), "store"), "127.0.0.1:0", "interval"))
	whole.must(0, "import", "deliveries", path)
	for _, kind := range []string{"assignments", "freezes", "nodes", "modules"} {
		args := []string{"get", kind, "--all", "-o", "json"}
		if diff := cmp.Diff(untold(whole.must(0, args...).out), untold(c.must(0, args...).out)); diff != "" {
			t.Errorf("%s (-never killed +killed):\n%s", kind, diff)
		}
	}
	pairs := slices.SortedFunc(maps.Keys(versions), func(a, b pair) int { return len(versions[b]) - len(versions[a]) })
	inParallel(pairs[:12], func(p pair) {
		if diff := cmp.Diff(versions[p], versionsOf(read[[]change](c, "history", "assignment", p.environment, p.app))); diff != "" {
			t.Errorf("history of %v (-rows +got):\n%s", p, diff)
		}
	})
}

// untold leaves out which event told a node: events of writers that started stand between those of the import.
func untold(records string) string {
	return regexp.MustCompile(`,"told":\d+`).ReplaceAllString(records, "")
}

// running is a call of the tool that goes on.
type running struct {
	cmd   *exec.Cmd
	talk  *estest.Log
	ended chan struct{}
}

// start calls the tool and does not wait. What is still running when the test ends is killed.
func (c tool) start(args ...string) *running {
	c.t.Helper()
	r := &running{talk: &estest.Log{}, ended: make(chan struct{})}
	r.cmd = exec.Command(filepath.Join(binaries, "catenary"), args...)
	r.cmd.Env = quietEnv(binaries, c.url)
	r.cmd.Stderr = r.talk
	if err := r.cmd.Start(); err != nil {
		c.t.Fatal(err)
	}
	go func() {
		defer close(r.ended)
		_ = r.cmd.Wait() // the exit code is looked at by who cares
	}()
	c.t.Cleanup(r.kill)
	return r
}

func (r *running) over() bool {
	select {
	case <-r.ended:
		return true
	default:
		return false
	}
}

// kill ends it as a crash would, and waits until it is gone.
func (r *running) kill() {
	_ = r.cmd.Process.Kill() // it may be gone already
	<-r.ended
}
