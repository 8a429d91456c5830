package main

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"catenary/internal/health"
)

// TestMonitoringGuide calls what the guide on monitoring calls, of a chain of which all is well, and makes sure that it names the checks there are.
func TestMonitoringGuide(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/guides/monitoring.md")
	if err != nil {
		t.Fatal(err)
	}
	c := caller{t: t, url: demo(t)}
	called := 0
	for _, words := range commandsIn(string(page), "catenary ") {
		if found := c.ok(shellSplit(t, words)...); strings.TrimSpace(found.out) == "" {
			t.Errorf("catenary %s shows nothing:\n%s", words, found.err)
		}
		called++
	}
	if called < 4 {
		t.Errorf("the guide has %d calls: are they still found?", called)
	}
	known := map[string]bool{}
	for _, m := range regexp.MustCompile("`([^`\n]+)`").FindAllStringSubmatch(string(page), -1) {
		known[m[1]] = true
	}
	for _, report := range read[struct{ Well []struct{ About string } }](c, "doctor", "--all").Well {
		_, check, of := strings.Cut(report.About, ": ")
		switch {
		case !of, check == health.CheckWriter, check == health.CheckProjector, check == health.CheckEngine, strings.HasPrefix(check, health.CheckView), strings.HasSuffix(check, " bus"):
		case !known[check]:
			t.Errorf("the guide does not name the check %q", check)
		}
	}
}
