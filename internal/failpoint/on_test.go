//go:build failpoints

package failpoint

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/errors"
)

// waitLimit bounds every wait. It is reached only when something is broken.
const waitLimit = 30 * time.Second

// envChild makes this program the one that is made to fail.
const envChild = "FAILPOINT_CHILD"

func TestMain(m *testing.M) {
	if os.Getenv(envChild) == "" {
		os.Exit(m.Run())
	}
	now := Clock(time.Now)
	for n := 1; n <= 3; n++ {
		Pass(WriterBeforeAppend)
		fmt.Println(n, Fail(StoreAnswerLost), Planted(DedupSkipped), time.Until(now()).Round(time.Hour))
	}
}

// child gives a process that passes points three times.
func child(t *testing.T, env ...string) *exec.Cmd {
	t.Helper()
	c := exec.CommandContext(t.Context(), os.Args[0])
	c.Env = append(env, envChild+"=1")
	return c
}

func TestProcessFails(t *testing.T) {
	t.Parallel()
	out, err := child(t, EnvPoints+"=store-answer-lost=error@2", EnvPlanted+"=dedup-skipped").Output()
	if want := "1 <nil> true 0s\n2 a fault was injected true 0s\n3 <nil> true 0s\n"; err != nil || string(out) != want {
		t.Errorf("it says %s, %v, want %s", out, err, want)
	}
}

func TestProcessIsKilled(t *testing.T) {
	t.Parallel()
	c := child(t, EnvPoints+"=writer-before-append=kill@3,store-answer-lost=delay:1ms")
	var said strings.Builder
	c.Stderr = &said
	out, err := c.Output()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Errorf("it ends with %v", err)
	}
	if strings.Count(string(out), "\n") != 2 || !strings.Contains(said.String(), "failpoint writer-before-append: kill at passing 3") {
		t.Errorf("it says\n%s%s", out, &said)
	}
}

func TestProcessIsStopped(t *testing.T) {
	t.Parallel()
	c := child(t, EnvPoints+"=writer-before-append=stop@2")
	said, err := c.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(said).ReadString('\n'); err != nil || !strings.Contains(line, "stop at passing 2") {
		t.Errorf("it says %q, %v", line, err)
	}
	state := func() string {
		text, err := os.ReadFile(filepath.Join("/proc", fmt.Sprint(c.Process.Pid), "stat"))
		if err != nil {
			t.Fatal(err)
		}
		return strings.Fields(string(text))[2]
	}
	tick, limit := time.NewTicker(time.Millisecond), time.After(waitLimit)
	defer tick.Stop()
	for state() != "T" {
		select {
		case <-tick.C:
		case <-limit:
			t.Fatal("it does not stop")
		}
	}
	if err := c.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	if err := c.Wait(); err != nil {
		t.Errorf("gone on with, it ends with %v", err)
	}
}

func TestProcessIsMisled(t *testing.T) {
	t.Parallel()
	for _, env := range []string{EnvPoints + "=nowhere=kill", EnvPlanted + "=moth"} {
		c := child(t, env)
		if out, err := c.CombinedOutput(); c.ProcessState.ExitCode() != exitMisled {
			t.Errorf("%s: it ends with %v and says %s", env, err, out)
		}
	}
}

func TestClockIsOff(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "clock")
	if err := os.WriteFile(file, []byte("-48h\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := child(t, EnvClock+"="+file).Output()
	if err != nil || !strings.Contains(string(out), "-48h") {
		t.Errorf("it says %s, %v", out, err)
	}
}
