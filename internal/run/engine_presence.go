package run

import (
	"context"
	"encoding/json"
	"time"

	"github.com/cockroachdb/errors"
	"github.com/nats-io/nats.go"

	"catenary/internal/topology"
	"catenary/rollout"
)

const (
	// queryNodes is the query that tells how nodes are, by what their agents say.
	queryNodes = "nodes"
	// presenceEvery is how often it is asked which nodes are away: often beside the half minute that a node may be silent.
	presenceEvery = 5 * time.Second
	// nodeOff is the state of a node of which nothing is heard.
	nodeOff = "off"
	// nodeUnsure is that of one of which nobody can tell yet.
	nodeUnsure = "unsure"
)

// nodesPage is a page of the answer to [queryNodes].
type nodesPage struct {
	Nodes []struct {
		Node  string    `json:"node"`
		State string    `json:"state"`
		Heard time.Time `json:"heard"`
	} `json:"nodes"`
	Cursor string `json:"cursor"`
}

// watchPresence tells which nodes are away and which are back, until the context ends. Where nobody says how nodes are, none is away. It gives
// an error for an answer that can't be read.
func watchPresence(ctx context.Context, nc *nats.Conn, now func() time.Time, tell func(rollout.Presence)) error {
	away := map[string]bool{}
	tick := time.NewTicker(presenceEvery)
	defer tick.Stop()
	for {
		if err := lookForNodes(ctx, nc, func(node, state string, heard time.Time) {
			switch is := state == nodeOff; {
			case state == nodeUnsure || is == away[node]:
			case is:
				if heard.IsZero() {
					heard = now()
				}
				away[node] = true
				tell(rollout.Presence{Node: node, Since: heard})
			default:
				delete(away, node)
				tell(rollout.Presence{Node: node})
			}
		}); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// lookForNodes asks once how all nodes are. That nobody answers is no error.
func lookForNodes(ctx context.Context, nc *nats.Conn, see func(node, state string, heard time.Time)) error {
	ctx, cancel := context.WithTimeout(ctx, presenceEvery)
	defer cancel()
	cursor := ""
	for {
		question, err := json.Marshal(map[string]string{"cursor": cursor})
		if err != nil {
			return errors.Wrap(err, "encode the question how nodes are")
		}
		m, err := nc.RequestWithContext(ctx, topology.QuerySubject(queryNodes), question)
		if err != nil {
			return nil
		}
		var page nodesPage
		if err := json.Unmarshal(m.Data, &page); err != nil {
			return errors.Wrap(err, "the answer how nodes are can't be read")
		}
		for _, n := range page.Nodes {
			see(n.Node, n.State, n.Heard)
		}
		if page.Cursor == "" || page.Cursor == cursor {
			return nil
		}
		cursor = page.Cursor
	}
}
