package diagnosis_test

import (
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/errors"

	"catenary/agent"
	"catenary/agent/desk"
	"catenary/internal/cluster"
	"catenary/internal/diagnosis"
	"catenary/internal/health"
	"catenary/internal/topology"
)

// at is when the asker asked, by its own clock.
func at() time.Time { return time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC) }

// heard is what a process says that was asked and answered at once.
func heard(program string, checks ...health.Check) health.Heard {
	state := health.OK
	for _, c := range checks {
		state = state.Worse(c.State)
	}
	return health.Heard{Asked: at(), Came: at(), Report: health.Report{Process: health.Process{Program: program, Version: "1.0.0", Host: "h", PID: 1}, State: state, At: at(), Checks: checks}}
}

func well(name string, measures ...health.Measure) health.Check {
	return health.Check{Name: name, Finding: health.Finding{State: health.OK, Measures: measures}}
}

func active() health.Check {
	return well(health.CheckWriter, health.Measure{Name: health.Active, Value: 1})
}

// whole is a chain of which all is well.
func whole() diagnosis.Evidence {
	return diagnosis.Evidence{
		Server: "nats://n1", Version: "1.0.0", Tail: 100,
		Reports: []health.Heard{
			heard("writer", active(), well(health.CheckRoom, health.Measure{Name: health.Used, Value: 10, Limit: 100})),
			heard("projector", well(health.CheckProjector), well(health.CheckView+"chain-nodes", health.Measure{Name: health.BehindEvents}, health.Measure{Name: health.Lag}, health.Measure{Name: health.ParkedCount})),
			heard("engine", well(health.CheckEngine, health.Measure{Name: health.Pending, Value: 2})),
		},
		Copies: []diagnosis.Copy{{View: "chain-nodes", Event: 100}},
		Nodes:  []desk.Node{{Node: "n1", State: desk.On}, {Node: "x", State: desk.External}},
	}
}

func TestDiagnose(t *testing.T) {
	t.Parallel()
	without := func(e *diagnosis.Evidence, program string) {
		var left []health.Heard
		for _, r := range e.Reports {
			if r.Program != program {
				left = append(left, r)
			}
		}
		e.Reports = left
	}
	for _, c := range []struct {
		name   string
		change func(*diagnosis.Evidence)
		state  health.State
		// says is what is wrong, by what it is about, each with words of it.
		says map[string]string
	}{
		{"all is well", func(*diagnosis.Evidence) {}, health.OK, nil},
		{"nothing runs", func(e *diagnosis.Evidence) {
			*e = diagnosis.Evidence{Unreached: errors.New("connection refused")}
		}, health.Fail, map[string]string{"server": "connection refused"}},
		{"the asker may not ask", func(e *diagnosis.Evidence) {
			*e = diagnosis.Evidence{Unreached: errors.New("no permission"), Denied: true}
		}, health.Fail, map[string]string{"server": "no permission"}},
		{"only a server runs", func(e *diagnosis.Evidence) {
			*e = diagnosis.Evidence{Server: "nats://n1", NodesError: errors.New("nobody answers")}
		}, health.Fail, map[string]string{"writer": "no writer", "projector": "no projector", "engine": "no engine", "nodes": "nobody answers"}},
		{"case C19: the projector is stopped by a signal", func(e *diagnosis.Evidence) {
			without(e, "projector")
			e.Tail = 170
		}, health.Fail, map[string]string{"projector": "behind by at most 70 events"}},
		{"a check fails", func(e *diagnosis.Evidence) {
			e.Reports[1].Checks[1].Finding = health.Finding{State: health.Fail, Code: health.Stopped, Reason: "it has stopped at event 7"}
		}, health.Fail, map[string]string{"projector (h, process 1): view chain-nodes": "event 7"}},
		{"all writers stand by", func(e *diagnosis.Evidence) { e.Reports[0].Checks[0].Measures = nil }, health.Fail, map[string]string{"writer": "none of 1"}},
		{"two writers work", func(e *diagnosis.Evidence) { e.Reports = append(e.Reports, heard("writer", active())) }, health.Warn, map[string]string{"writer": "2 writers"}},
		{"nobody walks", func(e *diagnosis.Evidence) { without(e, "engine") }, health.Warn, map[string]string{"engine": "no engine"}},
		{"a clock is fast", func(e *diagnosis.Evidence) { e.Reports[2].At = at().Add(time.Minute) }, health.Warn, map[string]string{"engine (h, process 1): clock": "1m0s ahead"}},
		{"a clock is an hour late", func(e *diagnosis.Evidence) { e.Reports[2].At = at().Add(-time.Hour) }, health.Fail, map[string]string{"engine (h, process 1): clock": "1h0m0s behind"}},
		{"an answer that took long is no clock", func(e *diagnosis.Evidence) {
			e.Reports[2].Came = at().Add(4 * time.Second)
		}, health.OK, nil},
		{"versions differ", func(e *diagnosis.Evidence) { e.Version = "2.0.0" }, health.Warn, map[string]string{"versions": "2.0.0: this tool"}},
		{"a copy is missing", func(e *diagnosis.Evidence) { e.Copies[0].Problem = "no such bucket" }, health.Fail, map[string]string{"copies": "chain-nodes"}},
		{"agents are silent", func(e *diagnosis.Evidence) {
			e.Nodes = append(e.Nodes, desk.Node{Node: "n2", State: desk.Off}, desk.Node{Node: "gone", State: desk.Off, Retired: true})
		}, health.Warn, map[string]string{"nodes": "heard of n2"}},
		{"an agent has failed", func(e *diagnosis.Evidence) {
			e.Nodes[0].Status = &agent.Status{Failed: []agent.Failed{{Module: "web", Reason: "exit status 1\nand more"}}}
		}, health.Warn, map[string]string{"nodes": "n1 (web: exit status 1)"}},
		{"two agents of one node", func(e *diagnosis.Evidence) { e.Nodes[0].Rivals = true }, health.Fail, map[string]string{"nodes": "two agents"}},
		{"the disk is short", func(e *diagnosis.Evidence) { e.Store = &diagnosis.Store{Dir: "d", Free: 1 << 20} }, health.Warn, map[string]string{"disk": "below d"}},
		{"a server has no JetStream", func(e *diagnosis.Evidence) {
			e.Servers = &cluster.View{Size: 1, Servers: []cluster.Server{{Name: "s1"}}}
		}, health.Fail, map[string]string{"servers": "no server holds streams", "server s1": "no JetStream"}},
		{"one server is well", func(e *diagnosis.Evidence) {
			e.Servers = &cluster.View{Size: 1, Servers: []cluster.Server{{Name: "s1", JetStream: true, SyncAlways: true}}}
		}, health.OK, nil},
		{"one server that syncs now and then, as chosen", func(e *diagnosis.Evidence) {
			e.Servers = &cluster.View{Size: 1, Servers: []cluster.Server{{Name: "s1", JetStream: true}}, Streams: []cluster.Stream{{Account: topology.AccountLedger, Name: topology.EventStream, Wanted: 1, There: 1, Leader: "s1"}}}
		}, health.OK, nil},
		{"no server says how it is", func(e *diagnosis.Evidence) { e.ServersError = errors.New("silent") }, health.Warn, map[string]string{"servers": "silent"}},
		{"there is no store", func(e *diagnosis.Evidence) {
			e.Store = &diagnosis.Store{Dir: "d", Problem: errors.New("no store in d")}
		}, health.Fail, map[string]string{"store": "no store in d"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			e := whole()
			c.change(&e)
			d := diagnosis.Diagnose(e)
			if d.State != c.state || len(d.Problems) != len(c.says) {
				t.Errorf("it is %s with %d problems, want %s with %d:\n%+v", d.State, len(d.Problems), c.state, len(c.says), d.Problems)
			}
			for _, p := range d.Problems {
				if want, ok := c.says[p.About]; !ok || !strings.Contains(p.What, want) {
					t.Errorf("%s: it says %q, want %q", p.About, p.What, want)
				}
				if p.Next == "" && !strings.Contains(p.About, "view") {
					t.Errorf("%s: it does not say what to do", p.About)
				}
			}
		})
	}
}

func TestHold(t *testing.T) {
	t.Parallel()
	e := whole()
	view := &e.Reports[1].Checks[1]
	view.Finding = health.Finding{State: health.Fail, Code: health.Behind, Reason: "behind", Measures: []health.Measure{{Name: health.BehindEvents, Value: 500}, {Name: health.Lag, Value: 90}}}
	e.Nodes = append(e.Nodes, desk.Node{Node: "n2", State: desk.Off})
	d := diagnosis.Diagnose(e)
	for _, c := range []struct {
		name string
		t    diagnosis.Thresholds
		want health.State
		many int
	}{
		{"the usual ones", diagnosis.DefaultThresholds(), health.Fail, 2},
		{"none", diagnosis.Thresholds{}, health.OK, 0},
		{"behind by so many", diagnosis.Thresholds{Behind: diagnosis.Threshold{Warn: 500, Fail: 501}}, health.Warn, 1},
		{"steps under way", diagnosis.Thresholds{Pending: diagnosis.Threshold{Fail: 2}}, health.Fail, 1},
		{"silent agents", diagnosis.Thresholds{Off: diagnosis.Threshold{Warn: 2}}, health.OK, 0},
	} {
		if h := d.Hold(c.t); h.State != c.want || len(h.Problems) != c.many {
			t.Errorf("%s: %s with %+v, want %s with %d", c.name, h.State, h.Problems, c.want, c.many)
		}
	}
	e.Reports[2].Checks[0].Finding = health.Finding{State: health.Fail, Code: health.Stuck, Reason: "its loop does not answer"}
	if h := diagnosis.Diagnose(e).Hold(diagnosis.Thresholds{}); h.State != health.Fail {
		t.Errorf("what no threshold is for is %s", h.State)
	}
}

func TestParseThreshold(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]diagnosis.Threshold{
		"10,60": {Warn: 10, Fail: 60}, "10s,1m": {Warn: 10, Fail: 60}, "5": {Warn: 5}, ",7": {Fail: 7}, "0,0": {}, " 1 , 2.5 ": {Warn: 1, Fail: 2.5},
	} {
		if got, err := diagnosis.ParseThreshold(text); err != nil || got != want {
			t.Errorf("%q: %v, %v, want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"x", "-1,2", "1,2,3", "60,10", "NaN"} {
		if got, err := diagnosis.ParseThreshold(text); !errors.Is(err, diagnosis.ErrThreshold) {
			t.Errorf("%q is read as %v, %v", text, got, err)
		}
	}
}
