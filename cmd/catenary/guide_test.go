package main

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// demo starts the demo chain, which ends with the test, and gives its address.
func demo(t *testing.T) string {
	t.Helper()
	u, err := startUp("--demo", "--store", t.TempDir(), "--durability", "interval")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { u.stop() })
	return u.ready.NATS
}

// TestQuestionsGuide asks all that the guide on questions asks, of the demo it speaks of.
func TestQuestionsGuide(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/guides/questions.md")
	if err != nil {
		t.Fatal(err)
	}
	c := caller{t: t, url: demo(t)}
	asked := 0
	for _, block := range regexp.MustCompile("(?ms)^```\n(.*?)^```$").FindAllStringSubmatch(string(text), -1) {
		for line := range strings.Lines(block[1]) {
			words, ok := strings.CutPrefix(line, "catenary ")
			if !ok {
				continue
			}
			want := exitOK
			if strings.HasPrefix(words, "diff ") {
				want = exitDiffers
			}
			// What nobody refused or reported on the demo may be empty; everything else shows something.
			found := c.must(want, shellSplit(t, words)...)
			if strings.TrimSpace(found.out) == "" && !strings.Contains(words, "--refused") && !strings.Contains(words, "--since") {
				t.Errorf("catenary %sshows nothing:\n%s", words, found.err)
			}
			asked++
		}
	}
	if least := 20; asked < least {
		t.Errorf("the guide asks %d questions, fewer than %d: are they still found?", asked, least)
	}
}
