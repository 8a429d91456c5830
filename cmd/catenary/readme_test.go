package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestREADME takes the README's tour, line by line, as a newcomer does.
func TestREADME(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	c := caller{t: t, url: demo(t)}
	taken, dir := 0, t.TempDir()
	for _, words := range commandsIn(string(text), "bin/catenary ") {
		want := exitOK
		if strings.Contains(words, "module forget") {
			want = exitRefused // "rules refuse what would break the chain"
		}
		args := shellSplit(t, words)
		if args[0] == "backup" {
			args[1] = filepath.Join(dir, args[1]) // nothing is left beside the sources
		}
		found := c.must(want, args...)
		if want == exitOK && strings.TrimSpace(found.out) == "" {
			t.Errorf("%s shows nothing", words)
		}
		taken++
	}
	if taken < 10 {
		t.Errorf("the tour has %d steps: is it still found?", taken)
	}
}

// shellSplit gives a command's arguments as a shell does.
func shellSplit(t *testing.T, words string) []string {
	t.Helper()
	out, err := exec.Command("sh", "-c", `printf '%s\n' `+words).Output()
	if err != nil {
		t.Fatalf("%s: %v", words, err)
	}
	return strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
}
