package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// TestBackupGuide goes through the guide on backups, line by line: a chain runs until the next one is started, or its store is lost.
func TestBackupGuide(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/guides/backup.md")
	if err != nil {
		t.Fatal(err)
	}
	dir, taken := t.TempDir(), 0
	path := regexp.MustCompile(`^(backups/\S+|catenary-data\S*|restored\S*|audit\.db)$`)
	acceptable := regexp.MustCompile(`--accept-truncated-at (\d+)`)
	var running *upped
	var refused called
	end := func() {
		if running == nil {
			return
		}
		if code := running.stop(); code != exitOK {
			t.Fatalf("it ended with %d:\n%s", code, running.stderr.String())
		}
		running = nil
	}
	for _, block := range regexp.MustCompile("(?ms)^```\n(.*?)^```$").FindAllStringSubmatch(string(text), -1) {
		for step := range strings.Lines(block[1]) {
			taken++
			words, exit, _ := strings.Cut(strings.TrimSpace(step), "  # exit code ")
			want, _ := strconv.Atoi(exit)
			args := shellSplit(t, words)
			for i, word := range args {
				if path.MatchString(word) {
					args[i] = filepath.Join(dir, word)
				}
				if m := acceptable.FindStringSubmatch(refused.err); word == "N" && m != nil {
					args[i] = m[1]
				}
			}
			switch {
			case args[0] == "cp":
				if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
					t.Fatalf("%s: %v\n%s", words, err, out)
				}
			case args[0] != "catenary":
				t.Fatalf("%q is no command of the tool", step)
			case args[1] == "up" && want == exitOK:
				end()
				running = started(t, append(args[2:], "--durability", "interval")...)
			case args[1] == "up":
				end()
				refused = on(t).must(want, append(args[1:], "--listen", "127.0.0.1:0", "--durability", "interval")...)
				if !strings.Contains(refused.err, "audit store has seen event") {
					t.Errorf("%s says\n%swant that the audit store has seen more", words, refused.err)
				}
			case args[1] == "restore":
				end()
				on(t).ok(args[1:]...)
			default:
				found := caller{t: t, url: running.ready.NATS}.must(want, args[1:]...)
				if strings.TrimSpace(found.out+found.err) == "" {
					t.Errorf("%s shows nothing", words)
				}
			}
		}
	}
	end()
	if taken < 13 {
		t.Errorf("the guide has %d steps: are they still found?", taken)
	}
}
