package desk

import (
	"context"
	"encoding/json"

	"github.com/cockroachdb/errors"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"catenary/agent"
	"catenary/es"
	"catenary/internal/topology"
)

// The codes of errors.
const (
	codeInvalid  = "invalid"
	codeNotFound = "not-found"
	codeBehind   = "behind"
	codeFailed   = "failed"
)

// Client asks how nodes are. It is safe for many goroutines.
type Client struct{ request agent.RequestFunc }

// NewClient returns a client that asks through a function.
func NewClient(request agent.RequestFunc) *Client { return &Client{request: request} }

// Node gives how a node is. It gives errors marked [es.ErrNotFound] and [agent.ErrNoDesk].
func (c *Client) Node(ctx context.Context, name string) (Node, error) {
	page, err := c.ask(ctx, NodesQuestion{Node: name})
	if err != nil {
		return Node{}, err
	}
	if len(page.Nodes) != 1 {
		return Node{}, errors.Newf("ask for node %s: %d came", name, len(page.Nodes))
	}
	return page.Nodes[0], nil
}

// Nodes gives how all nodes are, in order. It gives errors marked [agent.ErrNoDesk].
func (c *Client) Nodes(ctx context.Context) ([]Node, error) {
	var all []Node
	for q := (NodesQuestion{}); ; {
		page, err := c.ask(ctx, q)
		if err != nil {
			return nil, err
		}
		all = append(all, page.Nodes...)
		if page.Cursor == "" {
			return all, nil
		}
		q.Cursor = page.Cursor
	}
}

func (c *Client) ask(ctx context.Context, q NodesQuestion) (NodesPage, error) {
	var page NodesPage
	m := nats.NewMsg(topology.QuerySubject(QuestionNodes))
	var err error
	if m.Data, err = json.Marshal(q); err != nil {
		return page, errors.Wrap(err, "ask for nodes")
	}
	reply, err := c.request(ctx, m)
	switch {
	case errors.Is(err, nats.ErrNoResponders):
		return page, errors.Mark(errors.New("nobody tells how nodes are: is a projector running?"), agent.ErrNoDesk)
	case err != nil:
		return page, errors.Wrap(err, "ask for nodes")
	}
	switch code := reply.Header.Get(micro.ErrorCodeHeader); code {
	case "":
	case codeNotFound:
		return page, errors.Mark(errors.New(reply.Header.Get(micro.ErrorHeader)), es.ErrNotFound)
	default:
		return page, errors.Newf("ask for nodes: %s (%s)", reply.Header.Get(micro.ErrorHeader), code)
	}
	return page, errors.Wrap(json.Unmarshal(reply.Data, &page), "read the answer about nodes")
}
