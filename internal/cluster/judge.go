package cluster

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"catenary/internal/health"
	"catenary/internal/topology"
)

const (
	// namedStreams bounds how many streams a finding names.
	namedStreams = 5
	// mirrorLagTolerated is how many values may be on their way to a copy that follows.
	mirrorLagTolerated = 10_000
)

// Names of checks.
const (
	checkServers    = "servers"
	checkQuorum     = "quorum"
	checkServer     = "server "
	checkVersions   = "server versions"
	checkDomains    = "domains"
	checkDurability = "durability"
	checkStreams    = "streams"
	checkReplicas   = "replicas"
	checkMirrors    = "mirrors"
)

// quorum is how many of so many have to agree.
func quorum(of int) int { return of/2 + 1 }

// Judge says what is wrong, and what is as it should be.
func Judge(v View) []health.Check {
	j := judgement{view: v}
	j.servers()
	j.versions()
	j.places()
	j.durability()
	if j.streams() {
		j.leaders()
		j.replicas()
		j.peers()
		j.mirrors()
	}
	return j.found
}

type judgement struct {
	view  View
	found []health.Check
}

func (j *judgement) add(name string, state health.State, code health.Code, next, reason string, args ...any) {
	j.found = append(j.found, health.Check{Name: name, Finding: health.Finding{State: state, Code: code, Reason: fmt.Sprintf(reason, args...), Next: next}})
}

const (
	startServers = "start the servers that are off"
	makeThree    = "take a backup, and restore it onto three servers (docs/guides/cluster.md)"
)

// servers says how many there are, and what the next loss would do.
func (j *judgement) servers() {
	v := j.view
	var off, bare []string
	for _, s := range v.Servers {
		switch {
		case s.Off:
			off = append(off, s.Name)
			since := ""
			if s.UnseenSeconds >= 1 {
				since = fmt.Sprintf(", and was not heard for %.0f s", s.UnseenSeconds)
			}
			j.add(checkServer+s.Name, health.Warn, health.Off,
				"start it again: it gets what it lacks from the others; if its disk is gone, start it with the same configuration and an empty store", "it does not answer%s", since)
		case !s.JetStream:
			bare = append(bare, s.Name)
			j.add(checkServer+s.Name, health.Warn, health.Missing, "give its configuration a jetstream block, as catenary configure writes it, and start it again",
				"it has no JetStream: it holds nothing, and has no say in what is kept")
		}
	}
	there := len(v.Servers) - len(off) - len(bare)
	switch {
	case there == 0:
		j.add(checkServers, health.Fail, health.Missing, "start a server with JetStream", "no server holds streams")
		return
	case !v.Clustered:
		j.add(checkServers, health.OK, "", "", "one server, %s: nothing is replicated. While it is away nothing is taken or read, and what is lost with its disk only a backup brings back. "+
			"Three servers survive the loss of one (docs/guides/cluster.md)", v.Servers[0].Name)
		return
	case v.Leader == "":
		j.add(checkQuorum, health.Fail, health.Away, startServers+"; while they are, wait some seconds for a leader",
			"the servers have no leader: %d of %d answer, and %d have to agree. No stream is made or changed, and one whose servers are off takes nothing", there, v.Size, quorum(v.Size))
	case there < quorum(v.Size): // one that has led does not know yet
		j.add(checkQuorum, health.Fail, health.Away, startServers, "too few are there: %d of %d answer, and %d have to agree. Nothing is taken", there, v.Size, quorum(v.Size))
	case there == quorum(v.Size) && there < v.Size:
		j.add(checkQuorum, health.Warn, health.Scarce, startServers, "it hangs on every server: %d of %d answer, and %d have to agree. With one more lost nothing is taken", there, v.Size, quorum(v.Size))
	default:
		j.add(checkQuorum, health.OK, "", "", "%s leads; %d of %d servers answer, and %d have to agree", v.Leader, there, v.Size, quorum(v.Size))
	}
	switch {
	case v.Size == 1:
		j.add(checkServers, health.Warn, health.Scarce, "add servers to its cluster: three survive the loss of one", "a cluster of one server: nothing is replicated")
	case v.Size%2 == 0:
		j.add(checkServers, health.Warn, health.Scarce, fmt.Sprintf("add a server, or take one away: %d survive as many losses as %d do", v.Size, v.Size-1),
			"an even number of servers: of %d, %d have to agree, so the loss of %d stops them", v.Size, quorum(v.Size), v.Size-quorum(v.Size)+1)
	default:
		j.add(checkServers, health.OK, "", "", "%d servers: %s survive the loss of %d", v.Size, names(v.Servers), v.Size-quorum(v.Size))
	}
}

func names(servers []Server) string {
	var all []string
	for _, s := range servers {
		all = append(all, s.Name)
	}
	return strings.Join(all, ", ")
}

// differing groups servers by something that should be the same of all, and says which have what.
func (v View) differing(of func(Server) string) (differ bool, text string) {
	by := map[string][]string{}
	for _, s := range v.Servers {
		if !s.Off {
			by[of(s)] = append(by[of(s)], s.Name)
		}
	}
	var parts []string
	for _, value := range slices.Sorted(maps.Keys(by)) {
		parts = append(parts, fmt.Sprintf("%s: %s", orNone(value), strings.Join(by[value], ", ")))
	}
	return len(by) > 1, strings.Join(parts, "; ")
}

func orNone(text string) string {
	if text == "" {
		return "none"
	}
	return text
}

func (j *judgement) versions() {
	if differ, text := j.view.differing(func(s Server) string { return s.Version }); differ {
		j.add(checkVersions, health.Warn, health.Mixed, "bring all to the newest one, one after another, each when the one before is well again", "servers of several versions run: %s", text)
	}
}

// places says whether the servers are of one cluster, and one domain.
func (j *judgement) places() {
	if differ, text := j.view.differing(func(s Server) string { return s.Cluster }); differ {
		j.add(checkDomains, health.Warn, health.Mixed, "give all the same name in their cluster block: no stream has replicas in two clusters", "the servers are of several clusters: %s", text)
	}
	if differ, text := j.view.differing(func(s Server) string { return s.Domain }); differ {
		j.add(checkDomains, health.Fail, health.Mixed, "give all the same domain in their jetstream block, or none: no stream has replicas in two domains, and each has its own leader",
			"the servers are of several domains: %s", text)
	}
}

// durability says what a power loss may take.
func (j *judgement) durability() {
	var lazy []string
	interval := 0.0
	holders := 0
	for _, s := range j.view.Servers {
		if s.Off || !s.JetStream {
			continue
		}
		holders++
		if !s.SyncAlways {
			lazy, interval = append(lazy, s.Name), max(interval, s.SyncSeconds)
		}
	}
	events, found := j.view.stream(topology.AccountLedger, topology.EventStream)
	const always = "set sync_interval: always in the jetstream block (catenary configure --durability fsync), and start the server again"
	switch {
	case holders == 0:
	case len(lazy) == 0:
		j.add(checkDurability, health.OK, "", "", "what is acknowledged is on disk")
	case len(lazy) < holders:
		j.add(checkDurability, health.Warn, health.Mixed, always, "only some servers sync always; not %s", strings.Join(lazy, ", "))
	case !found || events.Wanted > 1:
		j.add(checkDurability, health.OK, "", "", "the servers sync every %.0f s: the loss of one takes nothing that is acknowledged, and a power loss of all at once may", interval)
	default:
		j.add(checkDurability, health.Warn, health.Volatile, always, "one server alone holds the events, and syncs every %.0f s: a power loss may take what it has acknowledged since", interval)
	}
}

func (v View) stream(account, name string) (Stream, bool) {
	for _, s := range v.Streams {
		if s.Account == account && s.Name == name {
			return s, true
		}
	}
	return Stream{}, false
}

// streams says whether there are any, and whether the events are among them.
func (j *judgement) streams() bool {
	if len(j.view.Streams) == 0 {
		j.add(checkStreams, health.OK, "", "", "there are no streams yet: the first writer and the first projector make them")
		return false
	}
	if _, found := j.view.stream(topology.AccountLedger, topology.EventStream); !found {
		j.add(checkStreams, health.Fail, health.Missing, startServers+"; if none is, bring it back with catenary restore from a backup", "no server that answers holds the event stream")
	}
	return true
}

// list names the first few streams, and counts the rest.
func list(streams []string) string {
	if len(streams) <= namedStreams {
		return strings.Join(streams, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(streams[:namedStreams], ", "), len(streams)-namedStreams)
}

// which names the streams of which something is so, the event stream first, and says whether it is among them.
func (v View) which(so func(Stream) bool) (found []string, events bool) {
	for _, s := range v.Streams {
		if so(s) {
			name := s.Name
			if s.Account != topology.AccountLedger {
				name = s.Account + " " + name
			}
			found = append(found, name)
			events = events || s.Account == topology.AccountLedger && s.Name == topology.EventStream
		}
	}
	return found, events
}

func (j *judgement) leaders() {
	if bad, _ := j.view.which(func(s Stream) bool { return s.Leader == "" }); len(bad) > 0 {
		j.add(checkStreams, health.Fail, health.Away, startServers+"; where all run, wait some seconds for a leader", "%s without a leader: nothing there can be read, and nothing is taken", areList(bad))
	}
	if bad, _ := j.view.which(func(s Stream) bool { return s.Leader != "" && s.Wanted > 1 && s.There < quorum(s.Wanted) }); len(bad) > 0 {
		j.add(checkStreams, health.Fail, health.Away, startServers, "%s without enough servers to take anything", areList(bad))
	}
	if bad, _ := j.view.which(func(s Stream) bool {
		return s.Leader != "" && s.Wanted > 1 && s.There < s.Wanted && s.There == quorum(s.Wanted)
	}); len(bad) > 0 {
		j.add(checkStreams, health.Warn, health.Scarce, startServers+", and wait for those that are behind", "%s on the last servers that suffice: with one more lost nothing is taken there", areList(bad))
	}
}

func areList(names []string) string {
	if len(names) == 1 {
		return names[0] + " is"
	}
	return list(names) + " are"
}

// replicas says what is held by one server alone, although there are others.
func (j *judgement) replicas() {
	if !j.view.Clustered || j.view.Size < 2 {
		return
	}
	alone, events := j.view.which(func(s Stream) bool { return s.Wanted == 1 })
	if len(alone) > 0 {
		state := health.Warn
		if events {
			state = health.Fail
		}
		j.add(checkReplicas, state, health.Scarce,
			fmt.Sprintf("set replicas: %d in catenary.yaml, and start the writer and the projector again; for what stays so then, %s", topology.ReplicasOf(j.view.Size), makeThree),
			"%s held by one server alone, although there are %d: what is lost with it is lost", areList(alone), j.view.Size)
	}
	lacking, _ := j.view.which(func(s Stream) bool { return s.Leader != "" && s.Wanted > 1 && len(s.Peers)+1 < s.Wanted })
	if len(lacking) > 0 {
		j.add(checkReplicas, health.Warn, health.Scarce, "add a server, or see why those that are there have no room (max_file_store)", "%s without a place on as many servers as configured", areList(lacking))
	}
	if len(alone)+len(lacking) == 0 {
		j.add(checkReplicas, health.OK, "", "", "all %d streams are held by several servers", len(j.view.Streams))
	}
}

// peers says which servers are behind, and in what. Those that are off are named already.
func (j *judgement) peers() {
	behind := map[string][]string{}
	most := map[string]uint64{}
	for _, s := range j.view.Streams {
		for _, p := range s.Peers {
			if !p.Off && p.Behind() {
				behind[p.Server], most[p.Server] = append(behind[p.Server], s.Name), max(most[p.Server], p.Lag)
			}
		}
	}
	for _, server := range slices.Sorted(maps.Keys(behind)) {
		j.add(checkServer+server, health.Warn, health.Behind, "wait until it has caught up, before another server is stopped; if it does not, look into its log and at its disk",
			"it is behind in %s, by up to %d operations", list(behind[server]), most[server])
	}
}

// mirrors says which copies are not there, or do not follow.
func (j *judgement) mirrors() {
	const next = "start a projector with mirrors-nkey: it makes and keeps the copies"
	var gone []string
	for _, bucket := range topology.MirroredBuckets() {
		_, origin := j.view.stream(topology.AccountLedger, topology.BucketStream(bucket))
		_, mirror := j.view.stream(topology.AccountOps, topology.BucketStream(bucket))
		if origin && !mirror {
			gone = append(gone, bucket)
		}
	}
	if len(gone) > 0 {
		j.add(checkMirrors, health.Warn, health.Missing, next, "people have no copy of %s", list(gone))
	}
	silent, _ := j.view.which(func(s Stream) bool {
		return s.Mirror != nil && (!s.Mirror.Following || s.Mirror.Problem != "")
	})
	late, _ := j.view.which(func(s Stream) bool { return s.Mirror != nil && s.Mirror.Lag > mirrorLagTolerated })
	if len(silent) > 0 {
		j.add(checkMirrors, health.Warn, health.Away, "wait: a copy finds its bucket again within half a minute of a server's loss; then start the projector again, which looks at all copies",
			"%s not following: people may read what is no longer so", areList(silent))
	}
	if len(late) > 0 {
		j.add(checkMirrors, health.Warn, health.Behind, "wait until they have caught up; if they do not, look at the disks of the servers", "%s behind by more than %d values", areList(late), mirrorLagTolerated)
	}
	if len(gone)+len(silent)+len(late) == 0 {
		j.add(checkMirrors, health.OK, "", "", "all copies follow their buckets")
	}
}
