package main

import (
	"testing"
	"time"

	"github.com/spf13/pflag"
)

// TestWaitFlag: true is as long as the command usually waits, which is not the same for all.
func TestWaitFlag(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args []string
		want time.Duration
	}{
		{nil, time.Minute},
		{[]string{"--wait", "true"}, time.Minute},
		{[]string{"--wait=false", "--wait=true"}, time.Minute},
		{[]string{"--wait", "false"}, 0},
		{[]string{"--wait", "0s"}, 0},
		{[]string{"--wait", "10m"}, 10 * time.Minute},
	} {
		var span time.Duration
		flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
		addWait(flags, &span, time.Minute, "wait")
		if err := flags.Parse(c.args); err != nil || span != c.want {
			t.Errorf("%q waits %s (%v), want %s", c.args, span, err, c.want)
		}
	}
}
