package run

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/errors"
	"github.com/google/uuid"
	"github.com/nats-io/nats.go"

	"catenary/aggregates"
	"catenary/commands"
	"catenary/es"
	"catenary/es/dispatch"
	"catenary/es/estest"
	"catenary/es/natsstore"
	"catenary/events"
	"catenary/internal/topology"
)

// past makes a stream of the usual kinds of events, sealed, with headers of the usual size.
type past struct {
	b        *testing.B
	registry *es.Registry
	head     es.Head
	stored   es.Head
	versions map[es.Ref]uint64
	at       time.Time
	batch    []es.Message
	store    es.Store
}

func (p *past) record(ref es.Ref, fact any) {
	name, body, err := p.registry.Encode(fact)
	if err != nil {
		p.b.Fatal(err)
	}
	p.versions[ref]++
	p.at = p.at.Add(time.Millisecond)
	e := es.Event{
		ID: newID(), Type: name, Ref: ref, Version: p.versions[ref], Recorded: p.at, Effective: p.at, Body: body,
		Command: es.Cause{ID: uuid.NewString(), Ref: ref, Digest: es.Digest(body), Actor: "3f1f6f5b-1a22-4e4f-8a9b-3f1f6f5b1a22"},
	}
	m := e.Message(es.ContentTypeMsgpack)
	p.head = p.head.Seal(&m)
	if p.batch = append(p.batch, m); len(p.batch) == es.MaxAppendMessages {
		p.flush()
	}
}

func (p *past) flush() {
	if len(p.batch) == 0 {
		return
	}
	if err := es.Wait(p.b.Context(), p.store.Append(p.b.Context(), p.stored, p.batch)); err != nil {
		p.b.Fatal(err)
	}
	p.stored = p.head
	p.batch = p.batch[:0]
}

const (
	pastEvents = 1_000_000
	pastNodes  = 5_000
	// pastVersions is how many of each module were built and published, with five events each.
	pastModules, pastVersions = 1_000, 100
)

// fill appends a million events: versions of modules, each with its commit, build and publication, then nodes that are told
// to run them and report that they do.
func (p *past) fill() {
	module := func(m int) string { return fmt.Sprintf("module-%03d", m) }
	ref := func(m, v int) events.Reference {
		return events.Reference{Artifact: fmt.Sprintf("sha256:%032x%032x", m, v)}
	}
	build := func(m, v int) string { return fmt.Sprintf("0190a5b2-7c3d-7e4f-8a9b-%06d%06d", m, v) }
	commit := func(m, v int) string { return fmt.Sprintf("%020x%020x", m, v) }
	for m := range pastModules {
		p.record(commands.ModuleRef(module(m)), events.ModuleRegistered{ModuleSpec: events.ModuleSpec{Module: module(m), Repository: "git.example.org/shop"}})
	}
	for n := range pastNodes {
		p.record(commands.NodeRef(fmt.Sprintf("node-%05d.example.org", n)), events.NodeRegistered{Node: fmt.Sprintf("node-%05d.example.org", n), ManagedBy: events.ManagedByAgent})
	}
	for v := range pastVersions {
		for m := range pastModules {
			id := commands.BuildRef(build(m, v))
			p.record(commands.CommitRef("git.example.org/shop", commit(m, v)), events.CommitRecorded{Repository: "git.example.org/shop", Commit: commit(m, v), Branch: "main", Merged: p.at, Author: "a-1"})
			p.record(id, events.BuildAsked{BuildSpec: events.BuildSpec{ID: build(m, v), Module: module(m), Repository: "git.example.org/shop", Commit: commit(m, v)}})
			p.record(id, events.BuildSucceeded{Made: []events.Made{{Name: module(m)}}})
			p.record(id, events.BuildPublished{Reference: ref(m, v)})
			p.record(commands.PublicationRef(ref(m, v)), events.PublicationRecorded{Reference: ref(m, v), Build: build(m, v), Commit: commit(m, v), Module: module(m)})
		}
	}
	for round := 0; ; round++ {
		for n := range pastNodes {
			if p.head.Sequence+2 > pastEvents {
				p.flush()
				return
			}
			m, v := (n+round*20)%pastModules, (n/50)%pastVersions
			node := fmt.Sprintf("node-%05d.example.org", n)
			told := events.Told{Node: node, Module: module(m), Reference: ref(m, v), Build: build(m, v), Commit: commit(m, v)}
			p.record(commands.AssignmentRef(node, module(m)), events.AssignmentAssigned{Told: told})
			p.record(commands.AssignmentRef(node, module(m)), events.AssignmentApplied{Seen: events.Seen{Node: node, Module: module(m), Reference: ref(m, v), Source: p.head.Sequence}})
		}
	}
}

// longPast is a bus with a stream of a million events.
func longPast(b *testing.B, sync bool) (*nats.Conn, *natsstore.Store, *natsstore.Snapshots) {
	b.Helper()
	nc := estest.Server(b, sync).Connect(b)
	options := topology.Options{EventStoreBytes: 4 << 30, BucketBytes: 1 << 30} // room for a million events, on any disk
	if err := prepareWriter(b.Context(), nc, options); err != nil {
		b.Fatal(err)
	}
	store, err := natsstore.Open(b.Context(), nc, natsstore.Config{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(store.Close)
	snapshots, err := natsstore.OpenSnapshots(b.Context(), nc, natsstore.Config{})
	if err != nil {
		b.Fatal(err)
	}
	p := &past{b: b, registry: events.Registry(), versions: map[es.Ref]uint64{}, at: estest.Epoch(), store: store}
	p.fill()
	return nc, store, snapshots
}

// working is a writer at work.
type working struct {
	*dispatch.Writer
	stop func()
}

func startWriter(b *testing.B, store es.Store, snapshots dispatch.Snapshots, every int) working {
	b.Helper()
	w, err := dispatch.NewWriter(dispatch.Config{
		Store: store, Registry: events.Registry(),
		NewModel: func() es.Decider {
			world, err := aggregates.NewWorld(aggregates.Config{})
			if err != nil {
				panic(err)
			}
			return world
		},
		Snapshots: snapshots, SnapshotEvery: every,
		Start: commands.StartWriter{WriterStarted: events.WriterStarted{ID: newID(), Program: "bench", Rules: aggregates.RulesVersion}},
		Now:   time.Now, NewID: newID, Actor: "a-1", Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	select {
	case <-w.Ready():
	case err := <-done:
		b.Fatal(err)
	}
	return working{Writer: w, stop: sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			b.Error(err)
		}
		w.Keep(context.Background())
	})}
}

const never = 1 << 40

// BenchmarkStart measures how long a writer takes over a million events until it takes commands, on a server that runs already:
// reading all of them, and from a snapshot of them; and the memory it then has.
func BenchmarkStart(b *testing.B) {
	_, store, snapshots := longPast(b, false)
	measure := func(b *testing.B, snapshots dispatch.Snapshots) {
		var heap float64
		for b.Loop() {
			b.StopTimer()
			before := heapBytes()
			b.StartTimer()
			w := startWriter(b, store, snapshots, never)
			b.StopTimer()
			heap = float64(heapBytes()-before) / (1 << 20)
			w.stop()
			b.StartTimer()
		}
		b.ReportMetric(b.Elapsed().Seconds()/float64(b.N), "s/start")
		b.ReportMetric(heap, "MiB")
	}
	b.Run("reading all", func(b *testing.B) { measure(b, nil) })
	startWriter(b, store, snapshots, 1).stop()
	b.Run("from a snapshot", func(b *testing.B) {
		measure(b, snapshots)
		_, base, err := snapshots.Load(b.Context(), 0)
		if err != nil {
			b.Fatal(err)
		}
		size, err := io.Copy(io.Discard, base)
		if err := errors.CombineErrors(err, base.Close()); err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(size)/1e6, "MB-base")
	})
}

func heapBytes() uint64 {
	runtime.GC()
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	return s.HeapAlloc
}

// BenchmarkCompaction measures what a caller sees, who sends one command after another, while a new base of a million events is
// made beside the writer, and for five seconds while none is.
func BenchmarkCompaction(b *testing.B) {
	for _, sync := range []bool{false, true} {
		durability := "interval"
		if sync {
			durability = "fsync"
		}
		b.Run(durability, func(b *testing.B) {
			_, store, snapshots := longPast(b, sync)
			startWriter(b, store, snapshots, 1).stop()
			b.Run("quiet", func(b *testing.B) { beside(b, store, snapshots, false) })
			b.Run("compacting", func(b *testing.B) { beside(b, store, snapshots, true) })
		})
	}
}

func beside(b *testing.B, store es.Store, snapshots *natsstore.Snapshots, compacting bool) {
	var took []time.Duration
	for range b.N {
		b.StopTimer()
		every := never
		if compacting {
			every = 1
		}
		m := &watched{Snapshots: snapshots}
		w := startWriter(b, store, m, every)
		m.saved.Store(false)
		b.StartTimer()
		for began := time.Now(); !m.saved.Load() && (compacting || time.Since(began) < 5*time.Second); {
			if d := send(b, w); !compacting || m.loaded.Load() {
				took = append(took, d)
			}
			m.working.Store(true)
		}
		w.stop()
	}
	slices.Sort(took)
	for name, part := range map[string]float64{"p50-ms": 0.5, "p99-ms": 0.99, "p99.9-ms": 0.999, "max-ms": 1} {
		d := took[min(len(took)-1, int(part*float64(len(took))))]
		b.ReportMetric(float64(d.Microseconds())/1000, name)
	}
	b.ReportMetric(float64(len(took))/float64(b.N), "commands/op")
}

// watched tells when a base is made beside a writer at work.
type watched struct {
	*natsstore.Snapshots
	working, loaded, saved atomic.Bool
}

func (m *watched) Load(ctx context.Context, below uint64) (uint64, io.ReadCloser, error) {
	m.loaded.Store(m.working.Load())
	return m.Snapshots.Load(ctx, below)
}

func (m *watched) Save(ctx context.Context, sequence uint64, write func(out io.Writer) error) error {
	defer m.saved.Store(true)
	return m.Snapshots.Save(ctx, sequence, write)
}

// send sends a command that leads to an event, and says how long the answer took.
func send(b *testing.B, w working) time.Duration {
	p := commands.RegisterNode{Node: newID()}
	c := es.Command{ID: newID(), Ref: p.Ref(), Verb: p.Verb(), Data: p, Actor: "a-1"}
	answers := make(chan es.Answer, 1)
	began := time.Now()
	w.Submit(c, func(a es.Answer) { answers <- a })
	a := <-answers
	took := time.Since(began)
	if a.Status != es.StatusAccepted {
		b.Fatalf("%+v", a.Error)
	}
	return took
}
