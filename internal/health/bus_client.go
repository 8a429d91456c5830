package health

import (
	"context"
	"encoding/json"
	"time"

	"github.com/cockroachdb/errors"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"catenary/internal/topology"
)

// How long answers are waited for. Whoever is there says so at once, within gatherQuiet of the one before; how it is may take as long as the
// slowest look.
const (
	gatherPatience = lookPatience + time.Second
	gatherQuiet    = 300 * time.Millisecond
)

// Heard is a report with when it was asked for and when it came, by the asker's clock.
type Heard struct {
	Report
	Asked, Came time.Time
}

// Skew says by how much the process's clock is ahead of the asker's, and what of that may be the way there and back.
func (h Heard) Skew() (ahead, doubt time.Duration) {
	half := h.Came.Sub(h.Asked) / 2
	return h.At.Sub(h.Asked.Add(half)), half
}

// Gather asks all processes of the chain how they are, and gives the answers of those that gave one in time: none, where nobody runs. It
// gives the context's error, and those of the connection.
func Gather(ctx context.Context, nc *nats.Conn) ([]Heard, error) {
	ping, err := micro.ControlSubject(micro.PingVerb, topology.HealthService, "")
	if err != nil {
		return nil, errors.Wrap(err, "ask how all processes are")
	}
	present, stop, err := ask(nc, ping)
	if err != nil {
		return nil, err
	}
	defer stop()
	asked := time.Now()
	answers, stop, err := ask(nc, topology.QuerySubject(Question))
	if err != nil {
		return nil, err
	}
	defer stop()
	ctx, cancel := context.WithDeadline(ctx, asked.Add(gatherPatience))
	defer cancel()
	there := 0
	for {
		waiting, cancel := context.WithTimeout(ctx, gatherQuiet)
		_, err := next(waiting, present)
		cancel()
		if err != nil {
			break // all who are there have said so, and why nothing more comes shows with the answers
		}
		there++
	}
	var all []Heard
	for len(all) < there {
		m, err := next(ctx, answers)
		switch {
		case errors.IsAny(err, nats.ErrNoResponders, context.DeadlineExceeded):
			return all, nil
		case err != nil:
			return all, errors.Wrap(err, "hear how all processes are")
		}
		h := Heard{Asked: asked, Came: time.Now()}
		if err := json.Unmarshal(m.Data, &h.Report); err != nil {
			return all, errors.Wrap(err, "a process has said how it is in words that can't be read")
		}
		all = append(all, h)
	}
	return all, nil
}

// ask sends a question to all, and gives what hears the answers.
func ask(nc *nats.Conn, subject string) (answers *nats.Subscription, stop func(), err error) {
	inbox := nc.NewInbox()
	sub, err := nc.SubscribeSync(inbox)
	if err == nil {
		err = nc.PublishRequest(subject, inbox, nil)
	}
	return sub, func() { _ = sub.Unsubscribe() }, errors.Wrapf(err, "ask %s", subject) // it may have gone with the connection
}

// next gives the next answer. It gives nats.ErrNoResponders when nobody is there, and the context's error.
func next(ctx context.Context, answers *nats.Subscription) (*nats.Msg, error) {
	m, err := answers.NextMsgWithContext(ctx)
	if err == nil && len(m.Data) == 0 && m.Header.Get("Status") == "503" {
		err = nats.ErrNoResponders
	}
	return m, err
}
