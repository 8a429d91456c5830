package main

import (
	"strings"
	"testing"
	"time"
)

// TestFlags: what can't be done is said before anything is built.
func TestFlags(t *testing.T) {
	t.Parallel()
	good := options{span: time.Second, faults: 16}
	for name, c := range map[string]struct {
		change func(*options)
		args   string
		says   string
	}{
		"the defaults":           {},
		"everything":             {change: func(o *options) { o.servers, o.only, o.planted, o.kill = 3, "kill,store", "all", "server-3,engine-1" }},
		"an argument":            {args: "short", says: "no arguments"},
		"two servers":            {change: func(o *options) { o.servers = 2 }, says: "1 or 3"},
		"no span":                {change: func(o *options) { o.span = 0 }, says: "-span"},
		"faults below zero":      {change: func(o *options) { o.faults = -1 }, says: "-faults"},
		"recoveries below zero":  {change: func(o *options) { o.recovery = -1 }, says: "-recovery"},
		"kinds that are none":    {change: func(o *options) { o.only = "kill,oops" }, says: "kill,oops"},
		"a bug that is none":     {change: func(o *options) { o.planted = "oops" }, says: "oops"},
		"a process that is none": {change: func(o *options) { o.kill = "engine-1,oops" }, says: "\"oops\": the processes are"},
		"a server that is none":  {change: func(o *options) { o.kill = "server-3" }, says: "server-3"},
	} {
		o := good
		if c.change != nil {
			c.change(&o)
		}
		err := o.check(strings.Fields(c.args))
		if (err != nil) != (c.says != "") || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
