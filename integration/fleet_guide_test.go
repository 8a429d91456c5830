package integration

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"catenary/chain"
)

// TestFleetGuide takes a release over five agents and another one back again, as the guide has it: the built binaries, files, health checks.
func TestFleetGuide(t *testing.T) {
	t.Parallel()
	guide, err := os.ReadFile(filepath.Join("..", "docs", "guides", "fleet.md"))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	process := up(t, filepath.Join(dir, "store"), "127.0.0.1:0", "interval")
	c := on(t, process)
	env := append(quietEnv(dir, process.url), "PATH="+binaries+":"+os.Getenv("PATH"))
	var agents []*agentProcess
	back := ""
	fill := func(text string) string {
		if strings.Contains(text, "BACK") && back == "" {
			back = c.takenBack("web-2.0")
		}
		return strings.ReplaceAll(text, "BACK", back)
	}
	steps, compared := 0, 0
	last := ""
	run := func() string {
		cmd := exec.CommandContext(t.Context(), "sh", "-ec", fill(last))
		var out bytes.Buffer
		cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = dir, env, &out, &out
		if err := cmd.Run(); err != nil {
			t.Fatalf("%s%v\n%s", last, err, &out)
		}
		return out.String()
	}
	shown := ""
	for _, block := range regexp.MustCompile("(?ms)^```(\\w*)\n(.*?)^```$").FindAllStringSubmatch(string(guide), -1) {
		switch kind, text := block[1], block[2]; {
		case kind == "yaml":
			if err := os.WriteFile(filepath.Join(dir, "three.yaml"), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		case kind == "text":
			compared++
			want := pattern(fill(text))
			// What was said on a node comes when it comes: the log of it is looked at again.
			if strings.HasPrefix(last, "catenary logs") {
				c.until("the log is\n"+fill(text), func() bool {
					shown = run()
					return want.MatchString(shown)
				})
			}
			if !want.MatchString(shown) {
				t.Errorf("what is shown is not\n%s\nbut\n%s", fill(text), shown)
			}
		case strings.Contains(text, "agent --config"):
			for _, n := range []string{"n1", "n2", "n3", "n4", "n5"} {
				a := newAgentIn(t, c, n, dir, filepath.Join(dir, n, "agent.yaml"))
				a.start()
				agents = append(agents, a)
			}
		default:
			steps++
			last = text
			shown = run()
		}
	}
	if steps < 12 || compared < 9 || len(agents) != 5 {
		t.Errorf("the guide has %d steps, %d outputs, %d agents: are they still found?", steps, compared, len(agents))
	}
	for _, a := range agents {
		a.stop()
	}
	c.must(0, "verify")
	process.down(t)
}

// pattern finds lines of a guide: an ellipsis is anything, and the width of gaps does not count. A failure may say its lines on either stream, so
// what an ellipsis begins or ends may stand anywhere.
func pattern(lines string) *regexp.Regexp {
	var all []string
	for word := range strings.FieldsSeq(lines) {
		all = append(all, strings.ReplaceAll(regexp.QuoteMeta(word), "…", ".*?"))
	}
	return regexp.MustCompile("(?s)" + strings.Join(all, `\s+`))
}

// takenBack gives the rollout that takes another one back, as soon as there is one.
func (c tool) takenBack(rollout string) (back string) {
	c.t.Helper()
	c.until("rollout "+rollout+" is taken back", func() bool {
		back = read[chain.Rollout](c, "get", "rollout", rollout).RevertedBy
		return back != ""
	})
	return back
}
