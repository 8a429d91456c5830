package sim_test

import (
	"testing"

	"catenary/agent/driver"
	"catenary/agent/driver/drivertest"
	"catenary/agent/driver/sim"
	"catenary/events"
)

func TestSuite(t *testing.T) {
	t.Parallel()
	versions := []string{"1", "2", "3-FAILS"}
	drivertest.Run(t, func(*testing.T) drivertest.Subject {
		var world sim.World
		return drivertest.Subject{
			Open: func(t *testing.T) driver.Driver {
				d, err := sim.New(sim.Config{Name: "sim", Takes: "1ms", Fails: versions[2:], Unsuited: []string{"odd"}}, &world, "1.0.0")
				if err != nil {
					t.Fatal(err)
				}
				return d
			},
			Version: func(_ *testing.T, task *driver.Task, version int) {
				task.Package = &events.Package{Name: task.Module, Version: versions[version-1]}
			},
			Unsuited: func(task *driver.Task) { task.Module = "odd" },
		}
	})
}

func TestConfig(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]sim.Config{"no name": {}, "less than no time": {Name: "sim", Takes: "-1s"}, "no time": {Name: "sim", Takes: "soon"}} {
		if _, err := sim.New(c, nil, "1"); err == nil {
			t.Errorf("%s is taken", name)
		}
	}
}
