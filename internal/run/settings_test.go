package run

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cockroachdb/errors"
	"github.com/google/go-cmp/cmp"

	"catenary/audit/proof"
	"catenary/es/dispatch"
	"catenary/internal/topology"
	"catenary/rollout"
)

func load(args []string, env map[string]string) (Settings, error) {
	return LoadSettings("program", "Program does things.", args, func(name string) string { return env[name] }, &bytes.Buffer{})
}

// TestSettingsOrigins: flags win over the environment, which wins over the file, which wins over the defaults.
func TestSettingsOrigins(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "settings.yaml")
	if err := os.WriteFile(file, []byte("server: nats://file:1\nlog-level: warn\nreplicas: 3\nbucket-bytes: 1000\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	found, err := load([]string{"--config", file, "--server", "nats://flag:1"}, map[string]string{
		"CATENARY_SERVER": "nats://environment:1", "CATENARY_LOG_LEVEL": "error", "CATENARY_BUCKET_BYTES": "2000",
	})
	if err != nil {
		t.Fatal(err)
	}
	want := Settings{
		Config: file, Server: "nats://flag:1", LogLevel: "error", Durability: "fsync", Replicas: 3,
		EventStoreBytes: topology.DefaultEventStoreBytes, BucketBytes: 2000, CheckpointEvery: proof.DefaultEvery, CheckpointEvents: proof.DefaultEvents,
		SnapshotEvery: dispatch.DefaultSnapshotEvery, LeaseTTL: rollout.DefaultTTL,
	}
	if diff := cmp.Diff(want, found); diff != "" {
		t.Errorf("settings (-want +found):\n%s", diff)
	}
	if found, err := load(nil, map[string]string{"CATENARY_CONFIG": file}); err != nil || found.Replicas != 3 {
		t.Errorf("the file named by the environment gave %+v (%v)", found, err)
	}
}

func TestSettingsRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for _, c := range []struct {
		name string
		args []string
		says string
	}{
		{"an unknown flag", []string{"--oops"}, "oops"},
		{"an argument", []string{"up"}, `"up"`},
		{"durability", []string{"--durability", "none"}, "fsync or interval"},
		{"replicas", []string{"--replicas", "2"}, "1, 3 or 5"},
		{"a limit", []string{"--bucket-bytes", "0"}, "bucket-bytes"},
		{"snapshots", []string{"--snapshot-every", "0"}, "snapshot-every"},
		{"a span", []string{"--checkpoint-every", "0s"}, "checkpoint-every"},
		{"a loss without a number", []string{"--accept-reason", "the disk is gone"}, "accept-truncated-at"},
		{"a loss without a reason", []string{"--accept-truncated-at", "50"}, "accept-reason"},
		{"a level", []string{"--log-level", "loud"}, "debug, info"},
		{"a file that is not there", []string{"--config", filepath.Join(dir, "none")}, "none"},
		{"a file that is no YAML", []string{"--config", write("a", "{")}, "settings in"},
		{"a name in the file", []string{"--config", write("b", "sever: x")}, "sever"},
		{"a value in the file", []string{"--config", write("c", "replicas: many")}, "replicas"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, err := load(c.args, nil)
			if !errors.Is(err, ErrSettings) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("error %v, want one marked ErrSettings with a word on %q", err, c.says)
			}
		})
	}
}

func TestSettingsHelp(t *testing.T) {
	t.Parallel()
	var help bytes.Buffer
	_, err := LoadSettings("program", "Program does things.", []string{"--help"}, func(string) string { return "" }, &help)
	if !errors.Is(err, ErrHelp) {
		t.Errorf("error %v, want ErrHelp", err)
	}
	for _, word := range []string{"Program does things.", "--durability", "CATENARY_"} {
		if !strings.Contains(help.String(), word) {
			t.Errorf("the help does not show %q:\n%s", word, help.String())
		}
	}
}

func TestVersionIsSemantic(t *testing.T) {
	t.Parallel()
	for version, want := range map[string]string{
		"v1.2.3": "1.2.3", "v1.2.3-rc.1": "1.2.3-rc.1", "v0.0.0-20260501073445-0123456789ab+dirty": "0.0.0-20260501073445-0123456789ab+dirty", "(devel)": unreleased, "": unreleased,
	} {
		if found := semantic(version); found != want {
			t.Errorf("version %q is %q, want %q", version, found, want)
		}
	}
}
