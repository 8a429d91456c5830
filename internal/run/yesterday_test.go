package run

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"catenary/audit"
	"catenary/chain"
	"catenary/es"
	"catenary/es/estest"
	"catenary/es/natskv"
	"catenary/events"
	"catenary/internal/topology"
)

// yesterday holds, in a folder for each form there has been, what a chain had stored: stored.jsonl, made once and never changed,
// and read.jsonl, what it is read as. To add a form, give its folder's name to -yesterday.
const yesterday = "testdata/yesterday"

var newForm = flag.String("yesterday", "", "store a chain of today in a new folder of this name below testdata/yesterday")

// stored is a message as a stream has it.
type stored struct {
	Stream  string              `json:"stream"`
	Subject string              `json:"subject"`
	Header  map[string][]string `json:"header"`
	Data    []byte              `json:"data"`
}

// storedChain is a chain in one account, over streams that a test fills.
type storedChain struct {
	nc      *nats.Conn
	js      jetstream.JetStream
	options topology.Options
}

func startStored(t *testing.T) *storedChain {
	t.Helper()
	c := &storedChain{nc: estest.Server(t, false).Connect(t), options: topology.Options{EventStoreBytes: 100 << 20, BucketBytes: 10 << 20}}
	var err error
	if c.js, err = jetstream.New(c.nc); err != nil {
		t.Fatal(err)
	}
	if err := Prepare(t.Context(), c.nc, c.options); err != nil {
		t.Fatal(err)
	}
	return c
}

// write and project start a writer and a projector, which end with the test.
func (c *storedChain) write(t *testing.T) {
	t.Helper()
	c.part(t, func(ctx context.Context, log *slog.Logger, ready func()) error {
		return Writer(ctx, c.nc, WriterConfig{Streams: c.options, Logger: log, Ready: ready})
	})
}

func (c *storedChain) project(t *testing.T) {
	t.Helper()
	c.part(t, func(ctx context.Context, log *slog.Logger, ready func()) error {
		return Projector(ctx, c.nc, ProjectorConfig{Streams: c.options, Logger: log, Ready: ready})
	})
}

func (c *storedChain) part(t *testing.T, run func(ctx context.Context, log *slog.Logger, ready func()) error) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ready, ended := make(chan struct{}), make(chan error, 1)
	go func() { ended <- run(ctx, slog.New(slog.DiscardHandler), func() { close(ready) }) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	select {
	case <-ready:
	case err := <-ended:
		ended <- nil
		t.Fatalf("a part ended at its start: %v", err)
	case <-time.After(waitLimit):
		t.Fatal("a part is not ready")
	}
}

// raw gives all messages of a stream.
func (c *storedChain) raw(t *testing.T, name string) []stored {
	t.Helper()
	stream, err := c.js.Stream(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	var all []stored
	for sequence := uint64(1); sequence <= stream.CachedInfo().State.LastSeq; sequence++ {
		m, err := stream.GetMsg(t.Context(), sequence)
		if err != nil {
			t.Fatal(err)
		}
		s := stored{Stream: name, Subject: m.Subject, Header: map[string][]string{}, Data: m.Data}
		for header, values := range m.Header {
			if !strings.HasPrefix(header, "Nats-") {
				s.Header[header] = values
			}
		}
		all = append(all, s)
	}
	return all
}

// TestYesterday reads what a chain of each form has stored: every event and every value is read as it was at its time, and a
// projector of today goes on from there.
func TestYesterday(t *testing.T) {
	t.Parallel()
	if *newForm != "" {
		record(t, filepath.Join(yesterday, *newForm))
	}
	forms, err := os.ReadDir(yesterday)
	if err != nil || len(forms) == 0 {
		t.Fatalf("%d forms, error %v", len(forms), err)
	}
	var types []string
	for _, form := range forms {
		dir := filepath.Join(yesterday, form.Name())
		all := readLines[stored](t, filepath.Join(dir, "stored.jsonl"))
		types = append(types, typesIn(all)...)
		t.Run(form.Name(), func(t *testing.T) {
			t.Parallel()
			read := todays(t, all)
			if form.Name() == *newForm {
				writeLines(t, filepath.Join(dir, "read.jsonl"), read)
			}
			if diff := cmp.Diff(readLines[asRead](t, filepath.Join(dir, "read.jsonl")), read); diff != "" {
				t.Errorf("it is read differently today (-then +now); a change of form needs a new version and an upcaster:\n%s", diff)
			}
			goOn(t, all)
		})
	}
	slices.Sort(types)
	known := events.Registry().Names()
	slices.Sort(known)
	if diff := cmp.Diff(known, slices.Compact(types)); diff != "" {
		t.Errorf("no form holds these types; store a new one with -yesterday (-known +held):\n%s", diff)
	}
}

// asRead is a message as a program reads it.
type asRead struct {
	Stream string          `json:"stream"`
	Name   string          `json:"name"`
	Meta   json.RawMessage `json:"meta,omitempty"`
	Data   json.RawMessage `json:"data"`
}

// todays reads everything with the code of today.
func todays(t *testing.T, all []stored) []asRead {
	t.Helper()
	c := startStored(t)
	c.fill(t, all)
	registry := events.Registry()
	var read []asRead
	sequence := uint64(0)
	for _, s := range all {
		if s.Stream != topology.EventStream {
			continue
		}
		sequence++
		e, err := registry.Decode(es.Message{Sequence: sequence, Subject: s.Subject, Header: s.Header, Body: s.Data})
		if err != nil {
			t.Fatalf("event %d: %v", sequence, err)
		}
		data := e.Data
		e.Data, e.Body = nil, nil
		read = append(read, asRead{Stream: s.Stream, Name: e.Type, Meta: said(t, e), Data: asJSON(t, data)})
	}
	for _, bucket := range topology.ChainBuckets() {
		b, err := natskv.Open(t.Context(), c.nc, bucket)
		if err != nil {
			t.Fatal(err)
		}
		for e, err := range b.All(t.Context(), 0) {
			if err != nil {
				t.Fatal(err)
			}
			read = append(read, asRead{Stream: bucket, Name: e.Key, Meta: said(t, e.Meta), Data: recordOf(t, bucket, e.Value)})
		}
	}
	return read
}

// recordOf decodes a value and gives what was decoded.
func recordOf(t *testing.T, bucket string, value []byte) json.RawMessage {
	t.Helper()
	decode := map[string]func([]byte) (any, error){
		topology.BucketModules:     decoder[chain.Module],
		topology.BucketNodes:       decoder[chain.Node],
		topology.BucketCommits:     decoder[chain.Commit],
		topology.BucketBuilds:      decoder[chain.Build],
		topology.BucketPublished:   decoder[chain.Published],
		topology.BucketAssignments: decoder[chain.Assignment],
		topology.BucketFreezes:     decoder[chain.Freeze],
		topology.BucketMerges:      decoder[chain.Merge],
		topology.BucketTracks:      decoder[chain.Track],
		topology.BucketStrategies:  decoder[chain.Strategy],
		topology.BucketRollouts:    decoder[chain.Rollout],
		topology.BucketSteps:       decoder[chain.Step],
		topology.BucketBackfill:    decoder[chain.Assignment],
	}[bucket]
	if decode == nil {
		t.Fatalf("this test does not know the records of %s", bucket)
	}
	record, err := decode(value)
	if err != nil {
		t.Fatal(err)
	}
	return asJSON(t, record)
}

func decoder[T any](value []byte) (any, error) { return chain.Decode[T](value) }

// asJSON gives compact JSON, as it comes back from a file.
func asJSON(t *testing.T, v any) json.RawMessage {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// said gives the JSON of all fields that say something, so that a field which is added later changes nothing here.
func said(t *testing.T, v any) json.RawMessage {
	t.Helper()
	var fields map[string]any
	if err := json.Unmarshal(asJSON(t, v), &fields); err != nil {
		t.Fatal(err)
	}
	return asJSON(t, saying(fields))
}

func saying(fields map[string]any) map[string]any {
	for name, v := range fields {
		if nested, ok := v.(map[string]any); ok {
			v = saying(nested)
			if len(nested) == 0 {
				v = nil
			}
		}
		if v == nil || v == "" || v == 0.0 || v == false || v == "0001-01-01T00:00:00Z" {
			delete(fields, name)
		}
	}
	return fields
}

// fill stores messages as they were stored then.
func (c *storedChain) fill(t *testing.T, all []stored) {
	t.Helper()
	for _, s := range all {
		if _, err := c.js.PublishMsg(t.Context(), &nats.Msg{Subject: s.Subject, Header: s.Header, Data: s.Data}); err != nil {
			t.Fatal(err)
		}
	}
}

// goOn has a projector of today go on from what is stored, and checks all that is read then.
func goOn(t *testing.T, all []stored) {
	t.Helper()
	c := startStored(t)
	c.fill(t, all)
	c.project(t)
	queries := audit.NewClient(c.nc, nil)
	events := uint64(len(slices.DeleteFunc(slices.Clone(all), func(s stored) bool { return s.Stream != topology.EventStream })))
	p, err := queries.Position(t.Context(), audit.PositionQuestion{Sequence: events, Wait: audit.Duration(audit.MaxWait)})
	if err != nil || !p.Reached {
		t.Fatalf("positions %+v, error %v", p, err)
	}
	report, err := queries.Verify(t.Context(), nil)
	if err != nil || !report.OK() {
		t.Errorf("report %+v, error %v", report, err)
	}
	for _, v := range p.Views {
		values := uint64(len(slices.DeleteFunc(slices.Clone(all), func(s stored) bool { return s.Stream != topology.BucketStream(v.View) })))
		if v.Bucket == v.View && v.Revision != values {
			t.Errorf("%s has %d values, of %d that stood", v.Bucket, v.Revision, values)
		}
	}
}

func readLines[T any](t *testing.T, path string) []T {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var all []T
	lines := bufio.NewScanner(bytes.NewReader(text))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var v T
		if err := json.Unmarshal(lines.Bytes(), &v); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		all = append(all, v)
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}
