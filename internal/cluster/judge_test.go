package cluster_test

import (
	"slices"
	"strings"
	"testing"

	"catenary/internal/cluster"
	"catenary/internal/health"
	"catenary/internal/topology"
)

// three is a cluster of which all is well.
func three() cluster.View {
	v := cluster.View{Clustered: true, Size: 3, Leader: "s1"}
	for _, name := range []string{"s1", "s2", "s3"} {
		v.Servers = append(v.Servers, cluster.Server{Name: name, Version: "2.15.3", Cluster: "catenary", JetStream: true, SyncAlways: true})
	}
	peers := []cluster.Peer{{Server: "s2"}, {Server: "s3"}}
	v.Streams = append(v.Streams, cluster.Stream{Account: topology.AccountLedger, Name: topology.EventStream, Wanted: 3, There: 3, Leader: "s1", Peers: slices.Clone(peers)})
	for _, bucket := range topology.MirroredBuckets() {
		s := cluster.Stream{Account: topology.AccountLedger, Name: topology.BucketStream(bucket), Wanted: 3, There: 3, Leader: "s1", Peers: slices.Clone(peers)}
		v.Streams = append(v.Streams, s)
		s.Account, s.Mirror, s.Peers = topology.AccountOps, &cluster.Mirror{Following: true}, slices.Clone(peers)
		v.Streams = append(v.Streams, s)
	}
	return v
}

// one is a server that stands alone.
func one() cluster.View {
	v := three()
	v.Clustered, v.Size, v.Leader, v.Servers = false, 1, "", v.Servers[:1]
	v.Servers[0].Cluster = ""
	for i := range v.Streams {
		v.Streams[i].Wanted, v.Streams[i].There, v.Streams[i].Peers = 1, 1, nil
	}
	return v
}

// without takes a server of the three away.
func without(v *cluster.View, i int) {
	name := v.Servers[i].Name
	v.Servers[i] = cluster.Server{Name: name, Off: true, UnseenSeconds: 12, JetStream: true}
	for i := range v.Streams {
		s := &v.Streams[i]
		for j := range s.Peers {
			if s.Peers[j].Server == name {
				s.Peers[j].Off = true
				s.There--
			}
		}
	}
}

func TestJudge(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		view   func() cluster.View
		change func(*cluster.View)
		state  health.State
		// says is what is wrong, by its name, each with words of it.
		says map[string]string
	}{
		{"all is well", three, func(*cluster.View) {}, health.OK, nil},
		{"one server is well", one, func(*cluster.View) {}, health.OK, nil},
		{"one server that syncs now and then", one, func(v *cluster.View) {
			v.Servers[0].SyncAlways, v.Servers[0].SyncSeconds = false, 120
		}, health.Warn, map[string]string{"durability": "every 120 s"}},
		{"three that sync now and then", three, func(v *cluster.View) {
			for i := range v.Servers {
				v.Servers[i].SyncAlways = false
			}
		}, health.OK, nil},
		{"one of three syncs now and then", three, func(v *cluster.View) { v.Servers[1].SyncAlways = false }, health.Warn, map[string]string{"durability": "not s2"}},
		{"one is off", three, func(v *cluster.View) { without(v, 2) }, health.Warn, map[string]string{
			"server s3": "not heard for 12 s", "quorum": "2 of 3 answer, and 2 have to agree", "streams": "CATENARY, KV_chain-modules",
		}},
		{"two are off", three, func(v *cluster.View) {
			without(v, 2)
			without(v, 1)
			v.Leader = ""
			for i := range v.Streams {
				v.Streams[i].Leader = ""
			}
		}, health.Fail, map[string]string{"server s2": "does not answer", "server s3": "does not answer", "quorum": "1 of 3 answer", "streams": "without a leader"}},
		{"two are off, and the leader does not know yet", three, func(v *cluster.View) {
			without(v, 2)
			without(v, 1)
		}, health.Fail, map[string]string{"server s2": "does not answer", "server s3": "does not answer", "quorum": "1 of 3 answer", "streams": "without enough servers"}},
		{"a stream that too few hold", three, func(v *cluster.View) {
			v.Streams[0].Peers[0].Lag, v.Streams[0].Peers[1].Joining, v.Streams[0].There = 5000, true, 1
		}, health.Fail, map[string]string{"streams": "CATENARY is without enough servers", "server s2": "by up to 5000 operations", "server s3": "CATENARY"}},
		{"what is on its way is not behind", three, func(v *cluster.View) { v.Streams[0].Peers[0].Lag = 300 }, health.OK, nil},
		{"events on one server of three", three, func(v *cluster.View) {
			v.Streams[0].Wanted, v.Streams[0].There, v.Streams[0].Peers = 1, 1, nil
		}, health.Fail, map[string]string{"replicas": "CATENARY is held by one server alone"}},
		{"a bucket on one server of three", three, func(v *cluster.View) {
			v.Streams[1].Wanted, v.Streams[1].There, v.Streams[1].Peers = 1, 1, nil
		}, health.Warn, map[string]string{"replicas": "KV_chain-modules is held by one server alone"}},
		{"no place for a replica", three, func(v *cluster.View) {
			v.Streams[1].There, v.Streams[1].Peers = 2, v.Streams[1].Peers[:1]
		}, health.Warn, map[string]string{"replicas": "KV_chain-modules is without a place", "streams": "KV_chain-modules is on the last"}},
		{"two servers", three, func(v *cluster.View) {
			v.Size, v.Servers = 2, v.Servers[:2]
			for i := range v.Streams {
				v.Streams[i].Wanted, v.Streams[i].There, v.Streams[i].Peers = 2, 2, v.Streams[i].Peers[:1]
			}
		}, health.Warn, map[string]string{"servers": "the loss of 1 stops them"}},
		{"four servers", three, func(v *cluster.View) {
			v.Size = 4
			v.Servers = append(v.Servers, v.Servers[2])
			v.Servers[3].Name = "s4"
		}, health.Warn, map[string]string{"servers": "the loss of 2 stops them"}},
		{"a cluster of one", one, func(v *cluster.View) { v.Clustered, v.Leader = true, "s1" }, health.Warn, map[string]string{"servers": "nothing is replicated"}},
		{"one without JetStream", three, func(v *cluster.View) {
			v.Servers = append(v.Servers, cluster.Server{Name: "s4", Version: "2.15.3", Cluster: "catenary"})
		}, health.Warn, map[string]string{"server s4": "no JetStream"}},
		{"none with JetStream", one, func(v *cluster.View) { v.Servers[0].JetStream, v.Streams = false, nil }, health.Fail, map[string]string{"server s1": "no JetStream", "servers": "no server holds"}},
		{"versions", three, func(v *cluster.View) { v.Servers[0].Version = "2.14.0" }, health.Warn, map[string]string{"server versions": "2.14.0: s1; 2.15.3: s2, s3"}},
		{"clusters", three, func(v *cluster.View) { v.Servers[0].Cluster = "other" }, health.Warn, map[string]string{"domains": "several clusters"}},
		{"domains", three, func(v *cluster.View) { v.Servers[0].Domain = "hub" }, health.Fail, map[string]string{"domains": "none: s2, s3; hub: s1"}},
		{"nothing is made yet", three, func(v *cluster.View) { v.Streams = nil }, health.OK, nil},
		{"the events are gone", three, func(v *cluster.View) { v.Streams = v.Streams[1:] }, health.Fail, map[string]string{"streams": "no server that answers holds the event stream"}},
		{"a copy is gone", three, func(v *cluster.View) { v.Streams = slices.Delete(v.Streams, 2, 3) }, health.Warn, map[string]string{"mirrors": "no copy of chain-modules"}},
		{"a copy does not follow", three, func(v *cluster.View) { v.Streams[2].Mirror.Following = false }, health.Warn, map[string]string{"mirrors": "OPS KV_chain-modules is not following"}},
		{"a copy is late", three, func(v *cluster.View) { v.Streams[2].Mirror.Lag = 20_000 }, health.Warn, map[string]string{"mirrors": "behind by more"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			v := c.view()
			c.change(&v)
			state, wrong := health.OK, 0
			for _, f := range cluster.Judge(v) {
				state = state.Worse(f.State)
				if f.State == health.OK {
					continue
				}
				wrong++
				if want, ok := c.says[f.Name]; !ok || !strings.Contains(f.Reason, want) || f.Next == "" {
					t.Errorf("%s: it says %q with %q, want %q", f.Name, f.Reason, f.Next, want)
				}
			}
			if state != c.state || wrong != len(c.says) {
				t.Errorf("it is %s with %d findings, want %s with %d: %+v", state, wrong, c.state, len(c.says), cluster.Judge(v))
			}
		})
	}
}

// TestOneServer: it says what that means.
func TestOneServer(t *testing.T) {
	t.Parallel()
	for _, f := range cluster.Judge(one()) {
		if f.Name == "servers" && strings.Contains(f.Reason, "nothing is replicated") && strings.Contains(f.Reason, "backup") {
			return
		}
	}
	t.Errorf("it says %+v", cluster.Judge(one()))
}

func TestLacking(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		view   cluster.View
		change func(*cluster.View)
		says   string
	}{
		"nothing":     {three(), func(*cluster.View) {}, ""},
		"one server":  {one(), func(*cluster.View) {}, ""},
		"a server":    {three(), func(v *cluster.View) { without(v, 1) }, "server s2"},
		"a leader":    {three(), func(v *cluster.View) { v.Leader = "" }, "the servers have no leader"},
		"a stream's":  {three(), func(v *cluster.View) { v.Streams[3].Leader = "" }, "has no leader"},
		"a replica":   {three(), func(v *cluster.View) { v.Streams[0].There = 2 }, "CATENARY is on 2 of 3"},
		"only a copy": {three(), func(v *cluster.View) { v.Streams[2].Mirror.Following = false }, ""},
	} {
		c.change(&c.view)
		if got := c.view.Lacking(); got == "" != (c.says == "") || !strings.Contains(got, c.says) {
			t.Errorf("%s: it says %q, want %q", name, got, c.says)
		}
	}
}
