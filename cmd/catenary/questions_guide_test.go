package main

import (
	"os"
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

// commandsIn gives the lines of a page's code blocks that begin with a command, without it. Blocks of a language are output.
func commandsIn(page, command string) []string {
	var found []string
	open, of := false, ""
	for line := range strings.Lines(page) {
		if language, fence := strings.CutPrefix(strings.TrimSpace(line), "```"); fence {
			open, of = !open, language
			continue
		}
		if words, ok := strings.CutPrefix(line, command); ok && open && of == "" {
			found = append(found, strings.TrimSuffix(words, "\n"))
		}
	}
	return found
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
	for _, words := range commandsIn(string(text), "catenary ") {
		want := exitOK
		if strings.HasPrefix(words, "diff ") {
			want = exitDiffers
		}
		// Nothing is refused on the demo; everything else shows something.
		found := c.must(want, shellSplit(t, words)...)
		if strings.TrimSpace(found.out) == "" && !strings.Contains(words, "--refused") {
			t.Errorf("catenary %s shows nothing:\n%s", words, found.err)
		}
		asked++
	}
	if least := 20; asked < least {
		t.Errorf("the guide asks %d questions, fewer than %d: are they still found?", asked, least)
	}
}
