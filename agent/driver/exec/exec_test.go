package exec_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/errors"
	"github.com/google/go-cmp/cmp"

	"catenary/agent/driver"
	"catenary/agent/driver/drivertest"
	"catenary/agent/driver/exec"
	"catenary/agent/process"
	"catenary/events"
)

func shell(script string) []string { return []string{"/bin/sh", "-ec", script} }

func open(t *testing.T, c exec.Config) *exec.Driver {
	t.Helper()
	d, err := exec.New(c, t.TempDir(), "1.0.0")
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// keeper is a command that keeps the version of each module in a file.
func keeper(dir string) exec.Config {
	file := `f="` + dir + `/$(printf %s "$CATENARY_MODULE" | tr '/ ' '__')"; `
	return exec.Config{
		Name:       "keeper",
		CheckFirst: shell(`test "$CATENARY_VERSION" != odd || exit 69`),
		Apply:      shell(file + `case "$CATENARY_VERSION" in *FAILS) echo "it FAILS"; exit 1;; esac; echo "$CATENARY_VERSION" >"$f"`),
		Remove:     shell(file + `rm -f "$f"`),
		Observe:    shell(file + `test ! -e "$f" || cat "$f"`),
	}
}

func TestSuite(t *testing.T) {
	t.Parallel()
	versions := []string{"1.20", "2", "3-FAILS"}
	version := func(_ *testing.T, task *driver.Task, version int) {
		task.Package = &events.Package{Name: task.Module, Version: versions[version-1]}
	}
	unsuited := func(task *driver.Task) { task.Package.Version = "odd" }
	drivertest.Run(t, func(t *testing.T) drivertest.Subject {
		config := keeper(t.TempDir())
		return drivertest.Subject{Open: func(t *testing.T) driver.Driver { return open(t, config) }, Version: version, Unsuited: unsuited}
	})
	t.Run("without observe", func(t *testing.T) {
		t.Parallel()
		drivertest.Run(t, func(t *testing.T) drivertest.Subject {
			config := keeper(t.TempDir())
			config.Observe = nil
			return drivertest.Subject{Open: func(t *testing.T) driver.Driver { return open(t, config) }, Version: version, Unsuited: unsuited, Blind: true}
		})
	})
}

func TestWhatACommandIsTold(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	d := open(t, exec.Config{Name: "look", Apply: shell(`env | grep ^CATENARY_ | grep -vE 'OUTPUTS|DATA|COMMAND' | sort; cat`), Dir: dir})
	record := `{"node":"n1","provisioning":{ "a": 1.0 }}`
	var said strings.Builder
	_, err := d.Apply(t.Context(), driver.Task{
		Node: "n1", Module: "web", Reference: events.Reference{Package: &events.Package{Name: "shop/web", Version: "1.20"}},
		Build: "b1", Commit: "c1", Rollout: "r1", Source: 17, Attempt: 2, Record: []byte(record), Output: &said,
		Inputs: []events.Handed{
			{StepName: events.StepName{Node: "n1", Module: "db"}, Values: map[string]string{"port": "5432"}, Changed: []string{"old", "port"}},
			{StepName: events.StepName{Node: "n1", Module: "shop/cache"}, Values: map[string]string{"url é": "redis://x"}},
			// What is there twice is for those who read the record.
			{StepName: events.StepName{Node: "n2", Module: "peer"}, Values: map[string]string{"port": "1"}},
			{StepName: events.StepName{Node: "n3", Module: "peer"}, Values: map[string]string{"port": "2"}},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	want := `CATENARY_ACTION=apply
CATENARY_ARTIFACT=
CATENARY_ATTEMPT=2
CATENARY_BUILD=b1
CATENARY_CHANGED=CATENARY_INPUT_DB_OLD CATENARY_INPUT_DB_PORT
CATENARY_COMMIT=c1
CATENARY_INPUT_DB_PORT=5432
CATENARY_INPUT_SHOP_CACHE_URL__=redis://x
CATENARY_MODULE=web
CATENARY_NODE=n1
CATENARY_PACKAGE=shop/web
CATENARY_ROLLOUT=r1
CATENARY_SOURCE=17
CATENARY_VERSION=1.20
` + record
	if diff := cmp.Diff(want, said.String()); diff != "" {
		t.Errorf("told (-want +got):\n%s", diff)
	}
}

func TestOutputs(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, script string
		want         map[string]string
		fails        string
	}{
		{name: "none", script: "true"},
		{name: "an empty file", script: `: >"$CATENARY_OUTPUTS"`},
		{name: "some", script: `printf 'port=80\n\nurl=http://x/?a=b\n' >"$CATENARY_OUTPUTS"`, want: map[string]string{"port": "80", "url": "http://x/?a=b"}},
		{name: "not a pair", script: `echo port >"$CATENARY_OUTPUTS"`, fails: "line 1"},
		{name: "too much", script: `head -c 20000 /dev/zero >"$CATENARY_OUTPUTS"`, fails: "16384"},
		{name: "not text", script: `printf 'a=\377' >"$CATENARY_OUTPUTS"`, fails: "UTF-8"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			result, err := open(t, exec.Config{Name: "x", Apply: shell(c.script)}).Apply(t.Context(), driver.Task{})
			if diff := cmp.Diff(c.want, result.Outputs); diff != "" || (err != nil) != (c.fails != "") {
				t.Fatalf("got error %v, outputs (-want +got):\n%s", err, diff)
			}
			if err != nil && (!errors.Is(err, driver.ErrFatal) || !strings.Contains(err.Error(), c.fails)) {
				t.Errorf("got error %v", err)
			}
		})
	}
}

// TestOutputsOutliveTheProcess lets a driver over the same directory find what a command has left, and nothing of another instruction.
func TestOutputsOutliveTheProcess(t *testing.T) {
	t.Parallel()
	dir, state := t.TempDir(), t.TempDir()
	c := keeper(dir)
	c.Apply[2] += `; if [ "$CATENARY_ATTEMPT" = 1 ]; then echo "port=$CATENARY_SOURCE" >"$CATENARY_OUTPUTS"; fi`
	again := func() *exec.Driver {
		d, err := exec.New(c, state, "1.0.0")
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	task := driver.Task{Module: "a/" + strings.Repeat("long ", 50), Reference: events.Reference{Artifact: "one"}, Source: 7, Attempt: 1}
	if _, err := again().Apply(t.Context(), task); err != nil {
		t.Fatal(err)
	}
	finds := func(task driver.Task, want map[string]string) {
		t.Helper()
		found, err := again().Observe(t.Context(), task)
		if diff := cmp.Diff(driver.Finding{State: driver.AsTold, Outputs: want}, found); diff != "" || err != nil {
			t.Errorf("it finds, with %v (-want +got):\n%s", err, diff)
		}
	}
	finds(task, map[string]string{"port": "7"})
	later := task
	later.Source = 9
	finds(later, nil)
	// The next try leaves none.
	task.Attempt = 2
	if _, err := again().Apply(t.Context(), task); err != nil {
		t.Fatal(err)
	}
	finds(task, nil)
	if err := again().Remove(t.Context(), task); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"outputs", "running"} {
		if left, err := os.ReadDir(filepath.Join(state, name)); err != nil || len(left) > 0 {
			t.Errorf("left in %s are %v, %v", name, left, err)
		}
	}
}

func TestFailures(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name            string
		apply           []string
		unsuited, fatal bool
		is              error
	}{
		{name: "an exit code", apply: shell("exit 1"), fatal: true},
		{name: "nothing done", apply: shell("exit 69"), unsuited: true},
		{name: "no such program", apply: []string{"/no/such/program"}, is: process.ErrNotStarted},
		{name: "too long", apply: shell("sleep 1000"), fatal: true, is: process.ErrTimedOut},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			defer cancel()
			_, err := open(t, exec.Config{Name: "x", Apply: c.apply}).Apply(ctx, driver.Task{})
			if err == nil || errors.Is(err, driver.ErrUnsuited) != c.unsuited || errors.Is(err, driver.ErrFatal) != c.fatal || c.is != nil && !errors.Is(err, c.is) {
				t.Errorf("got error %v", err)
			}
		})
	}
}

func TestConfig(t *testing.T) {
	t.Parallel()
	var c exec.Config
	if _, err := exec.New(c, t.TempDir(), "1"); err == nil {
		t.Error("a driver without name and command is taken")
	}
	a, b := open(t, exec.Config{Name: "a", Apply: []string{"x"}}).Describe(), open(t, exec.Config{Name: "a", Apply: []string{"y"}}).Describe()
	if a.Configuration == b.Configuration {
		t.Error("other commands have the same digest")
	}
	text, err := json.Marshal(keeper("/x"))
	if err != nil || !strings.Contains(string(text), `"check":`) {
		t.Errorf("configured as %s, %v", text, err)
	}
}
