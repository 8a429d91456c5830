package driver

import (
	"testing"

	"catenary/events"
)

// TestCompare: what a module runs is compared with what was told, which may be no version at all.
func TestCompare(t *testing.T) {
	t.Parallel()
	one := Task{Module: "web", Reference: events.Reference{Package: &events.Package{Name: "web", Version: "1"}}}
	for _, c := range []struct {
		name  string
		task  Task
		runs  string
		state State
	}{
		{"what was told", one, "1", AsTold},
		{"another", one, "1.0", Other},
		{"none", one, "", Absent},
		{"any, where none was told", Task{Module: "web"}, "1", AsTold},
		{"perhaps none, where none was told", Task{Module: "web"}, "", Unknown},
	} {
		if found := c.task.Compare(c.runs); found.State != c.state {
			t.Errorf("%s: %+v, want %s", c.name, found, c.state)
		}
	}
}
