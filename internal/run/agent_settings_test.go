package run

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/errors"
	"gopkg.in/yaml.v3"
)

func writeConfig(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "agent.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func loadAgent(args []string, env map[string]string) (AgentSettings, error) {
	return LoadAgentSettings(args, func(name string) string { return env[name] }, &bytes.Buffer{})
}

// TestAgentSettings: flags win over the environment, which wins over the file, which wins over the defaults. Text in the file stays text.
func TestAgentSettings(t *testing.T) {
	t.Parallel()
	config := writeConfig(t, `
node: n1
state: /var/lib/agent
every: 3s
log-level: warn
artifacts: /srv/artifacts
drivers:
  - kind: dir
    name: files
    root: /srv/apps
    keep: 5
    limits: {bytes: 1000}
  - kind: exec
    name: script
    apply: [/bin/deploy, 1.20, true]
  - kind: systemd
    name: units
    unit: "[Service]\nExecStart={{.Version}}"
  - kind: sim
    name: sim
    fails: [1.20, 012]
    takes: 2s
`)
	s, err := loadAgent([]string{"--config", config, "--node", "n2"}, map[string]string{"CATENARY_NODE": "n3", "CATENARY_EVERY": "5s"})
	if err != nil {
		t.Fatal(err)
	}
	if s.Node != "n2" || s.State != "/var/lib/agent" || s.every != 5*time.Second || s.observe != 30*time.Second || s.level.String() != "WARN" {
		t.Errorf("settings are %+v", s)
	}
	drivers, err := s.drivers(&agentArtifacts{})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, d := range drivers {
		names = append(names, d.Describe().Name)
	}
	if got := strings.Join(names, " "); got != "files script units sim" {
		t.Errorf("drivers are %s", got)
	}
}

// TestAgentFlagsWin: every setting that has a flag is taken from it, whatever the file says.
func TestAgentFlagsWin(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"node", "state", "server", "creds", "context", "credentials", "log-level", "http", "traces", "every", "observe", "artifacts", "cache-bytes"} {
		inFile, given := "5s", "7s"
		switch name {
		case "log-level":
			inFile, given = "warn", "error"
		case "cache-bytes":
			inFile, given = "5", "7"
		}
		file := name + ": " + inFile + "\n"
		for needed, value := range map[string]string{"node": "n1", "state": "/s"} {
			if name != needed {
				file += needed + ": " + value + "\n"
			}
		}
		config := writeConfig(t, file)
		read := func(args ...string) string {
			t.Helper()
			s, err := loadAgent(append(args, "--config", config), nil)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			text, err := yaml.Marshal(s)
			if err != nil {
				t.Fatal(err)
			}
			var all map[string]any
			if err := yaml.Unmarshal(text, &all); err != nil {
				t.Fatal(err)
			}
			return fmt.Sprint(all[name])
		}
		if got := read(); got != inFile {
			t.Errorf("%s of the file is %q, want %q", name, got, inFile)
		}
		if got := read("--"+name, given); got != given {
			t.Errorf("--%s gives %q, want %q", name, got, given)
		}
	}
}

func TestAgentSettingsThatCantWork(t *testing.T) {
	t.Parallel()
	const whole = "node: n1\nstate: /s\n"
	for name, c := range map[string]struct {
		args   []string
		config string
		says   string
	}{
		"no node":          {args: []string{"--state", "/s"}, says: "node"},
		"no state":         {args: []string{"--node", "n1"}, says: "state"},
		"a bad name":       {args: []string{"--node", "n\x00", "--state", "/s"}, says: "U+0000"},
		"a bad span":       {args: []string{"--node", "n1", "--state", "/s", "--every", "often"}, says: "every"},
		"a bad level":      {args: []string{"--node", "n1", "--state", "/s", "--log-level", "loud"}, says: "log-level"},
		"an argument":      {args: []string{"n1"}, says: "n1"},
		"no such file":     {args: []string{"--config", "/no/such/file"}, says: "/no/such/file"},
		"unknown setting":  {config: whole + "colour: red\n", says: "colour"},
		"unknown kind":     {config: whole + "drivers: [{kind: magic, name: m}]\n", says: "magic"},
		"unknown in one":   {config: whole + "drivers: [{kind: sim, name: s, speed: 1}]\n", says: "speed"},
		"no room":          {args: []string{"--node", "n1", "--state", "/s", "--cache-bytes", "0"}, says: "cache-bytes"},
		"a driver's fault": {config: whole + "drivers: [{kind: exec, name: e}]\n", says: "line 3"},
	} {
		args := c.args
		if c.config != "" {
			args = []string{"--config", writeConfig(t, c.config)}
		}
		s, err := loadAgent(args, nil)
		if err == nil {
			_, err = s.drivers(&agentArtifacts{})
		}
		if !errors.Is(err, ErrSettings) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: got error %v", name, err)
		}
	}
	for place, says := range map[string]string{"/no/such/dir": "no directory", "web": "none of file:DIR", "https://example.org/": "{sha256}"} {
		_, err := newAgentArtifacts(AgentSettings{State: t.TempDir(), Artifacts: place}, nil)
		if !errors.Is(err, ErrSettings) || !strings.Contains(err.Error(), says) {
			t.Errorf("place %s: got error %v", place, err)
		}
	}
	for user, fits := range map[string]bool{"agent.n1": true, "agent.n2": false, "ann": true, "": true} {
		s := AgentSettings{Node: "n1"}
		_, err := s.bus(func(name string) string { return map[string]string{"NATS_USER": user}[name] }, nil)
		if fits && err != nil || !fits && (!errors.Is(err, ErrSettings) || !strings.Contains(err.Error(), user)) {
			t.Errorf("as %q: got error %v", user, err)
		}
	}
	if _, err := loadAgent([]string{"--help"}, nil); !errors.Is(err, ErrHelp) {
		t.Errorf("help: %v", err)
	}
}
