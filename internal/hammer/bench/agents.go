package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"runtime"
	"time"

	"github.com/cockroachdb/errors"
	"github.com/nats-io/nats.go"

	"catenary/agent/desk"
	"catenary/commands"
	"catenary/es"
	"catenary/es/dispatch"
	"catenary/events"
	"catenary/internal/natsconn"
	"catenary/internal/run"
)

// agentLoad is how a chain that runs elsewhere is loaded with simulated agents.
type agentLoad struct {
	url, name     string
	count, rounds int
	// tiers is how many tiers a rollout has that follows the rounds; none without any.
	tiers  int
	within time.Duration
}

// agents simulates agents on a chain that runs elsewhere, and tells all of their nodes one version after another. What it registers stays.
func agents(ctx context.Context, args []string, _ func(string) string, stdout, stderr io.Writer) error {
	var l agentLoad
	flags := flag.NewFlagSet("bench agents", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&l.url, "server", nats.DefaultURL, "`URL` of the bus, as people connect")
	flags.StringVar(&l.name, "name", "fleet", "`name` that the names of the nodes and the module begin with")
	flags.IntVar(&l.count, "count", 1000, "how many agents are simulated")
	flags.IntVar(&l.rounds, "rounds", 3, "how many versions all nodes are told, one after another")
	flags.IntVar(&l.tiers, "tiers", 0, "in how many tiers of the same size a rollout goes over all nodes in the end; none with 0")
	flags.DurationVar(&l.within, "within", 5*time.Minute, "longest `span` that a round may take")
	if err := flags.Parse(args); err != nil {
		return errors.Mark(err, errUsage)
	}
	if flags.NArg() > 0 || l.count < 1 || l.rounds < 1 || l.tiers < 0 || l.tiers > l.count {
		fmt.Fprintln(stderr, "bench agents: takes flags only, with -count and -rounds above zero, and no more -tiers than agents")
		return errUsage
	}
	conn, err := natsconn.Connect(ctx, natsconn.Config{Server: l.url, Name: "bench agents", Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	defer conn.Close()
	return l.run(ctx, conn, stdout)
}

func (l agentLoad) run(ctx context.Context, conn *natsconn.Conn, stdout io.Writer) error {
	client := commands.NewClient(dispatch.NewClient(conn.Conn)).Within(time.Minute)
	module := l.name + "-app"
	known := []es.Payload{commands.RegisterModule{ModuleSpec: events.ModuleSpec{Module: module}}}
	names := make([]string, l.count)
	for i := range names {
		names[i] = fmt.Sprintf("%s-%04d", l.name, i+1)
		known = append(known, commands.RegisterNode{Node: names[i]})
	}
	if err := sendAll(ctx, client, known); err != nil {
		return err
	}
	heapBefore, told := heap(), events.Version{}
	simulating, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error, 1)
	go func() {
		ended <- run.Simulate(simulating, conn, run.SimulateConfig{Nodes: names, Logger: slog.New(slog.DiscardHandler)})
	}()
	nodes := desk.NewClient(conn.RequestMsgWithContext)
	editions, err := l.converged(ctx, nodes, names, nil)
	if err != nil {
		return err
	}
	for round := range l.rounds {
		assigns := make([]es.Payload, len(names))
		told = versionOf(module, round)
		for i, node := range names {
			assigns[i] = commands.Assign{Node: node, Module: module, Reference: told.Reference}
		}
		begin := time.Now()
		if err := sendAll(ctx, client, assigns); err != nil {
			return err
		}
		sent := time.Since(begin)
		if editions, err = l.converged(ctx, nodes, names, editions); err != nil {
			return err
		}
		if _, err := fmt.Fprintf(stdout, "round %d: %d nodes told in %s, all applied, reported and known to be so after %s\n", round+1, l.count,
			sent.Round(time.Millisecond), time.Since(begin).Round(time.Millisecond)); err != nil {
			return errors.Wrap(err, "print the result")
		}
	}
	if _, err := fmt.Fprintf(stdout, "memory: %d KiB an agent, with what it knows of one module\n", (heap()-heapBefore)/int64(l.count)>>10); err != nil {
		return errors.Wrap(err, "print the result")
	}
	if l.tiers > 0 {
		took, err := l.rollout(ctx, conn, client, module, names, told)
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(stdout, "rollout: %d nodes in %d tiers, each told, applied, reported and ended, finished after %s\n", l.count, l.tiers, took.Round(time.Millisecond)); err != nil {
			return errors.Wrap(err, "print the result")
		}
	}
	stop()
	return <-ended
}

// versionOf is another version each time.
func versionOf(module string, round int) events.Version {
	version := fmt.Sprintf("%d.%d", time.Now().Unix(), round)
	return events.Version{Reference: events.Reference{Package: &events.Package{Name: module, Version: version}}}
}

// heap is what is in use of the heap and of stacks.
func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapInuse + m.StackInuse)
}

// sendAll sends commands, all of which must be accepted or be so already.
func sendAll(ctx context.Context, client *commands.Client, payloads []es.Payload) error {
	for o := range client.SendMany(ctx, func(yield func(commands.Sending) bool) {
		for _, p := range payloads {
			if !yield(commands.Sending{Payload: p}) {
				return
			}
		}
	}, 0) {
		if o.Err != nil {
			return o.Err
		}
		if s := o.Answer.Status; s != es.StatusAccepted && s != es.StatusUnchanged {
			return errors.Newf("%s: %s: %v", o.Payload.Ref(), s, o.Answer.Error)
		}
	}
	return ctx.Err()
}

// converged waits until all nodes have converged to another edition than before, and gives it.
func (l agentLoad) converged(ctx context.Context, nodes *desk.Client, names []string, before map[string]string) (map[string]string, error) {
	ctx, cancel := context.WithTimeout(ctx, l.within)
	defer cancel()
	mine := map[string]bool{}
	for _, name := range names {
		mine[name] = true
	}
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		all, err := nodes.Nodes(ctx)
		if err != nil {
			return nil, err
		}
		now := map[string]string{}
		for _, n := range all {
			if mine[n.Node] && n.Converged && n.Edition != before[n.Node] {
				now[n.Node] = n.Edition
			}
		}
		if len(now) == len(names) {
			return now, nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil, errors.Wrapf(ctx.Err(), "%d nodes have not converged", len(names)-len(now))
		}
	}
}
