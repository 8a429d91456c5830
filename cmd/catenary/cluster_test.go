package main

import (
	"encoding/json"
	"io"
	"net"
	"strings"
	"testing"

	"catenary/internal/cluster"
	"catenary/internal/diagnosis"
	"catenary/internal/health"
	"catenary/internal/topology"
)

// TestClusterCheck on one server that does not sync always, which says what both means, and where none is. That three servers are told from
// one another is tested with the guide on clusters.
func TestClusterCheck(t *testing.T) {
	t.Parallel()
	c := on(t)
	found := c.must(checkWarning, "cluster", "check")
	for _, want := range []string{"SERVER", "catenary", topology.EventStream, "1/1", "ok    servers", "one server", "nothing is replicated", "docs/guides/cluster.md", "warn  durability"} {
		if !strings.Contains(found.out, want) {
			t.Errorf("it does not say %q:\n%s", want, found.out)
		}
	}
	var said struct {
		Status   string
		Exit     int
		Findings []diagnosis.Problem
		Servers  []cluster.Server
		Streams  []cluster.Stream
	}
	body := c.must(checkWarning, "cluster", "check", "-o", "json")
	if err := json.Unmarshal([]byte(body.out), &said); err != nil || said.Status != "WARNING" || len(said.Servers) != 1 || len(said.Streams) < 20 || len(said.Findings) == 0 {
		t.Errorf("it says %s, %v", body.out, err)
	}
	if line := c.must(checkWarning, "cluster", "check", "-o", "nagios"); !strings.HasPrefix(line.out, "CATENARY CLUSTER WARNING - durability: one server alone ") || !strings.Contains(line.out, " lacking=0;;;0 leaderless=0;;;0\n") {
		t.Errorf("it says %q", line.out)
	}
	if found := c.ok("cluster", "wait"); !strings.Contains(found.err, "hold all") {
		t.Errorf("waiting it says %q", found.err)
	}
	for _, call := range []struct {
		url, args string
		code      int
		says      string
	}{
		{noServer, "-o nagios", checkCritical, "CATENARY CLUSTER CRITICAL - server: connect to " + noServer},
		{noServer, "", checkCritical, "fail  server"},
		{noServer, "all", checkUnknown, "CATENARY UNKNOWN - "},
		{noServer, "--oops", checkUnknown, "CATENARY UNKNOWN - "},
		{"", "--context none-such", checkUnknown, "CATENARY UNKNOWN - "},
	} {
		found := caller{t: t, url: call.url}.call(append([]string{"cluster", "check"}, strings.Fields(call.args)...)...)
		if found.code != call.code || !strings.HasPrefix(found.out, call.says) || found.err != "" {
			t.Errorf("%q: it ends with %d and says %s%s", call.args, found.code, found.out, found.err)
		}
	}
	caller{t: t, url: noServer}.must(exitUnreachable, "cluster", "wait", "--timeout", "1s")
	if found := (caller{t: t, url: "nats://" + slow(t, strings.TrimPrefix(c.url, "nats://"))}).ok("cluster", "wait"); !strings.Contains(found.err, "hold all") {
		t.Errorf("waiting for a server that starts it says %q", found.err)
	}
}

// slow gives the address of a server that hangs up on the first two who call, as one that starts does, and then leads to another.
func slow(t *testing.T, to string) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for n := 0; ; n++ {
			caller, err := listener.Accept()
			if err != nil {
				return
			}
			if n < 2 {
				_ = caller.Close()
				continue
			}
			called, err := net.Dial("tcp", to)
			if err != nil {
				_ = caller.Close()
				continue
			}
			go func() { _, _ = io.Copy(called, caller); _ = called.Close() }()
			go func() { _, _ = io.Copy(caller, called); _ = caller.Close() }()
		}
	}()
	return listener.Addr().String()
}

// TestClusterLine puts what is wrong into one line, the worst first, with figures.
func TestClusterLine(t *testing.T) {
	t.Parallel()
	c := clusterChecked{
		Status: "CRITICAL",
		Findings: []diagnosis.Problem{
			{About: "streams", State: health.Fail, What: "A is without a leader"}, {About: "server s3", State: health.Warn, What: "it does not answer"}, {About: "servers", State: health.OK, What: "3 servers"},
		},
		View: cluster.View{
			Clustered: true, Size: 3, Servers: []cluster.Server{{Name: "s1"}, {Name: "s2"}, {Name: "s3", Off: true}},
			Streams: []cluster.Stream{{Name: "A", Wanted: 3, There: 2}, {Name: "B", Wanted: 3, There: 2, Leader: "s1"}, {Name: "C", Wanted: 1, There: 1, Leader: "s1"}, {Name: "D", Wanted: 3, There: 3, Leader: "s1"}},
		},
	}
	const want = "CATENARY CLUSTER CRITICAL - streams: A is without a leader (and 1 more) | servers=3;;;0 off=1;;;0 streams=4;;;0 lacking=2;;;0 leaderless=1;;;0\nWARNING: server s3: it does not answer\n"
	if got := c.nagios(); got != want {
		t.Errorf("it says\n%swant\n%s", got, want)
	}
}

// TestStreamProblem says in a few words what is wrong with a stream.
func TestStreamProblem(t *testing.T) {
	t.Parallel()
	for want, s := range map[string]cluster.Stream{
		"":                                    {Leader: "s1", Peers: []cluster.Peer{{Server: "s2", Lag: 3}}, Mirror: &cluster.Mirror{Following: true}},
		"no leader, s2 is off, s3 is joining": {Peers: []cluster.Peer{{Server: "s2", Off: true}, {Server: "s3", Joining: true}}},
		"s2 is behind by 5000":                {Leader: "s1", Peers: []cluster.Peer{{Server: "s2", Lag: 5000}}},
		"does not follow its bucket":          {Leader: "s1", Mirror: &cluster.Mirror{}},
		"no such stream":                      {Leader: "s1", Mirror: &cluster.Mirror{Problem: "no such stream"}},
		"7 values to come":                    {Leader: "s1", Mirror: &cluster.Mirror{Following: true, Lag: 7}},
	} {
		if got := streamProblem(s); got != want {
			t.Errorf("it says %q, want %q", got, want)
		}
	}
}
