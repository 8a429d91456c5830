package main

import (
	"context"
	"time"

	"github.com/cockroachdb/errors"
	"github.com/nats-io/nats.go"

	"catenary/audit"
	"catenary/chain"
	"catenary/es/natskv"
	"catenary/internal/hammer"
)

// queryGround is what queries are asked of: the chain that the load set was imported into.
const queryGround = "query, "

// question is something people ask.
type question struct {
	name string
	// mustTake is what 99 of 100 answers must not take longer than; 0 for no bound.
	mustTake time.Duration
	// ask asks the n-th time, about an assignment that stands.
	ask func(ctx context.Context, a asker, n int, of chain.Assignment) error
}

// asker is a connection of people.
type asker struct {
	reader  *chain.Reader
	queries *audit.Client
}

// questions are what is asked, one after another by one person.
func questions() []question {
	return append([]question{
		{"get one assignment", 0, func(ctx context.Context, a asker, _ int, of chain.Assignment) error {
			_, err := chain.Get(ctx, a.reader, chain.Assignments, of.Node, of.Module)
			return err
		}},
		{"list a node's assignments", 0, func(ctx context.Context, a asker, _ int, of chain.Assignment) error {
			_, err := chain.List(ctx, a.reader, chain.Assignments, chain.Query{Node: of.Node})
			return err
		}},
		{"history of one assignment", 0, func(ctx context.Context, a asker, _ int, of chain.Assignment) error {
			_, err := chain.History(ctx, a.reader, chain.Assignments, of.Node, of.Module)
			return err
		}},
		{"position of the views", 0, func(ctx context.Context, a asker, _ int, _ chain.Assignment) error {
			_, err := a.queries.Position(ctx, audit.PositionQuestion{})
			return err
		}},
		{"newest 20 events", 0, func(ctx context.Context, a asker, _ int, _ chain.Assignment) error {
			_, err := a.queries.Log(ctx, audit.LogQuestion{Limit: 20})
			return err
		}},
	}, pastQuestions()...)
}

func (b *bencher) wantsQueries() bool {
	for _, q := range questions() {
		if b.wants(queryGround+q.name, synced) {
			return true
		}
	}
	return false
}

// queryLines asks each question for as long as a run takes.
func (b *bencher) queryLines(ctx context.Context, nc *nats.Conn) ([]line, error) {
	a := asker{queries: audit.NewClient(nc, nil), reader: chain.NewReader(chain.Config{
		Open: func(ctx context.Context, bucket string) (chain.Bucket, error) { return natskv.Open(ctx, nc, bucket) },
	})}
	if err := pastKnown(ctx, nc); err != nil {
		return nil, errors.Wrap(err, "the audit store")
	}
	standing, err := chain.List(ctx, a.reader, chain.Assignments, chain.Query{})
	if err != nil {
		return nil, err
	}
	if len(standing.Entries) == 0 {
		return nil, errors.New("no assignment stands after the import")
	}
	var lines []line
	for _, q := range questions() {
		if !b.wants(queryGround+q.name, synced) {
			continue
		}
		var waited hammer.Latency
		watch, err := startWatch()
		if err != nil {
			return lines, err
		}
		n := 0
		for ; watch.elapsed() < b.runTime; n++ {
			record := standing.Entries[n%len(standing.Entries)].Value
			asked := time.Now()
			if err := q.ask(ctx, a, n, record); err != nil {
				return lines, errors.Wrap(err, q.name)
			}
			waited.Add(time.Since(asked))
		}
		l := line{name: queryGround + q.name, ground: synced.String(), callers: 1, unit: "answers", target: target{p99: q.mustTake}}
		if l.ours, err = watch.figure(n, &waited); err != nil {
			return lines, err
		}
		b.sayf("%s", l)
		lines = append(lines, l)
	}
	return lines, nil
}
