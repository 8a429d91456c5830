package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/cockroachdb/errors"

	"catenary/chain"
	"catenary/commands"
	"catenary/es"
	"catenary/es/natskv"
	"catenary/events"
	"catenary/internal/hammer"
	"catenary/internal/natsconn"
)

// rollout takes all nodes to another version in tiers of the same size, and gives how long it took from the start to the end. An engine MUST
// run beside the chain.
func (l agentLoad) rollout(ctx context.Context, conn *natsconn.Conn, client *commands.Client, module string, names []string, before events.Version) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, l.within)
	defer cancel()
	id, after := fmt.Sprintf("%s-%d", l.name, time.Now().UnixNano()), versionOf(module, l.rounds)
	tiers, steps := make([]string, l.tiers), make([]events.PlannedStep, len(names))
	for i := range tiers {
		tiers[i] = fmt.Sprintf(`{"name":"tier %d"}`, i+1)
	}
	for i, node := range names {
		tier := fmt.Sprintf("tier %d", i*l.tiers/len(names)+1)
		steps[i] = events.PlannedStep{Tier: tier, StepName: events.StepName{Node: node, Module: module}, Before: &before, After: &after}
	}
	plan, err := hammer.Planned(id, events.Raw(`{"tiers":[`+strings.Join(tiers, ",")+`]}`), steps...)
	if err != nil {
		return 0, err
	}
	if err := sendAll(ctx, client, plan); err != nil {
		return 0, err
	}
	reader := chain.NewReader(chain.Config{
		Open: func(ctx context.Context, bucket string) (chain.Bucket, error) {
			return natskv.Open(ctx, conn.Conn, bucket)
		}, Clock: time.Now,
	})
	begin := time.Now()
	if err := sendAll(ctx, client, []es.Payload{commands.StartRollout{ID: id}}); err != nil {
		return 0, err
	}
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		e, err := chain.Get(ctx, reader, chain.Rollouts, id)
		switch {
		case err != nil && !errors.Is(err, es.ErrNotFound):
			return 0, err
		case err == nil && e.Value.State == chain.RolloutFinished:
			return time.Since(begin), nil
		case err == nil && !e.Value.Stands():
			return 0, errors.Newf("rollout %s is %s: %s", id, e.Value.State, e.Value.Reason)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return 0, errors.Wrapf(ctx.Err(), "rollout %s is not finished; does an engine run?", id)
		}
	}
}
