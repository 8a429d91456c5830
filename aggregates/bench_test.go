package aggregates_test

import (
	"bytes"
	"fmt"
	"runtime"
	"testing"

	"catenary/aggregates"
	"catenary/commands"
	"catenary/es"
	"catenary/events"
)

// instances is how many a large world has, at least.
const instances = 1_000_000

// million fills a world with a million instances: 10,000 nodes, 1,000 modules, 50 of which stand on each node, in one of
// many versions, and the builds, commits and publications these come from. It gives the bytes of memory per instance.
func million(b *testing.B) (l *ledger, bytesPerInstance float64) {
	b.Helper()
	const (
		nodeCount, moduleCount, perNode = 10_000, 1_000, 50
		versions                        = 163 // of each module; with builds, commits and publications it makes a million
	)
	before := heap()
	l = newLedger(b)
	registry := events.Registry()
	count := 0
	record := func(f es.KeyedEvent) {
		count++
		l.apply(day, throughCodec(b, registry, f))
	}
	for m := range moduleCount {
		record(requiring(fmt.Sprintf("module-%03d", m)))
		for v := range versions {
			id, commit := fmt.Sprintf("0190a5b2-7c3d-7e4f-8a9b-%06d%06d", m, v), fmt.Sprintf("%020x%020x", m, v)
			ref := events.Reference{Artifact: fmt.Sprintf("sha256:%032x%032x", m, v)}
			module := fmt.Sprintf("module-%03d", m)
			record(on(commands.CommitRef("git.example.org/shop", commit), events.CommitRecorded{Repository: "git.example.org/shop", Commit: commit}))
			record(on(commands.BuildRef(id), events.BuildAsked{BuildSpec: events.BuildSpec{ID: id, Module: module, Repository: "git.example.org/shop", Commit: commit, ReuseKey: "reuse-" + id}}))
			l.apply(day, throughCodec(b, registry, on(commands.BuildRef(id), events.BuildSucceeded{})))
			l.apply(day, throughCodec(b, registry, on(commands.BuildRef(id), events.BuildPublished{Reference: ref})))
			record(published(ref, id, commit, module))
		}
	}
	for n := range nodeCount {
		name := fmt.Sprintf("node-%05d.example.org", n)
		record(nodes(name)[0])
		for i := range perNode {
			m := (n + i*20) % moduleCount
			v := (n / 100) % versions
			record(told(events.Told{
				Node: name, Module: fmt.Sprintf("module-%03d", m), Reference: events.Reference{Artifact: fmt.Sprintf("sha256:%032x%032x", m, v)},
				Build: fmt.Sprintf("0190a5b2-7c3d-7e4f-8a9b-%06d%06d", m, v), Commit: fmt.Sprintf("%020x%020x", m, v),
			}))
		}
	}
	if count < instances {
		b.Fatalf("only %d instances", count)
	}
	return l, float64(heap()-before) / float64(count)
}

// throughCodec gives a fact as it is read from the stream: with strings of its own.
func throughCodec(b *testing.B, registry *es.Registry, f es.KeyedEvent) es.KeyedEvent {
	b.Helper()
	name, body, err := registry.Encode(f.Data)
	if err != nil {
		b.Fatal(err)
	}
	e := es.Event{ID: "e", Type: name, Ref: f.Ref, Version: 1, Recorded: day, Effective: day, Body: body, Command: es.Cause{ID: "c"}}
	m := e.Message(es.ContentTypeMsgpack)
	m.Header[es.HeaderHash] = []string{es.Hash{}.String()}
	read, err := registry.Decode(m)
	if err != nil {
		b.Fatal(err)
	}
	return es.KeyedEvent{Ref: read.Ref, Data: read.Data}
}

func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// BenchmarkAssign measures deciding on an assign and applying what it leads to, speculatively and with the mark released,
// as a writer does, on a world of a million instances; and undoing it.
func BenchmarkAssign(b *testing.B) {
	l, bytesPerInstance := million(b)
	for _, c := range []struct {
		name     string
		requires []string
	}{{"alone", nil}, {"pulling in two", []string{"module-900", "module-901"}}} {
		b.Run(c.name, func(b *testing.B) {
			module := "bench " + c.name
			l.apply(day, requiring(module, c.requires...))
			payloads := make([]commands.Assign, 1000)
			for i := range payloads {
				payloads[i] = commands.Assign{
					Node: fmt.Sprintf("node-%05d.example.org", i*10), Module: module, Reference: artifact(fmt.Sprintf("bench:%064x", i)),
				}
			}
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				p := payloads[i%len(payloads)]
				p.Commit = fmt.Sprint(i) // never the same again
				mark := l.world.Mark()
				if facts, err := l.do(p, day); err != nil || len(facts) == 0 {
					b.Fatalf("%d facts, %v", len(facts), err)
				}
				l.world.Release(mark)
				i++
			}
			b.ReportMetric(bytesPerInstance, "B/instance")
		})
	}
	b.Run("undone", func(b *testing.B) {
		l.apply(day, requiring("undone"))
		p := commands.Assign{Node: "node-00000.example.org", Module: "undone", Reference: artifact("bench:1")}
		b.ReportAllocs()
		for b.Loop() {
			mark := l.world.Mark()
			if _, err := l.do(p, day); err != nil {
				b.Fatal(err)
			}
			l.world.Rollback(mark)
			l.world.Release(mark)
		}
	})
}

// BenchmarkSnapshot measures writing and reading a world of a million instances, and the memory that one takes that was read.
func BenchmarkSnapshot(b *testing.B) {
	l, _ := million(b)
	var data bytes.Buffer
	b.Run("write", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			data.Reset()
			if err := l.world.Snapshot(&data); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(data.Len())/instances, "B/instance")
	})
	l.world = nil
	b.Run("restore", func(b *testing.B) {
		var bytesPerInstance float64
		b.ReportAllocs()
		for b.Loop() {
			b.StopTimer()
			before := heap()
			w, err := aggregates.NewWorld(aggregates.Config{})
			if err != nil {
				b.Fatal(err)
			}
			b.StartTimer()
			if err := w.Restore(bytes.NewReader(data.Bytes())); err != nil {
				b.Fatal(err)
			}
			b.StopTimer()
			bytesPerInstance = float64(heap()-before) / instances
			runtime.KeepAlive(w)
			b.StartTimer()
		}
		b.ReportMetric(bytesPerInstance, "B/instance")
	})
}

// BenchmarkReplay measures folding events that are decoded already.
func BenchmarkReplay(b *testing.B) {
	w, err := aggregates.NewWorld(aggregates.Config{})
	if err != nil {
		b.Fatal(err)
	}
	facts := make([]es.KeyedEvent, 100_000)
	for i := range facts {
		facts[i] = told(events.Told{
			Node: fmt.Sprintf("node-%05d", i%5_000), Module: fmt.Sprintf("module-%03d", i/5_000), Reference: artifact(fmt.Sprintf("sha256:%064x", i%1000)),
			Build: fmt.Sprint(i % 1000),
		})
	}
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		f := facts[i%len(facts)]
		e := es.Event{Sequence: uint64(i + 1), Ref: f.Ref, Version: w.Version(f.Ref) + 1, Recorded: day, Effective: day, Data: f.Data}
		if err := w.Apply(e); err != nil {
			b.Fatal(err)
		}
		i++
	}
}
