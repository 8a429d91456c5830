package cluster

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"catenary/internal/topology"
)

// View is what all servers together say.
type View struct {
	// Clustered is false for one server that stands alone.
	Clustered bool `json:"clustered"`
	// Size is how many servers have a vote about what streams there are, Leader the one that leads them; empty when none does.
	Size   int    `json:"size"`
	Leader string `json:"leader,omitempty"`
	// Servers are those that have answered, and those that others know of, by name.
	Servers []Server `json:"servers"`
	// Streams are those of Catenary's accounts, by account and name.
	Streams []Stream `json:"streams"`
}

// Server is one server.
type Server struct {
	Name    string `json:"name"`
	Version string `json:"version,omitempty"`
	Cluster string `json:"cluster,omitempty"`
	Domain  string `json:"domain,omitempty"`
	// Off says that it has not answered; UnseenSeconds is then how long the others have not heard of it, zero when nobody can say.
	Off           bool    `json:"off,omitempty"`
	UnseenSeconds float64 `json:"unseen-seconds,omitempty"`
	// JetStream says that it holds streams.
	JetStream bool `json:"jetstream"`
	// SyncAlways says that what it acknowledges is on disk; SyncSeconds is how often it syncs otherwise.
	SyncAlways  bool    `json:"sync-always"`
	SyncSeconds float64 `json:"sync-seconds,omitempty"`
	// MaxStore is how many bytes it may store.
	MaxStore int64 `json:"max-store,omitempty"`
}

// Stream is one stream.
type Stream struct {
	Account string `json:"account"`
	Name    string `json:"name"`
	// Wanted is how many servers are to hold it, by its configuration.
	Wanted int `json:"replicas"`
	// There counts those that hold all of it and answer, the leader among them.
	There int `json:"there"`
	// Leader is empty when none of the servers that answer knows of one.
	Leader string `json:"leader,omitempty"`
	// Peers are the other servers that hold it, as the leader has them.
	Peers []Peer `json:"peers,omitempty"`
	// Mirror says how a copy follows its bucket; nil for what is no copy.
	Mirror *Mirror `json:"mirror,omitempty"`
}

// Peer is a server that holds a stream and does not lead it.
type Peer struct {
	Server string `json:"server"`
	Off    bool   `json:"off,omitempty"`
	// Joining says that it is only about to hold the stream.
	Joining bool `json:"joining,omitempty"`
	// Lag counts the operations that the leader has and it has not.
	Lag uint64 `json:"lag,omitempty"`
}

// Behind says whether the peer lacks more than what is just on its way to it.
func (p Peer) Behind() bool { return p.Joining || p.Lag > lagTolerated }

// lagTolerated is how many operations may be on their way to a server that is well: a busy stream has some hundreds in flight at any time.
const lagTolerated = 1000

// mirrorSilence is how long a copy may hear nothing: a bucket says every second that it is there.
const mirrorSilence = 15 * time.Second

// Mirror says how a copy follows its bucket.
type Mirror struct {
	// Following is false while it has not heard of its bucket since its leader began, or for longer than a bucket is silent that has nothing new.
	Following bool `json:"following"`
	// Lag counts the values that it lacks.
	Lag     uint64 `json:"lag,omitempty"`
	Problem string `json:"problem,omitempty"`
}

// Lacking says why no server may be stopped now: one is off, or holds not all of a stream that it is to hold. It is empty when all is there.
func (v View) Lacking() string {
	for _, s := range v.Servers {
		if s.Off {
			return "server " + s.Name + " does not answer"
		}
	}
	if v.Clustered && v.Leader == "" {
		return "the servers have no leader"
	}
	for _, s := range v.Streams {
		switch {
		case s.Leader == "":
			return "stream " + s.Name + " has no leader"
		case s.There < s.Wanted:
			return fmt.Sprintf("stream %s is on %d of %d servers", s.Name, s.There, s.Wanted)
		}
	}
	return ""
}

// answer is what one server says, as the server writes it.
type answer struct {
	Server struct {
		Name      string `json:"name"`
		Version   string `json:"ver"`
		Cluster   string `json:"cluster"`
		Domain    string `json:"domain"`
		JetStream bool   `json:"jetstream"`
	} `json:"server"`
	Data struct {
		Disabled bool `json:"disabled"`
		Config   struct {
			MaxStore     int64         `json:"max_storage"`
			SyncAlways   bool          `json:"sync_always"`
			SyncInterval time.Duration `json:"sync_interval"`
		} `json:"config"`
		Meta *struct {
			Leader   string       `json:"leader"`
			Size     int          `json:"cluster_size"`
			Replicas []answerPeer `json:"replicas"`
		} `json:"meta_cluster"`
		Accounts []struct {
			Name    string         `json:"name"`
			Streams []answerStream `json:"stream_detail"`
		} `json:"account_details"`
	} `json:"data"`
	Error *struct {
		Description string `json:"description"`
	} `json:"error"`
}

type answerPeer struct {
	Name    string        `json:"name"`
	Offline bool          `json:"offline"`
	Active  time.Duration `json:"active"`
	Lag     uint64        `json:"lag"`
	Pending bool          `json:"pending"`
}

type answerStream struct {
	Name    string `json:"name"`
	Cluster *struct {
		Leader   string       `json:"leader"`
		Replicas []answerPeer `json:"replicas"`
	} `json:"cluster"`
	Config *struct {
		Replicas int `json:"num_replicas"`
	} `json:"config"`
	Mirror *struct {
		Lag    uint64        `json:"lag"`
		Active time.Duration `json:"active"`
		Error  *struct {
			Description string `json:"description"`
		} `json:"error"`
	} `json:"mirror"`
}

// viewOf puts the answers of servers together.
func viewOf(answers []answer) View {
	v := View{Servers: []Server{}, Streams: []Stream{}}
	servers := map[string]Server{}
	for _, a := range answers {
		servers[a.Server.Name] = Server{
			Name: a.Server.Name, Version: a.Server.Version, Cluster: a.Server.Cluster, Domain: a.Server.Domain,
			JetStream:  a.Server.JetStream && !a.Data.Disabled,
			SyncAlways: a.Data.Config.SyncAlways, SyncSeconds: a.Data.Config.SyncInterval.Seconds(), MaxStore: a.Data.Config.MaxStore,
		}
		v.Clustered = v.Clustered || a.Data.Meta != nil || a.Server.Cluster != ""
	}
	for _, a := range answers {
		if a.Data.Meta == nil {
			continue
		}
		v.Size = max(v.Size, a.Data.Meta.Size)
		if a.Data.Meta.Leader != "" {
			v.Leader = a.Data.Meta.Leader
		}
		for _, p := range a.Data.Meta.Replicas {
			if known, ok := servers[p.Name]; !ok || known.Off {
				// The leader hears all the time, and the others seldom: who has heard last knows best.
				if s := p.Active.Seconds(); s > 0 && (known.UnseenSeconds == 0 || s < known.UnseenSeconds) {
					known.UnseenSeconds = s
				}
				known.Name, known.Off, known.JetStream = p.Name, true, true
				servers[p.Name] = known
			}
		}
	}
	v.Size = max(v.Size, 1)
	if s, ok := servers[v.Leader]; v.Leader != "" && (!ok || s.Off) {
		v.Leader = "" // the others have not noticed yet
	}
	for _, name := range slices.Sorted(maps.Keys(servers)) {
		v.Servers = append(v.Servers, servers[name])
	}
	v.Streams = append(v.Streams, streamsOf(answers, servers)...)
	return v
}

// streamsOf gives what the leader of each stream says of it, or what can be made of the others' words where none answers.
func streamsOf(answers []answer, servers map[string]Server) []Stream {
	found := map[string]Stream{}
	for _, a := range answers {
		for _, account := range a.Data.Accounts {
			if account.Name != topology.AccountLedger && account.Name != topology.AccountOps {
				continue
			}
			for _, said := range account.Streams {
				key := account.Name + " " + said.Name
				known, heard := found[key]
				leads := said.Cluster == nil || said.Cluster.Leader == a.Server.Name
				switch {
				case leads:
					found[key] = ledStream(account.Name, a.Server.Name, said, servers)
				case known.Leader != "" && heard:
				default:
					found[key] = unledStream(known, account.Name, a.Server.Name, said)
				}
			}
		}
	}
	all := slices.Collect(maps.Values(found))
	slices.SortFunc(all, func(a, b Stream) int { return cmp.Or(cmp.Compare(a.Account, b.Account), cmp.Compare(a.Name, b.Name)) })
	return all
}

func newStream(account string, said answerStream) Stream {
	s := Stream{Account: account, Name: said.Name, Wanted: 1}
	if said.Config != nil {
		s.Wanted = max(said.Config.Replicas, 1)
	}
	return s
}

func ledStream(account, leader string, said answerStream, servers map[string]Server) Stream {
	s := newStream(account, said)
	s.Leader, s.There = leader, 1
	if said.Cluster != nil {
		for _, p := range said.Cluster.Replicas {
			peer := Peer{Server: p.Name, Off: p.Offline || servers[p.Name].Off || servers[p.Name].Name == "", Joining: p.Pending, Lag: p.Lag}
			if !peer.Off && !peer.Behind() {
				s.There++
			}
			s.Peers = append(s.Peers, peer)
		}
	}
	slices.SortFunc(s.Peers, func(a, b Peer) int { return cmp.Compare(a.Server, b.Server) })
	if said.Mirror != nil {
		s.Mirror = &Mirror{Following: said.Mirror.Active >= 0 && said.Mirror.Active < mirrorSilence, Lag: said.Mirror.Lag}
		if said.Mirror.Error != nil {
			s.Mirror.Problem = said.Mirror.Error.Description
		}
	}
	return s
}

// unledStream adds one more server to a stream that no server which has answered leads.
func unledStream(known Stream, account, server string, said answerStream) Stream {
	s := newStream(account, said)
	s.Peers = append(known.Peers, Peer{Server: server})
	s.There = len(s.Peers)
	return s
}
