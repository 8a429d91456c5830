package embedded

import (
	"context"
	"crypto/rand"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"time"

	"github.com/cockroachdb/errors"
	"golang.org/x/crypto/bcrypt"

	"catenary/internal/topology"
)

// agentsFile lists the agents that may connect, in the store directory.
const agentsFile = "agents.json"

// agents is that file: the hash of each agent's password, by its node as a token of a key.
type agents struct {
	Agents map[string]string `json:"agents"`
}

func readAgents(dir string) (agents, error) {
	a := agents{Agents: map[string]string{}}
	err := readState(filepath.Join(dir, agentsFile), &a)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	if a.Agents == nil {
		a.Agents = map[string]string{}
	}
	return a, err
}

// AddAgent makes credentials for the agent of a node, which is named as a token of a key, in a store directory. Those it had before are no
// longer taken. The password is told this once; the store keeps a hash. A server that runs takes them as soon as [Server.FollowAgents] has seen
// them. It gives ErrStore.
func AddAgent(storeDir, node string) (Credentials, error) {
	fail := func(err error) (Credentials, error) {
		return Credentials{}, errors.Mark(errors.Wrapf(err, "credentials for the agent of node %s", node), ErrStore)
	}
	known, err := readAgents(storeDir)
	if err != nil {
		return fail(err)
	}
	c := Credentials{User: topology.AgentUser(node), Password: rand.Text()}
	// The password is chance of full length, so that the cheapest hash will do: connecting must not take longer for it.
	hash, err := bcrypt.GenerateFromPassword([]byte(c.Password), bcrypt.MinCost)
	if err != nil {
		return fail(err)
	}
	known.Agents[node] = string(hash)
	if err := writeState(filepath.Join(storeDir, agentsFile), known); err != nil {
		return fail(err)
	}
	return c, nil
}

// agentUsers are the users of the agents that a store knows.
func agentUsers(dir string) ([]topology.User, error) {
	known, err := readAgents(dir)
	if err != nil {
		return nil, errors.Mark(err, ErrStore)
	}
	var users []topology.User
	for _, node := range slices.Sorted(maps.Keys(known.Agents)) {
		users = append(users, topology.User{Name: topology.AgentUser(node), Password: known.Agents[node], Node: node})
	}
	return users, nil
}

// agentsPace is how often the agents that a store knows are looked at.
const agentsPace = time.Second

// FollowAgents lets agents connect that credentials are made for while the server runs, and no longer those whose credentials were made anew,
// until the context ends. What can't be read or taken is logged, and tried again when the file changes. It returns nil.
func (s *Server) FollowAgents(ctx context.Context) error {
	tick := time.NewTicker(agentsPace)
	defer tick.Stop()
	before := s.layout.People[len(s.own):]
	var failed string
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		now, err := agentUsers(s.storeDir)
		if err == nil && slices.Equal(now, before) {
			continue
		}
		if err == nil {
			layout := s.layout
			layout.People = slices.Concat(s.own, now)
			if err = s.node.reload(layout); err == nil {
				before, failed = now, ""
				s.log.Info("other agents may connect", "agents", len(now))
				continue
			}
		}
		if text := err.Error(); text != failed {
			failed = text
			s.log.Error("agents that credentials were made for can't connect before the next start", "error", err)
		}
	}
}
