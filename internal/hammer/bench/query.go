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
	ask  func(ctx context.Context, a asker, node, module string) error
}

// asker is a connection of people.
type asker struct {
	reader  *chain.Reader
	queries *audit.Client
}

// questions are what is asked, one after another by one person. Node and module are those of an assignment that stands.
func questions() []question {
	return []question{
		{"get one assignment", func(ctx context.Context, a asker, node, module string) error {
			_, err := chain.Get(ctx, a.reader, chain.Assignments, node, module)
			return err
		}},
		{"list a node's assignments", func(ctx context.Context, a asker, node, _ string) error {
			_, err := chain.List(ctx, a.reader, chain.Assignments, chain.Query{Node: node})
			return err
		}},
		{"history of one assignment", func(ctx context.Context, a asker, node, module string) error {
			_, err := chain.History(ctx, a.reader, chain.Assignments, node, module)
			return err
		}},
		{"position of the views", func(ctx context.Context, a asker, _, _ string) error {
			_, err := a.queries.Position(ctx, audit.PositionQuestion{})
			return err
		}},
		{"newest 20 events", func(ctx context.Context, a asker, _, _ string) error {
			_, err := a.queries.Log(ctx, audit.LogQuestion{Limit: 20})
			return err
		}},
	}
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
			if err := q.ask(ctx, a, record.Node, record.Module); err != nil {
				return lines, errors.Wrap(err, q.name)
			}
			waited.Add(time.Since(asked))
		}
		l := line{name: queryGround + q.name, ground: synced.String(), callers: 1, unit: "answers"}
		if l.ours, err = watch.figure(n, &waited); err != nil {
			return lines, err
		}
		b.sayf("%s", l)
		lines = append(lines, l)
	}
	return lines, nil
}
