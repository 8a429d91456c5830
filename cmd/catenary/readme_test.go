package main

import (
	"os"
	"os/exec"
	"regexp"
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
	taken := 0
	for _, block := range regexp.MustCompile("(?ms)^```\n(.*?)^```$").FindAllStringSubmatch(string(text), -1) {
		for line := range strings.Lines(block[1]) {
			words, ok := strings.CutPrefix(line, "bin/catenary ")
			if !ok {
				continue
			}
			want := exitOK
			if strings.Contains(line, "module forget") {
				want = exitRefused // "rules refuse what would break the chain"
			}
			found := c.must(want, shellSplit(t, words)...)
			if want == exitOK && strings.TrimSpace(found.out) == "" {
				t.Errorf("%sshows nothing", line)
			}
			taken++
		}
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
