package main

import (
	"context"
	"os"
	"path/filepath"
	"time"

	"github.com/cockroachdb/errors"
	"github.com/nats-io/nats.go"

	"catenary/audit"
	"catenary/audit/store"
	"catenary/chain"
	"catenary/events"
)

// rowAudit is the row about building the audit store.
const rowAudit = "take in the audit store, from nothing"

// takeIn builds the audit store from the stream, with all its indexes, into a new file.
func (r *reading) takeIn(dir string) func(context.Context) (figure, error) {
	return func(ctx context.Context) (_ figure, err error) {
		folder, err := os.MkdirTemp(dir, "audit-")
		if err != nil {
			return figure{}, errors.Wrap(err, "folder of the audit store")
		}
		s, err := store.New(store.Config{Path: filepath.Join(folder, "audit.db"), Events: r.store, Registry: events.Registry()})
		if err != nil {
			return figure{}, err
		}
		running, stop := context.WithCancel(ctx)
		ended := make(chan error, 1)
		watch, err := startWatch()
		if err != nil {
			stop()
			return figure{}, err
		}
		go func() { ended <- s.Run(running) }()
		err = s.Wait(ctx, r.tail)
		found, watched := watch.figure(int(r.tail), nil)
		stop()
		return found, errors.CombineErrors(errors.CombineErrors(err, watched), <-ended)
	}
}

// Bounds that questions to the audit store must keep, over the bus, on the load set.
const (
	keyMustTake   = 5 * time.Millisecond
	chainMustTake = 50 * time.Millisecond
	traceMustTake = 20 * time.Millisecond
)

// pastQuestions are what is asked of the audit store. The moments lie in the span of the load set.
func pastQuestions() []question {
	begin := time.Date(2024, time.January, 3, 0, 0, 0, 0, time.UTC)
	at := func(n int) audit.Moment { return audit.Moment{At: begin.AddDate(0, 0, n*37%900)} }
	return []question{
		{"as-of of one assignment", keyMustTake, func(ctx context.Context, a asker, n int, of chain.Assignment) error {
			_, err := a.queries.AsOf(ctx, audit.AsOfQuestion{Moment: at(n), Node: of.Node, Module: of.Module})
			return err
		}},
		{"blame", keyMustTake, func(ctx context.Context, a asker, _ int, of chain.Assignment) error {
			_, err := a.queries.Blame(ctx, audit.BlameQuestion{Node: of.Node, Module: of.Module})
			return err
		}},
		{"as-of of the chain", chainMustTake, func(ctx context.Context, a asker, n int, _ chain.Assignment) error {
			_, err := a.queries.AsOf(ctx, audit.AsOfQuestion{Moment: at(n)})
			return err
		}},
		{"diff of two moments", chainMustTake, func(ctx context.Context, a asker, n int, _ chain.Assignment) error {
			_, err := a.queries.Diff(ctx, audit.DiffQuestion{From: audit.Side{Moment: at(n)}, To: audit.Side{Moment: at(n + 1)}})
			return err
		}},
		{"diff of two nodes", chainMustTake, func(ctx context.Context, a asker, n int, _ chain.Assignment) error {
			_, err := a.queries.Diff(ctx, audit.DiffQuestion{From: audit.Side{Node: "staging", Moment: at(n)}, To: audit.Side{Node: "production", Moment: at(n)}})
			return err
		}},
		{"trace of a version", traceMustTake, func(ctx context.Context, a asker, _ int, of chain.Assignment) error {
			_, err := a.queries.Trace(ctx, audit.TraceQuestion{Of: of.Reference.String()})
			return err
		}},
		{"newest 20 events with a word", 0, func(ctx context.Context, a asker, _ int, of chain.Assignment) error {
			_, err := a.queries.Log(ctx, audit.LogQuestion{Limit: 20, Text: of.Module})
			return err
		}},
		{"report of roll-backs", 0, func(ctx context.Context, a asker, _ int, _ chain.Assignment) error {
			_, err := a.queries.Report(ctx, audit.ReportQuestion{Report: audit.ReportRollbacks})
			return err
		}},
	}
}

// pastKnown waits until the audit store has all that was recorded.
func pastKnown(ctx context.Context, nc *nats.Conn) error {
	ctx, cancel := context.WithTimeout(ctx, readable)
	defer cancel()
	queries := audit.NewClient(nc, nil)
	newest, err := queries.Log(ctx, audit.LogQuestion{Limit: 1})
	if err != nil || len(newest.Items) == 0 {
		return errors.CombineErrors(err, ctx.Err())
	}
	for {
		p, err := queries.Position(ctx, audit.PositionQuestion{Sequence: newest.Items[0].Sequence, Audit: true, Wait: audit.Duration(time.Second)})
		if err != nil || p.Reached {
			return err
		}
	}
}
