package integration

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestAgentGuide does what the guide says, in a folder of its own: its configuration, its commands, its agent.
func TestAgentGuide(t *testing.T) {
	t.Parallel()
	guide, err := os.ReadFile(filepath.Join("..", "docs", "guides", "agent.md"))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	chain := up(t, filepath.Join(dir, "store"), "127.0.0.1:0", "interval")
	a := newAgentIn(t, on(t, chain), "n1", dir, filepath.Join(dir, "agent.yaml"))
	taken := 0
	for _, block := range regexp.MustCompile("(?ms)^```(yaml)?\n(.*?)^```$").FindAllStringSubmatch(string(guide), -1) {
		if block[1] == "yaml" {
			if err := os.WriteFile(a.config, []byte(block[2]), 0o600); err != nil {
				t.Fatal(err)
			}
			continue
		}
		for line := range strings.Lines(block[2]) {
			taken++
			if strings.HasPrefix(line, "agent ") {
				a.start()
				continue
			}
			cmd := exec.Command("sh", "-c", filepath.Join(binaries, strings.TrimSpace(line)))
			cmd.Dir, cmd.Env = dir, quietEnv(dir, chain.url)
			if err := os.MkdirAll(filepath.Join(dir, "catenary-data"), 0o700); err != nil {
				t.Fatal(err)
			}
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("%s: %v\n%s\nthe agent says:\n%s", line, err, out, a.talk)
			}
			if strings.Contains(line, "get assignment") {
				if found, err := os.ReadFile(filepath.Join(dir, "hello.txt")); err != nil || string(found) != "1.0\n" {
					t.Errorf("on the node there is %q, %v", found, err)
				}
			}
		}
	}
	if taken < 10 {
		t.Errorf("the guide has %d steps: are they still found?", taken)
	}
	if _, err := os.Stat(filepath.Join(dir, "hello.txt")); err == nil {
		t.Error("what was to be taken away is still there")
	}
	a.stop()
}
