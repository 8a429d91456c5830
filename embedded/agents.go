package embedded

import (
	"crypto/rand"
	"io/fs"
	"path/filepath"

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
// longer taken. The password is told this once; the store keeps a hash. A server takes them from its next start on. It gives ErrStore.
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
	for node, hash := range known.Agents {
		users = append(users, topology.User{Name: topology.AgentUser(node), Password: hash, Node: node})
	}
	return users, nil
}
