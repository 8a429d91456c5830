package cluster

import (
	"context"
	"encoding/json"
	"time"

	"github.com/cockroachdb/errors"
	"github.com/nats-io/nats.go"

	"catenary/internal/topology"
)

// ErrSilent means that no server says how it is: it is configured without Catenary's accounts, or by an earlier version.
var ErrSilent = errors.New("no server says how it is")

const (
	// askPatience bounds the wait for servers that others know of. It is longer than a busy one needs to look at all its streams.
	askPatience = 3 * time.Second
	// askQuiet is how long nothing more may come after all have answered that are known: a server without JetStream is known to nobody.
	askQuiet = 200 * time.Millisecond
)

// Ask asks all servers how they are, over a connection in the account of people. It gives errors marked [ErrSilent], the context's, and those of the
// connection.
func Ask(ctx context.Context, nc *nats.Conn) (View, error) {
	const question = `{"accounts":true,"streams":true,"config":true}`
	inbox := nc.NewInbox()
	sub, err := nc.SubscribeSync(inbox)
	if err == nil {
		defer func() { _ = sub.Unsubscribe() }() // it may have gone with the connection
		err = nc.PublishRequest(topology.ServersSubject, inbox, []byte(question))
	}
	if err != nil {
		return View{}, errors.Wrap(err, "ask how the servers are")
	}
	asking, cancel := context.WithTimeout(ctx, askPatience)
	defer cancel()
	var answers []answer
	for {
		a, err := next(asking, sub, complete(answers))
		switch {
		case err == nil:
			answers = append(answers, a)
		case ctx.Err() != nil:
			return View{}, errors.Wrap(ctx.Err(), "ask how the servers are")
		case errors.IsAny(err, context.DeadlineExceeded, nats.ErrNoResponders) && len(answers) > 0:
			return viewOf(answers), nil
		case errors.IsAny(err, context.DeadlineExceeded, nats.ErrNoResponders):
			return View{}, errors.Mark(errors.Wrap(err, ErrSilent.Error()), ErrSilent)
		default:
			return View{}, err
		}
	}
}

// next gives the next answer.
func next(ctx context.Context, sub *nats.Subscription, hurry bool) (a answer, err error) {
	if hurry {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, askQuiet)
		defer cancel()
	}
	m, err := sub.NextMsgWithContext(ctx)
	if err != nil {
		return a, errors.Wrap(err, "hear how the servers are")
	}
	if len(m.Data) == 0 && m.Header.Get("Status") == "503" {
		return a, nats.ErrNoResponders
	}
	if err := json.Unmarshal(m.Data, &a); err != nil {
		return a, errors.Wrap(err, "a server has said how it is in words that can't be read")
	}
	if a.Error != nil {
		return a, errors.Newf("server %s can't say how it is: %s", a.Server.Name, a.Error.Description)
	}
	return a, nil
}

// complete says whether every server has answered that another knows of and does not call off.
func complete(answers []answer) bool {
	heard := map[string]bool{}
	for _, a := range answers {
		heard[a.Server.Name] = true
	}
	for _, a := range answers {
		if a.Data.Meta == nil {
			continue
		}
		for _, p := range a.Data.Meta.Replicas {
			if !p.Offline && !heard[p.Name] {
				return false
			}
		}
	}
	return len(answers) > 0
}
