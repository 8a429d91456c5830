package run_test

import (
	"runtime"
	"runtime/metrics"
	"testing"

	"catenary/internal/run"
)

// The collector lets more garbage pile up while there is slack, and as much as before when the environment speaks of it. It is about the
// process, so that no other test may run meanwhile.
func TestSlack(t *testing.T) {
	goal := func() uint64 {
		runtime.GC()
		sample := []metrics.Sample{{Name: "/gc/heap/goal:bytes"}}
		metrics.Read(sample)
		return sample[0].Value.Uint64()
	}
	const room = 200 << 20 // twice the slack is more, even when others let go of something meanwhile
	before := goal()
	for _, name := range []string{"GOGC", "GOMEMLIMIT"} {
		end := run.Slack(func(asked string) string { return map[string]string{name: "200"}[asked] })
		if after := goal(); after > before+room {
			t.Errorf("with %s set, garbage is collected at %d bytes, before at %d", name, after, before)
		}
		end()
	}
	end := run.Slack(func(string) string { return "" })
	if after := goal(); after < before+room {
		t.Errorf("with slack, garbage is collected at %d bytes, before at %d", after, before)
	}
	end()
	if after := goal(); after > before+room {
		t.Errorf("after it, garbage is collected at %d bytes, before at %d", after, before)
	}
}
