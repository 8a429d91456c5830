package main

import (
	"strings"
	"testing"
)

// TestNearNames mistypes names: each command says what may have been meant.
func TestNearNames(t *testing.T) {
	t.Parallel()
	c := on(t)
	c.node("near staging")
	c.module("near-frontend")
	c.ok("assign", "near staging", "near-frontend", "--package", "near-frontend@1.20", "--wait", "30s")
	c.ok("record", "publication", "near-frontend@1.20", "--module", "near-frontend", "--wait", "30s")
	for args, says := range map[string]string{
		"get node|near stagin":                         `"near stagin": did you mean 'near staging'?`,
		"get module|near-fronted":                      "did you mean near-frontend?",
		"get assignment|near staging|near-fornted":     "did you mean near-frontend?",
		"history assignment|near staging|near-fronten": "did you mean near-frontend?",
		"blame|near staging|near-fronten":              "did you mean near-frontend?",
		"log|--node=near stagin":                       "did you mean 'near staging'?",
		"as-of now|--module=near-fronten":              "did you mean near-frontend?",
		"report drift|--node=near stagin":              "did you mean 'near staging'?",
		"trace|near-frontend@1.2":                      "did you mean near-frontend@1.20?",
		"trace|near stagin/near-frontend":              `"near stagin": did you mean 'near staging'?`,
	} {
		words := strings.Split(args, "|")
		found := c.must(exitNotFound, append(strings.Fields(words[0]), words[1:]...)...)
		if !strings.Contains(found.err, says) {
			t.Errorf("%s says\n%swant %q", args, found.err, says)
		}
	}
	for _, args := range []string{"diff|near stagin|near staging", "diff|near staging|near stagin"} {
		if found := c.must(exitNotCompared, strings.Split(args, "|")...); !strings.Contains(found.err, "did you mean 'near staging'?") {
			t.Errorf("%s says\n%s", args, found.err)
		}
	}
	if found := c.must(exitNotFound, "as-of", "now", "--node", "near stagin"); !strings.Contains(found.err, "did you mean 'near staging'?") {
		t.Errorf("as-of says\n%s", found.err)
	}
}
