package integration

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

const (
	// diskBytes is the size of the test's disk, a tmpfs; fillerBytes leaves a little of it, less than nothing is appended into.
	diskBytes   = 200 << 20
	fillerBytes = 150 << 20
	// mountScript makes the disk in a place of its own, with a store that thinks it has more.
	mountScript = `mount -t tmpfs -o size="$1",mode=700 catenary-test "$2" && mkdir "$2/store" && echo '{"max_store_bytes": 8589934592}' > "$2/store/limits.json" &&
		exec "$3" up --store "$2/store" --listen 127.0.0.1:0 --durability interval`
)

// onSmallDisk starts a chain on a small disk of its own, which only its process sees, and gives the way there for others. Without the rights to
// mount, a process may still do so among users of its own. Where not even that is allowed, the disk stays as large as it is, and small is
// false: the test then fills nothing.
func onSmallDisk(t *testing.T) (c *chainProcess, disk string, small bool) {
	t.Helper()
	at := t.TempDir()
	cmd := exec.Command("sh", "-c", mountScript, "sh", fmt.Sprint(diskBytes), at, filepath.Join(binaries, "catenary"))
	cmd.Env = quietEnv(at, "")
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}
	if os.Getuid() != 0 {
		cmd.SysProcAttr.Cloneflags = syscall.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}
	}
	c, err := startProcess(cmd)
	if err != nil {
		t.Logf("no small disk can be made here: %v", err)
		return up(t, filepath.Join(at, "store"), "127.0.0.1:0", "interval"), at, false
	}
	t.Cleanup(c.kill)
	return c, filepath.Join("/proc", fmt.Sprint(c.cmd.Process.Pid), "root", at), true
}

// fillDisk fills the disk with so many bytes at most; it gives what takes them away again.
func fillDisk(t *testing.T, disk string, bytes int) (free func()) {
	t.Helper()
	path := filepath.Join(disk, "filler")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	block := make([]byte, 1<<20)
	for written := 0; written < bytes; written += len(block) {
		if _, err := f.Write(block); err != nil {
			break // it is full
		}
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
}

// TestFullDisk is case A07: a disk that is filled and freed again. Commands are refused at once with the reason, what stands can be read, and
// commands are taken again without anybody's doing: at once when there was a little room left, and when there was none after a start that
// the process makes itself.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	chain, disk, small := onSmallDisk(t)
	c := on(t, chain)
	c.node("n1")
	taken := []string{"n1"}
	for _, fill := range []struct {
		name  string
		bytes int
	}{{"nearly", fillerBytes}, {"wholly", 2 * diskBytes}} {
		if !small {
			fill.bytes = 0
		}
		free := fillDisk(t, disk, fill.bytes)
		if small {
			// What was on its way when the last byte went is not settled before the start, and neither is what comes after it.
			sendUntil(c, fill.name+"-full", func(got called) bool {
				return got.code == 5 && strings.Contains(got.err, "store-full") && strings.Contains(got.err, "free some of the disk") ||
					fill.name == "wholly" && got.code == exitTimedOut && strings.Contains(got.err, "not-settled")
			})
			// An event may have been stored for which the buckets have no room left: what is read says so.
			if got := c.feed("", "get", "node", "n1"); got.code != 0 && (got.code != exitStale || fill.name == "nearly") || !strings.Contains(got.out, "n1") {
				t.Errorf("%s full, get shows %+v", fill.name, got)
			}
		}
		if fill.name == "wholly" && small {
			// Where every command was refused in time nothing is written. What is to be kept is: the room for events is not looked at for that.
			await(t, "the server that can not write", func() bool {
				c.feed("", "send", "node", "register", "--durable", "--timeout", "1s", "--data", `{"node":"n1"}`)
				return strings.Contains(chain.stderr.String(), "can't write to its store")
			})
		}
		free()
		if fill.name == "wholly" && small {
			// The event stream may still have been writable, and take commands before the start.
			await(t, "the start", func() bool { return strings.Contains(chain.stderr.String(), "starting the chain again") })
		}
		taken = append(taken, sendUntil(c, "after-"+fill.name, func(got called) bool { return got.code == 0 }))
	}
	if small && strings.Count(chain.stderr.String(), "starting the chain again") != 1 {
		t.Errorf("it was not started again just once:\n%s", chain.stderr)
	}
	for _, node := range taken {
		await(t, node, func() bool { return c.feed("", "get", "node", node).code == 0 })
	}
	c.must(0, "verify")
	chain.down(t)
}

// sendUntil registers nodes, one after another, until that is answered as it should be: the disk is looked at now and then.
func sendUntil(c tool, name string, answered func(called) bool) (node string) {
	c.t.Helper()
	tries := 0
	await(c.t, "an answer about "+name, func() bool {
		tries++
		node = fmt.Sprintf("%s-%d", name, tries)
		return answered(c.feed("", "send", "node", "register", "--timeout", "10s", "--data", fmt.Sprintf(`{"node":%q}`, node)))
	})
	return node
}
