package integration

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"catenary/internal/failpoint"
)

// Flags of these tests.
var (
	loadRows = flag.Int("load-rows", 20000, "how many rows of the load set to import; 0 means all")
	// Two hundred kills take about a minute.
	agentKills = flag.Int("agent-kills", 20, "how often to kill the agent of TestAgentKilled")
	killSeed   = flag.Uint64("kill-seed", 0, "seed of the kills; 0 takes a new one")
)

// waitLimit bounds every wait. It is reached only when something is broken.
const waitLimit = time.Minute

// binaries is the folder of the built binary.
var binaries string

// shared is a chain that tests use with names of their own: starting one for each would take most of their time.
var shared *chainProcess

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(testMain(m))
}

func testMain(m *testing.M) int {
	dir, err := os.MkdirTemp("", "catenary-integration-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(dir) }()
	binaries = filepath.Join(dir, "bin")
	args := []string{"build", "-o", binaries + string(filepath.Separator)}
	if failpoint.Enabled {
		args = append(args, "-tags", "failpoints")
	}
	build := exec.Command("go", append(args, "../cmd/catenary", "../cmd/writer", "../cmd/projector", "../cmd/engine", "../cmd/agent")...)
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "build the binaries: %v\n%s", err, out)
		return 1
	}
	shared, err = startChain(filepath.Join(dir, "shared"), "127.0.0.1:0", "interval")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	code := m.Run()
	if err := shared.stop(); err != nil {
		fmt.Fprintf(os.Stderr, "the shared chain: %v\n", err)
		return 1
	}
	return code
}
