package store

import (
	"bufio"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/cockroachdb/errors"

	"catenary/es"
	"catenary/es/estest"
	"catenary/es/memstore"
	"catenary/events"
	"catenary/internal/realdata"
)

// waitLimit bounds what takes milliseconds.
const waitLimit = time.Minute

// recorder writes events into a stream in memory.
type recorder struct {
	t        testing.TB
	stream   *memstore.Store
	chain    estest.Chain
	registry *es.Registry
	versions map[es.Ref]uint64
	batch    []es.Message
	after    es.Head
	// sealed takes each message instead of the stream, until it says no; over says that it has.
	sealed func(es.Message) bool
	over   bool
}

func newRecorder(t testing.TB) *recorder {
	return &recorder{
		t: t, stream: memstore.New(memstore.Config{MaxBytes: 8 << 30}), chain: estest.Chain{Label: "e"}, registry: events.Registry(), versions: map[es.Ref]uint64{},
	}
}

// add makes an event the next one of the stream; flush appends what was added.
func (r *recorder) add(e es.Event, data any) es.Event {
	r.t.Helper()
	var err error
	if e.Type, e.Body, err = r.registry.Encode(data); err != nil {
		r.t.Fatal(err)
	}
	return r.addStored(e)
}

func (r *recorder) addStored(e es.Event) es.Event {
	r.t.Helper()
	r.versions[e.Ref]++
	e.Version = r.versions[e.Ref]
	if len(r.batch) == 0 {
		r.after = r.chain.Head
	}
	m := r.chain.Seal(&e)
	e.Sequence = m.Sequence
	if r.sealed != nil {
		r.over = r.over || !r.sealed(m)
		return e
	}
	if r.batch = append(r.batch, m); len(r.batch) == es.MaxAppendMessages {
		r.flush()
	}
	return e
}

// addNone makes a message the next one of the stream that is no event.
func (r *recorder) addNone(of es.Ref) es.Message {
	r.t.Helper()
	if len(r.batch) == 0 {
		r.after = r.chain.Head
	}
	m := es.Message{Subject: of.Subject(), Header: map[string][]string{}, Body: []byte{0x80}}
	r.chain.Head = r.chain.Head.Seal(&m)
	r.batch = append(r.batch, m)
	return m
}

func (r *recorder) flush() {
	r.t.Helper()
	if len(r.batch) == 0 {
		return
	}
	if err := es.Wait(r.t.Context(), r.stream.Append(r.t.Context(), r.after, r.batch)); err != nil {
		r.t.Fatal(err)
	}
	r.batch = nil
}

// ref is the instance of an assignment.
func ref(node, module string) es.Ref {
	return es.Ref{Aggregate: events.AggregateAssignment, Key: es.Key(node, module)}
}

// told is what tells a node to run a version of a package that is called like the module.
func told(node, module, version string) events.Told {
	return events.Told{Node: node, Module: module, Reference: events.Reference{Package: &events.Package{Name: module, Version: version}}}
}

// row is a row of a history as it stands in the data.
type row struct {
	T                                    time.Time
	Commit, By, App, Env, Kind, Key, Old string
	New                                  *string
}

// replay records the rows of a history, as an import at one time would.
func (r *recorder) replay(rows []row, imported time.Time) {
	for i, d := range rows {
		if r.over {
			return
		}
		e := es.Event{
			ID: fmt.Sprintf("e-%d", i), Ref: ref(d.Env, d.App), Recorded: imported.Add(time.Duration(i) * time.Millisecond), Effective: d.T,
			Command: es.Cause{ID: fmt.Sprintf("018f-%012d-%s", i*7919%1000003, d.Commit), Actor: "importer", OnBehalfOf: d.By},
		}
		reason := d.Kind + " by commit " + d.Commit
		switch d.Kind {
		case "deploy", "add":
			t := told(d.Env, d.App, *d.New)
			t.Reason = reason
			r.add(e, events.AssignmentAssigned{Told: t})
		case "remove":
			r.add(e, events.AssignmentEnded{Node: d.Env, Module: d.App, Reason: reason})
		case "policy":
			name := d.Key + " " + d.Env + " " + d.App
			e.Ref = es.Ref{Aggregate: events.AggregateFreeze, Key: es.Key(name)}
			if d.New != nil && *d.New == "false" {
				r.add(e, events.FreezeDeclared{Name: name, Reason: reason})
			} else if r.versions[e.Ref] > 0 {
				r.add(e, events.FreezeLifted{Reason: reason})
			}
		}
	}
	r.flush()
}

// govuk reads rows of a real history.
func govuk(t testing.TB, name string) []row {
	t.Helper()
	in, err := os.Open(filepath.Join(realdata.Dir(t), "govuk", name))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = in.Close() }() // only read
	unpacked, err := gzip.NewReader(in)
	if err != nil {
		t.Fatal(err)
	}
	var rows []row
	lines := bufio.NewScanner(unpacked)
	for lines.Scan() {
		var d row
		if err := json.Unmarshal(lines.Bytes(), &d); err != nil {
			t.Fatalf("%s: %v", lines.Bytes(), err)
		}
		rows = append(rows, d)
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return rows
}

// withDefaults fills in what a test leaves open.
func withDefaults(t testing.TB, c Config) Config {
	t.Helper()
	if c.Path == "" {
		c.Path = filepath.Join(t.TempDir(), "audit.db")
	}
	if c.Registry == nil {
		c.Registry = events.Registry()
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.NewTextHandler(t.Output(), nil))
	}
	return c
}

// running starts a store over a stream; it ends with the test.
func running(t testing.TB, c Config) *Store {
	t.Helper()
	s, err := New(withDefaults(t, c))
	if err != nil {
		t.Fatal(err)
	}
	start(t, s)
	return s
}

// start runs a store until the test ends, or stop is called.
func start(t testing.TB, s *Store) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(stop)
	return stop
}

// caughtUp waits until the store has all of the stream.
func caughtUp(t testing.TB, s *Store, stream es.Store) {
	t.Helper()
	ctx, cancel := contextOf(t)
	defer cancel()
	tail, err := stream.Tail(ctx)
	if err == nil {
		err = s.Wait(ctx, tail)
	}
	if err != nil {
		t.Fatal(errors.Wrap(err, s.Status().Trouble))
	}
}
