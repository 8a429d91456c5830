package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"catenary/chain"
)

// TestIncidentGuide goes through the guide on incidents, line by line, over the demo's chain.
func TestIncidentGuide(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/guides/incident.md")
	if err != nil {
		t.Fatal(err)
	}
	u := started(t, "--demo", "--store", t.TempDir(), "--durability", "interval")
	c := caller{t: t, url: u.ready.NATS}
	c.must(exitRefused, "send", "module", "forget", "--data", `{"module":"web"}`) // something to be found among what was refused
	dir, taken := t.TempDir(), 0
	for _, block := range regexp.MustCompile("(?ms)^```\n(.*?)^```$").FindAllStringSubmatch(string(text), -1) {
		for step := range strings.Lines(block[1]) {
			words, ok := strings.CutPrefix(strings.TrimSpace(step), "catenary ")
			if !ok {
				t.Errorf("%q is no command of the tool", step)
				continue
			}
			words, into, redirected := strings.Cut(words, " > ")
			var args []string
			for _, word := range regexp.MustCompile(`"[^"]*"|\S+`).FindAllString(words, -1) {
				switch word = strings.Trim(word, `"`); {
				case word == "ID":
					word = someone(c)
				case word == "$(cat chain.key)":
					key, err := os.ReadFile(filepath.Join(dir, "chain.key"))
					if err != nil {
						t.Fatal(err)
					}
					word = strings.TrimSpace(string(key))
				case strings.HasSuffix(word, ".checkpoint"), strings.HasSuffix(word, ".json"), strings.HasSuffix(word, ".ndjson"):
					word = filepath.Join(dir, word)
				}
				args = append(args, word)
			}
			found := c.ok(args...)
			if redirected {
				if err := os.WriteFile(filepath.Join(dir, into), []byte(found.out), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if strings.TrimSpace(found.out) == "" && !strings.Contains(words, " -o ") {
				t.Errorf("%s shows nothing", step)
			}
			taken++
		}
	}
	if taken < 12 {
		t.Errorf("the guide has %d steps: is it still found?", taken)
	}
	c.ok("audit", "verify", "--checkpoint", filepath.Join(dir, "before.checkpoint"))
}

// someone gives the opaque id of a person who only stands in commands.
func someone(c caller) string {
	c.t.Helper()
	for _, a := range read[[]struct {
		ID string `json:"id"`
		chain.Actor
	}](c, "audit", "actors") {
		if a.Name == "ann" {
			return a.ID
		}
	}
	return "nobody"
}
