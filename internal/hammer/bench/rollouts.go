package main

import (
	"context"
	"fmt"
	"time"

	"github.com/cockroachdb/errors"
	"github.com/nats-io/nats.go"

	"catenary/commands"
	"catenary/es"
	"catenary/es/dispatch"
	"catenary/es/natsstore"
	"catenary/events"
	"catenary/internal/hammer"
	"catenary/internal/run"
)

// rolloutRow is a row about rollouts whose nodes do at once what they are told: from the start to the end, with every begin and end in the
// stream.
type rolloutRow struct {
	name     string
	strategy string
	// tiers are the numbers of nodes of each tier.
	tiers []int
	// rollouts is how many of them walk at once, each over nodes of its own.
	rollouts int
	target
}

const (
	// oneTier and threeTiers are the strategies of the rows.
	oneTier    = `{"tiers":[{"name":"t0"}]}`
	threeTiers = `{"tiers":[{"name":"t0","concurrency":"50%"},{"name":"t1","concurrency":"50%"},{"name":"t2","concurrency":"50%"}]}`
)

func rolloutRows() []rolloutRow {
	shape := []int{20, 30, 50}
	return []rolloutRow{
		{name: "rollout of 3,222 steps", strategy: oneTier, tiers: []int{3222}, rollouts: 1, target: target{rate: 1000}},
		{name: "rollout over tiers of 20, 30 and 50, half at once", strategy: threeTiers, tiers: shape, rollouts: 1, target: target{p99: 500 * time.Millisecond}},
		{name: "100 of these at once", strategy: threeTiers, tiers: shape, rollouts: 100, target: target{p99: 20 * time.Second}},
	}
}

// rolloutLines runs the rows about rollouts.
func (b *bencher) rolloutLines(ctx context.Context) ([]line, error) {
	var lines []line
	for _, r := range rolloutRows() {
		if !b.wants(r.name, synced) {
			continue
		}
		l := line{name: r.name, ground: synced.String(), unit: "steps", target: r.target}
		err := synced.on(ctx, b.dir, func(ctx context.Context, s server) error {
			pairs, err := b.rolloutPairs(ctx, s, r)
			l = l.summed(pairs)
			return err
		})
		if err != nil {
			return lines, errors.Wrap(err, r.name)
		}
		b.sayf("%s", l)
		lines = append(lines, l)
	}
	return lines, nil
}

// rolloutPairs starts writer, engine and nodes and walks a row as often as asked.
func (b *bencher) rolloutPairs(ctx context.Context, s server, r rolloutRow) (_ []pair, err error) {
	var conns [4]*nats.Conn
	for i := range conns {
		if conns[i], err = s.Ledger(); err != nil {
			return nil, err
		}
	}
	store, err := openAfter(ctx, conns[0], s)
	if err != nil {
		return nil, err
	}
	defer store.Close()
	p, err := startParts(ctx, writerPart(conns[0], s, synced), enginePart(conns[1]), nodesPart(conns[2], store))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.CombineErrors(err, p.stop()) }()
	w := walker{row: r, store: store, client: commands.NewClient(dispatch.NewClient(conns[3])).Within(patience)}
	if err := w.setUp(ctx); err != nil {
		return nil, err
	}
	var pairs []pair
	for n := range b.runs {
		f, err := w.walk(ctx, n)
		if err != nil {
			return nil, err
		}
		pairs = append(pairs, pair{ours: f})
	}
	return pairs, nil
}

// patience bounds one command of the preparations.
const patience = 30 * time.Second

// openAfter opens the event stream, which it makes.
func openAfter(ctx context.Context, nc *nats.Conn, s server) (*natsstore.Store, error) {
	if err := natsstore.Ensure(ctx, nc, s.Options()); err != nil {
		return nil, err
	}
	return natsstore.Open(ctx, nc, natsstore.Config{})
}

// enginePart is the engine's process.
func enginePart(nc *nats.Conn) func(context.Context, func()) error {
	return func(ctx context.Context, ready func()) error {
		return run.Engine(ctx, nc, run.EngineConfig{Logger: discard(), Ready: ready})
	}
}

// nodesPart is nodes that do at once what they are told.
func nodesPart(nc *nats.Conn, store *natsstore.Store) func(context.Context, func()) error {
	return func(ctx context.Context, ready func()) error {
		pipeline, err := dispatch.NewPipeline(nc, 0)
		if err != nil {
			return err
		}
		ready()
		nodes := hammer.Nodes{Follow: store.Follow, Registry: events.Registry(), Sender: hammer.OverBus{Post: pipeline.Post, NewID: newID}}
		return errors.CombineErrors(nodes.Run(ctx), pipeline.Close())
	}
}

// walker walks the rollouts of a row.
type walker struct {
	row    rolloutRow
	store  *natsstore.Store
	client *commands.Client
}

func node(rollout, tier, i int) string {
	return fmt.Sprintf("node-%03d-%d-%04d.example.org", rollout, tier, i)
}

// all sends commands, many at once, each of which has to be done.
func (w walker) all(ctx context.Context, payloads []es.Payload) error {
	list := func(yield func(commands.Sending) bool) {
		for _, p := range payloads {
			if !yield(commands.Sending{Payload: p}) {
				return
			}
		}
	}
	for o := range w.client.SendMany(ctx, list, 0) {
		if o.Err != nil || o.Answer.Status != es.StatusAccepted {
			return errors.CombineErrors(errors.Newf("%s %s: %s %+v", o.Payload.Ref(), o.Payload.Verb(), o.Answer.Status, o.Answer.Error), o.Err)
		}
	}
	return nil
}

func (w walker) setUp(ctx context.Context) error {
	var list []es.Payload
	for r := range w.row.rollouts {
		for t, nodes := range w.row.tiers {
			for i := range nodes {
				list = append(list, commands.RegisterNode{Node: node(r, t, i), ManagedBy: events.ManagedByAgent})
			}
		}
	}
	return w.all(ctx, list)
}

// walk plans the rollouts of one run, starts them, and measures until all have finished.
func (w walker) walk(ctx context.Context, n int) (figure, error) {
	module := fmt.Sprintf("module-%d", n)
	plans := []es.Payload{commands.RegisterModule{ModuleSpec: events.ModuleSpec{Module: module}}}
	if err := w.all(ctx, plans); err != nil {
		return figure{}, err
	}
	plans = nil
	var starts []es.Payload
	steps := 0
	for r := range w.row.rollouts {
		id := fmt.Sprintf("rollout-%d-%03d", n, r)
		var list []events.PlannedStep
		for t, nodes := range w.row.tiers {
			for i := range nodes {
				list = append(list, events.PlannedStep{
					Tier: fmt.Sprintf("t%d", t), StepName: events.StepName{Node: node(r, t, i), Module: module},
					After: &events.Version{Reference: events.Reference{Package: &events.Package{Name: module, Version: "1.21"}}},
				})
			}
		}
		parts, err := hammer.Planned(id, events.Raw(w.row.strategy), list...)
		if err != nil {
			return figure{}, err
		}
		plans, starts, steps = append(plans, parts...), append(starts, commands.StartRollout{ID: id}), steps+len(list)
	}
	if err := w.all(ctx, plans); err != nil {
		return figure{}, err
	}
	tail, err := w.store.Tail(ctx)
	if err != nil {
		return figure{}, err
	}
	watch, err := startWatch()
	if err != nil {
		return figure{}, err
	}
	if err := w.all(ctx, starts); err != nil {
		return figure{}, err
	}
	if err := w.finished(ctx, tail); err != nil {
		return figure{}, err
	}
	f, err := watch.figure(steps, nil)
	f.p50, f.p99 = watch.elapsed(), watch.elapsed()
	return f, err
}

// finished waits until all rollouts of a run have finished.
func (w walker) finished(ctx context.Context, after uint64) error {
	left := w.row.rollouts
	for m, err := range w.store.Follow(ctx, after) {
		if err != nil {
			return err
		}
		switch m.Header[es.HeaderType][0] {
		case events.TypeRolloutFinished:
			left--
		case events.TypeRolloutFailed:
			return errors.Newf("a rollout failed: event %d on %s", m.Sequence, m.Subject)
		}
		if left == 0 {
			return nil
		}
	}
	return ctx.Err()
}
