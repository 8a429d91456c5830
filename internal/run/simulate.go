package run

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"catenary/agent"
	"catenary/agent/driver"
	"catenary/agent/driver/sim"
	"catenary/commands"
	"catenary/es"
	"catenary/es/dispatch"
	"catenary/es/natskv"
	"catenary/internal/natsconn"
	"catenary/internal/topology"
)

// SimulateConfig says which agents are simulated.
type SimulateConfig struct {
	// Nodes are theirs. Without any there are Count of them, called Prefix-0001 and so on.
	Nodes  []string
	Prefix string
	Count  int
	// Sim is how their drivers are; the name is sim where it is empty.
	Sim sim.Config
	// Zero means the defaults of package agent.
	Every, Observe time.Duration
	Logger         *slog.Logger
}

// names gives the nodes.
func (c SimulateConfig) names() []string {
	if len(c.Nodes) > 0 {
		return c.Nodes
	}
	names := make([]string, c.Count)
	for i := range names {
		names[i] = fmt.Sprintf("%s-%04d", c.Prefix, i+1)
	}
	return names
}

// Simulate runs agents that only remember, all over one connection, as a person who may speak for any node. What they know ends with them. Their
// reports go through the inbox like anybody's. It returns when the context has ended, or with the first failure.
func Simulate(ctx context.Context, conn *natsconn.Conn, c SimulateConfig) error {
	request := func(ctx context.Context, m *nats.Msg) (*nats.Msg, error) { return natsconn.Request(ctx, conn, m) }
	names := c.names()
	hints, err := hearAll(conn.Conn, names)
	if err != nil {
		return err
	}
	defer hints.stop()
	desk, inbox := agent.NewBusDesk(request), commands.NewClient(dispatch.NewInboxClient(conn.Conn, request))
	c.Sim.Name = cmp.Or(c.Sim.Name, sim.Kind)
	running, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error, len(names))
	for _, name := range names {
		d, err := sim.New(c.Sim, &sim.World{}, Version())
		if err != nil {
			return err
		}
		outbox := newReporter(inbox)
		a, err := agent.New(agent.Config{
			Node: name, Run: newID(), Version: Version(), Drivers: []driver.Driver{d}, Memory: &agent.Volatile{}, Desk: desk, Outbox: outbox,
			Hints: hints.of[name], Connected: connected(running, conn.Conn), Every: c.Every, Observe: c.Observe,
			StopWithin: time.Millisecond, Logger: slog.New(slog.DiscardHandler),
		})
		if err != nil {
			return err
		}
		go func() {
			ended <- Together(running, map[string]func(context.Context) error{"": a.Run, "reports": outbox.run})
		}()
	}
	c.Logger.Info("agents are simulated", "count", len(names))
	var failure error
	for range names {
		if err := <-ended; err != nil && failure == nil {
			failure = err
			stop()
		}
	}
	return failure
}

// heardAll are the hints of many nodes, over one subscription.
type heardAll struct {
	of   map[string]chan uint64
	stop func()
}

func hearAll(nc *nats.Conn, names []string) (heardAll, error) {
	h := heardAll{of: map[string]chan uint64{}}
	for _, name := range names {
		h.of[name] = make(chan uint64, 8)
	}
	sub, err := nc.Subscribe(topology.ToldSubject("*", "*"), func(m *nats.Msg) {
		_, e, err := natskv.ReadRepublished(m)
		if err != nil {
			return // anybody can say something there that is none
		}
		parts, err := es.SplitKey(e.Key)
		if err != nil || len(parts) != 2 {
			return
		}
		select {
		case h.of[parts[0]] <- e.Meta.Source.Sequence:
		default:
		}
	})
	if err != nil {
		return h, err
	}
	h.stop = func() { _ = sub.Unsubscribe() }
	return h, nil
}

// reporter is an outbox in memory: it sends reports one after another, each until the bus has it.
type reporter struct {
	inbox *commands.Client

	mu      sync.Mutex
	waiting []agent.Report
	changed chan struct{} // holds a sign when there is something to send
	empty   chan struct{} // closed, and made anew, when there is nothing any more
}

func newReporter(inbox *commands.Client) *reporter {
	return &reporter{inbox: inbox, changed: make(chan struct{}, 1), empty: make(chan struct{})}
}

// Take implements [agent.Outbox].
func (r *reporter) Take(_ context.Context, report agent.Report) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.waiting = append(r.waiting, report)
	select {
	case r.changed <- struct{}{}:
	default:
	}
	return nil
}

// Unsent implements [agent.Outbox].
func (r *reporter) Unsent() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.waiting)
}

// Flush implements [agent.Outbox].
func (r *reporter) Flush(ctx context.Context) error {
	for {
		r.mu.Lock()
		left, empty := len(r.waiting), r.empty
		r.mu.Unlock()
		if left == 0 {
			return nil
		}
		select {
		case <-empty:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// reportAgain is how long a report waits that could not be sent.
const reportAgain = 250 * time.Millisecond

func (r *reporter) run(ctx context.Context) error {
	for ctx.Err() == nil {
		r.mu.Lock()
		var next *agent.Report
		if len(r.waiting) > 0 {
			next = &r.waiting[0]
		}
		r.mu.Unlock()
		if next == nil {
			select {
			case <-r.changed:
			case <-ctx.Done():
			}
			continue
		}
		answer, err := r.inbox.Send(ctx, next.Command, dispatch.Options{ID: next.ID, Trace: next.Trace})
		if err != nil || answer.Status == es.StatusBusy {
			select {
			case <-time.After(reportAgain):
			case <-ctx.Done():
			}
			continue
		}
		r.sent()
	}
	return nil
}

func (r *reporter) sent() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.waiting = r.waiting[1:]
	if len(r.waiting) == 0 {
		close(r.empty)
		r.empty = make(chan struct{})
	}
}
