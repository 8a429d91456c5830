package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"time"

	"github.com/cockroachdb/errors"
	"github.com/nats-io/nats.go"

	"catenary/es/dispatch"
	"catenary/internal/hammer"
)

// load hammers a chain that runs elsewhere, over the bus. The nodes and modules it registers stay.
func load(ctx context.Context, args []string, _ func(string) string, stdout, stderr io.Writer) error {
	var l hammer.Load
	flags := flag.NewFlagSet("bench load", flag.ContinueOnError)
	flags.SetOutput(stderr)
	url := flags.String("server", nats.DefaultURL, "`URL` of the bus, as people connect")
	flags.IntVar(&l.Callers, "callers", 64, "how many send at the same time")
	flags.IntVar(&l.InFlight, "in-flight", 1, "how many commands of one caller wait for their answer")
	flags.IntVar(&l.Commands, "commands", 0, "how many are sent in all; 0 for no limit")
	flags.DurationVar(&l.For, "for", 10*time.Second, "how long new ones are sent; 0 for no limit")
	name := flags.String("name", "hammer", "`name` that the names of nodes and modules begin with")
	nodes := flags.Int("nodes", nodeCount, "how many nodes are told")
	modules := flags.Int("modules", moduleCount, "how many modules they are told to run; with one node and one module all goes to one aggregate")
	if err := flags.Parse(args); err != nil {
		return errors.Mark(err, errUsage)
	}
	if flags.NArg() > 0 || l.Commands <= 0 && l.For <= 0 {
		fmt.Fprintln(stderr, "bench load: takes flags only, and needs -for or -commands above zero")
		return errUsage
	}
	nc, err := nats.Connect(*url, nats.Name("bench load"))
	if err != nil {
		return errors.Wrapf(err, "connect to %s", *url)
	}
	defer nc.Close()
	pipeline, err := dispatch.NewPipeline(nc, 0)
	if err != nil {
		return err
	}
	sender := hammer.OverBus{Post: pipeline.Post, NewID: newID}
	fleet := hammer.NewFleet(*name, *nodes, *modules)
	l.Next = fleet.Next
	result, err := hammer.Run(ctx, sender, setupLoad(fleet))
	if err == nil {
		result, err = hammer.Run(ctx, sender, l)
	}
	if err = errors.CombineErrors(err, pipeline.Close()); err != nil {
		return err
	}
	if _, err := fmt.Fprintf(stdout, "%s accepted in %s: %s a second; answered after %s (p50), %s (p99)\n", thousands(float64(result.Accepted())),
		result.Took.Round(time.Millisecond), thousands(result.Rate()), wait(result.Waited.Quantile(0.5)), wait(result.Waited.Quantile(0.99))); err != nil {
		return errors.Wrap(err, "print the result")
	}
	return result.Err()
}
