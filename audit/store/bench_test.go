package store

import (
	"context"
	"flag"
	"fmt"
	"iter"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
	"time"

	"catenary/audit"
	"catenary/es"
	"catenary/es/estest"
	"catenary/es/project"
	"catenary/events"
)

var million = flag.Bool("million", false, "let benchmarks of the audit store have a million events instead of the load set: the same over and over, each time later")

// loadSet gives the stream of the load set, or a longer one.
func loadSet(b *testing.B) es.Store {
	b.Helper()
	const file = "full-2024-01_2026-07-slim.ndjson.gz"
	imported := estest.Epoch().AddDate(1, 0, 0)
	if !*million {
		r := newRecorder(b)
		r.replay(govuk(b, file), imported)
		return r.stream
	}
	return &madeStream{b: b, rows: govuk(b, file), imported: imported, tail: 1_000_000}
}

// madeStream is a long stream that is made as it is read, so that it takes no memory beside what is measured.
type madeStream struct {
	es.Store // what is not asked of it
	b        *testing.B
	rows     []row
	imported time.Time
	tail     uint64
}

func (m *madeStream) Tail(context.Context) (uint64, error) { return m.tail, nil }

func (m *madeStream) Read(_ context.Context, after uint64) iter.Seq2[es.Message, error] {
	return func(yield func(es.Message, error) bool) {
		if after >= m.tail {
			return
		}
		r := &recorder{t: m.b, chain: estest.Chain{Label: "e"}, registry: events.Registry(), versions: map[es.Ref]uint64{}}
		r.sealed = func(made es.Message) bool { return made.Sequence <= m.tail && yield(made, nil) }
		span := m.rows[len(m.rows)-1].T.Sub(m.rows[0].T) + time.Hour
		for lap := 0; !r.over; lap++ {
			rows := slices.Clone(m.rows)
			for i := range rows {
				rows[i].T = rows[i].T.Add(time.Duration(lap) * span)
			}
			r.replay(rows, m.imported.Add(time.Duration(lap)*time.Hour))
		}
	}
}

// ReadAggregate gives nothing: nobody has decided anything about the store.
func (m *madeStream) ReadAggregate(context.Context, es.Ref) iter.Seq2[es.Message, error] {
	return func(func(es.Message, error) bool) {}
}

func (m *madeStream) Follow(ctx context.Context, _ uint64) iter.Seq2[es.Message, error] {
	return idle(ctx, 0)
}

// memory is what the process holds of the heap and of SQLite's, in MiB.
func memory() float64 {
	runtime.GC()
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0 // there is no such file on this system
	}
	var size, resident float64
	if _, err := fmt.Sscan(string(text), &size, &resident); err != nil {
		return 0
	}
	return resident * float64(os.Getpagesize()) / (1 << 20)
}

// BenchmarkBuild takes the load set in from a stream in memory, into a new file with all its indexes.
func BenchmarkBuild(b *testing.B) {
	stream := loadSet(b)
	tail, err := stream.Tail(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		path := filepath.Join(b.TempDir(), "audit.db")
		s := running(b, Config{Path: path, Events: stream})
		caughtUp(b, s, stream)
		info, err := os.Stat(path)
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(info.Size())/(1<<20), "file-MiB")
		b.ReportMetric(float64(info.Size())/float64(tail), "bytes/event")
		b.ReportMetric(memory(), "resident-MiB")
	}
	b.ReportMetric(float64(tail)*float64(b.N)/b.Elapsed().Seconds(), "events/s")
}

// BenchmarkQuestions asks over the bus, one question after another, of a store that holds the load set.
func BenchmarkQuestions(b *testing.B) {
	stream := loadSet(b)
	s := running(b, Config{Events: stream, Clock: func() time.Time { return estest.Epoch().AddDate(50, 0, 0) }})
	caughtUp(b, s, stream)
	bus := estest.Server(b, false)
	service, err := audit.Serve(bus.Connect(b), audit.Config{
		Store: stream, Registry: events.Registry(), Version: "1.0.0", Logger: slog.New(slog.DiscardHandler), Past: s,
		Positions: func(context.Context, uint64) ([]audit.ViewPosition, uint64, error) { return nil, 0, nil },
		Verify:    func(context.Context, es.Store) (project.Report, error) { return project.Report{}, nil },
	})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := service.Stop(); err != nil {
			b.Error(err)
		}
	})
	c := audit.NewClient(bus.Connect(b), nil)
	whole, err := c.AsOf(b.Context(), audit.AsOfQuestion{})
	if err != nil {
		b.Fatal(err)
	}
	began := time.Date(2024, 1, 3, 0, 0, 0, 0, time.UTC)
	for _, q := range []struct {
		name string
		ask  func(ctx context.Context, at time.Time, of audit.Standing) error
	}{
		{"as-of of one key", func(ctx context.Context, at time.Time, of audit.Standing) error {
			_, err := c.AsOf(ctx, audit.AsOfQuestion{Moment: audit.Moment{At: at}, Node: of.Node, Module: of.Module})
			return err
		}},
		{"blame", func(ctx context.Context, _ time.Time, of audit.Standing) error {
			_, err := c.Blame(ctx, audit.BlameQuestion{Node: of.Node, Module: of.Module})
			return err
		}},
		{"as-of of the chain", func(ctx context.Context, at time.Time, _ audit.Standing) error {
			_, err := c.AsOf(ctx, audit.AsOfQuestion{Moment: audit.Moment{At: at}})
			return err
		}},
		{"as-of of the chain, as known then", func(ctx context.Context, at time.Time, _ audit.Standing) error {
			known := estest.Epoch().AddDate(1, 0, 0).Add(at.Sub(began) / 10_000)
			_, err := c.AsOf(ctx, audit.AsOfQuestion{Moment: audit.Moment{At: at, KnownAt: known}})
			return err
		}},
		{"diff of two moments", func(ctx context.Context, at time.Time, _ audit.Standing) error {
			_, err := c.Diff(ctx, audit.DiffQuestion{From: audit.Side{Moment: audit.Moment{At: at}}, To: audit.Side{Moment: audit.Moment{At: at.AddDate(0, 1, 0)}}})
			return err
		}},
		{"diff of two nodes", func(ctx context.Context, at time.Time, _ audit.Standing) error {
			m := audit.Moment{At: at}
			_, err := c.Diff(ctx, audit.DiffQuestion{From: audit.Side{Node: "staging", Moment: m}, To: audit.Side{Node: "production", Moment: m}})
			return err
		}},
		{"trace of a version", func(ctx context.Context, _ time.Time, of audit.Standing) error {
			_, err := c.Trace(ctx, audit.TraceQuestion{Of: of.Reference.String()})
			return err
		}},
		{"trace of an assignment", func(ctx context.Context, _ time.Time, of audit.Standing) error {
			_, err := c.Trace(ctx, audit.TraceQuestion{Of: of.Node + "/" + of.Module})
			return err
		}},
		{"newest 20 events", func(ctx context.Context, _ time.Time, _ audit.Standing) error {
			_, err := c.Log(ctx, audit.LogQuestion{Limit: 20})
			return err
		}},
		{"newest 20 events with a word", func(ctx context.Context, _ time.Time, of audit.Standing) error {
			_, err := c.Log(ctx, audit.LogQuestion{Limit: 20, Text: of.Module})
			return err
		}},
		{"report of roll-backs", func(ctx context.Context, _ time.Time, _ audit.Standing) error {
			_, err := c.Report(ctx, audit.ReportQuestion{Report: audit.ReportRollbacks})
			return err
		}},
	} {
		b.Run(q.name, func(b *testing.B) {
			var took []time.Duration
			for i := 0; b.Loop(); i++ {
				at := began.AddDate(0, 0, (i*37)%900)
				asked := time.Now()
				if err := q.ask(b.Context(), at, whole.Assignments[(i*31)%len(whole.Assignments)]); err != nil {
					b.Fatal(err)
				}
				took = append(took, time.Since(asked))
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
			b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
			b.ReportMetric(memory(), "resident-MiB")
			b.ReportMetric(0, "ns/op")
		})
	}
}
