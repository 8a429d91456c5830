package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"catenary/chain"
)

// TestRolloutGuide walks a rollout that fails in its second tier and goes back by itself, as the guide has it.
func TestRolloutGuide(t *testing.T) {
	t.Parallel()
	walkGuide(t, "rollout.md", func(c caller, text string) string {
		if !strings.Contains(text, "BACK") {
			return text
		}
		var back string
		eventually(t, "the rollout is taken back", func() bool {
			back = read[chain.Rollout](c, "get", "rollout", "till-1.1").RevertedBy
			return back != ""
		})
		return strings.ReplaceAll(text, "BACK", back)
	})
}

// TestRestoreGuide takes a fleet back to how it was a week ago, as the guide has it.
func TestRestoreGuide(t *testing.T) {
	t.Parallel()
	walkGuide(t, "restore-last-week.md", func(_ caller, text string) string { return text })
}

// walkGuide does what a guide says, on a chain of its own with an engine: it writes the files of its YAML blocks, runs the commands of its plain
// ones, and looks for the lines of its text blocks in what the command before has shown. What only reads is asked until it shows them, since the
// engine goes on meanwhile.
func walkGuide(t *testing.T, name string, fill func(caller, string) string) {
	t.Helper()
	guide, err := os.ReadFile("../../docs/guides/" + name)
	if err != nil {
		t.Fatal(err)
	}
	u := started(t, "--store", t.TempDir(), "--durability", "interval")
	c := caller{t: t, url: u.ready.NATS}
	dir := t.TempDir()
	blocks := regexp.MustCompile("(?ms)^```(\\w*)\n(.*?)^```$").FindAllStringSubmatch(string(guide), -1)
	for _, b := range blocks {
		if file, ok := strings.CutPrefix(strings.SplitN(b[2], "\n", 2)[0], "# "); b[1] == "yaml" && ok {
			if err := os.WriteFile(filepath.Join(dir, file), []byte(b[2]), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	var last []string
	var shown called
	taken, compared := 0, 0
	for _, b := range blocks {
		switch b[1] {
		case "":
			for step := range strings.Lines(b[2]) {
				words, ok := strings.CutPrefix(strings.TrimSpace(step), "catenary ")
				if !ok {
					t.Fatalf("%q is no command of the tool", step)
				}
				code := exitOK
				words, wanted, ok := strings.Cut(words, "  # exit code ")
				if ok {
					if code, err = strconv.Atoi(wanted); err != nil {
						t.Fatalf("%q: %v", step, err)
					}
				}
				last = shellSplit(t, fill(c, words))
				for i, word := range last {
					if strings.HasSuffix(word, ".yaml") {
						last[i] = filepath.Join(dir, word)
					}
				}
				if onlyReads(last) {
					eventually(t, strings.Join(last, " ")+" ends with "+strconv.Itoa(code), func() bool { return c.call(last...).code == code })
				}
				if shown = c.must(code, last...); strings.TrimSpace(shown.out+shown.err) == "" {
					t.Errorf("%s shows nothing", step)
				}
				taken++
			}
		case "text":
			want := fill(c, b[2])
			lacks := lacking(want, shown.out+shown.err)
			if lacks != "" && onlyReads(last) {
				eventually(t, strings.Join(last, " ")+" shows "+lacks, func() bool {
					shown = c.call(last...)
					return lacking(want, shown.out+shown.err) == ""
				})
			} else if lacks != "" {
				t.Fatalf("%q shows no line %q:\n%s%s", last, lacks, shown.out, shown.err)
			}
			compared++
		}
	}
	if taken < 20 || compared < 5 {
		t.Errorf("the guide has %d commands and %d outputs: are they still found?", taken, compared)
	}
}

// onlyReads says whether a command changes nothing, so that it may be given again.
func onlyReads(words []string) bool {
	switch words[0] {
	case "as-of", "blame", "diff", "watch":
		return true
	case "rollout":
		return words[1] == "why" || words[1] == "show" || words[1] == "ls"
	}
	return false
}

// lacking gives the first of the lines that an output lacks. They stand in it in their order, whatever is between them; the width of gaps does
// not count, and an ellipsis is anything.
func lacking(lines, output string) string {
	var found []string
	for l := range strings.Lines(output) {
		found = append(found, strings.Join(strings.Fields(l), " "))
	}
	at := 0
	for l := range strings.Lines(lines) {
		want := strings.Join(strings.Fields(l), " ")
		pattern := regexp.MustCompile("^.*" + strings.ReplaceAll(regexp.QuoteMeta(want), "…", ".*") + "$")
		for at < len(found) && !pattern.MatchString(found[at]) {
			at++
		}
		if at == len(found) {
			return want
		}
		at++
	}
	return ""
}

// TestLacking is the guides' own measure.
func TestLacking(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ lines, output, want string }{
		{"a  b\nc …\n", "x\na b\ny\nc 12:00\n", ""},
		{"c\na\n", "a\nc\n", "a"},
		{"a …\n", "b\n", "a …"},
	} {
		if found := lacking(c.lines, c.output); found != c.want {
			t.Errorf("%q in %q lacks %q, want %q", c.lines, c.output, found, c.want)
		}
	}
}
