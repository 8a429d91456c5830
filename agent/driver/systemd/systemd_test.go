package systemd_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cockroachdb/errors"
	"github.com/google/go-cmp/cmp"

	"catenary/agent/driver"
	"catenary/agent/driver/drivertest"
	"catenary/agent/driver/systemd"
	"catenary/events"
)

const unit = `[Unit]
Description={{.Module}} {{.Version}}
[Service]
ExecStart=/srv/{{.Module}}/{{.Version}}/run
`

// systemctl is one that keeps the state of each unit in a file, and can't start a unit that says FAILS.
const systemctl = `#!/bin/sh
units=@UNITS@ states=@STATES@
case "$1" in
daemon-reload) rm -rf "$states/loaded"; mkdir -p "$states/loaded"; cp "$units"/*.service "$states/loaded" 2>/dev/null; exit 0 ;;
enable) test -e "$units/$2" ;;
restart)
	if ! test -e "$states/loaded/$2"; then echo "Unit $2 not found." >&2; exit 5; fi
	if grep -q FAILS "$states/loaded/$2"; then echo failed >"$states/$2"; echo "Job for $2 FAILS" >&2; exit 1; fi
	echo active >"$states/$2" ;;
is-active) cat "$states/$2" 2>/dev/null || echo inactive; test "$(cat "$states/$2" 2>/dev/null)" = active || exit 3 ;;
disable) echo inactive >"$states/$3" ;;
*) echo "unknown: $*" >&2; exit 1 ;;
esac
`

// place is a directory of unit files with a systemctl.
type place struct{ units, states, systemctl string }

func newPlace(t *testing.T) place {
	t.Helper()
	p := place{units: t.TempDir(), states: t.TempDir(), systemctl: filepath.Join(t.TempDir(), "systemctl")}
	script := strings.NewReplacer("@UNITS@", p.units, "@STATES@", p.states).Replace(systemctl)
	if err := os.WriteFile(p.systemctl, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	return p
}

func (p place) open(t *testing.T) driver.Driver {
	t.Helper()
	d, err := systemd.New(systemd.Config{Name: "systemd", Unit: unit, Units: p.units, Systemctl: []string{p.systemctl}}, "1.0.0")
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func version(_ *testing.T, task *driver.Task, version int) {
	task.Package = &events.Package{Name: task.Module, Version: []string{"1", "2", "3-FAILS"}[version-1]}
}

func TestSuite(t *testing.T) {
	t.Parallel()
	drivertest.Run(t, func(t *testing.T) drivertest.Subject {
		return drivertest.Subject{Open: newPlace(t).open, Version: version}
	})
}

func TestUnit(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	task := driver.Task{Module: "a/ä", Reference: events.Reference{Package: &events.Package{Name: "x", Version: "1"}}}
	if _, err := p.open(t).Apply(t.Context(), task); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(filepath.Join(p.units, `catenary-a\x2F\xC3\xA4.service`))
	if err != nil || !strings.Contains(string(got), "Description=a/ä 1\n") {
		t.Errorf("the unit file is %q, %v", got, err)
	}
}

// TestFirstFails lets the first version of a module fail: nothing of it stays.
func TestFirstFails(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	task := driver.Task{Module: "web"}
	version(t, &task, 3)
	d := p.open(t)
	if _, err := d.Apply(t.Context(), task); !errors.Is(err, driver.ErrFatal) {
		t.Errorf("got error %v", err)
	}
	if found, err := d.Observe(t.Context(), task); err != nil || found.State != driver.Absent {
		t.Errorf("found %+v, %v", found, err)
	}
}

// TestStoppedByHand finds a unit that somebody has stopped.
func TestStoppedByHand(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	task := driver.Task{Module: "web"}
	version(t, &task, 1)
	d := p.open(t)
	if _, err := d.Apply(t.Context(), task); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(p.states, "catenary-web.service"), []byte("inactive\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	found, err := d.Observe(t.Context(), task)
	if want := (driver.Finding{State: driver.Other, Found: "the unit catenary-web.service is inactive"}); err != nil || !cmp.Equal(found, want) {
		t.Errorf("found %+v, %v; want %+v", found, err, want)
	}
}

func TestWithoutSystemd(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]systemd.Config{
		"no systemctl":          {Name: "s", Unit: unit, Units: t.TempDir(), Systemctl: []string{"/no/such/systemctl"}},
		"no place for the unit": {Name: "s", Unit: unit, Units: "/no/such/units", Systemctl: []string{"/bin/sh"}},
	} {
		d, err := systemd.New(c, "1")
		if err != nil {
			t.Fatal(err)
		}
		if err := d.Check(t.Context(), driver.Task{Module: "web"}); !errors.Is(err, driver.ErrUnsuited) {
			t.Errorf("%s: got error %v", name, err)
		}
	}
}

func TestConfig(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]systemd.Config{
		"no name":             {Unit: unit},
		"no unit":             {Name: "s", Unit: " \n"},
		"a relative path":     {Name: "s", Unit: unit, Units: "units"},
		"a broken template":   {Name: "s", Unit: "{{"},
		"an unknown variable": {Name: "s", Unit: "{{.Port}}"},
	} {
		if _, err := systemd.New(c, "1"); err == nil {
			t.Errorf("%s is taken", name)
		}
	}
}
