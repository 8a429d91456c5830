package main

import (
	"context"
	"encoding/json"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"catenary/embedded"
	"catenary/internal/run"
	"catenary/internal/topology"
)

// opened is a chain whose ledger the test can reach, as nobody else can.
type opened struct {
	caller
	ledger *nats.Conn
}

func open(t *testing.T) opened {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	server, err := embedded.Start(t.Context(), embedded.Config{StoreDir: t.TempDir(), Durability: embedded.DurabilityInterval, Logger: log})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Shutdown(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	if err := prepare(t.Context(), server); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ready, ended := make(chan struct{}, 2), make(chan error, 2)
	isReady := func() { ready <- struct{}{} }
	connect := func() *nats.Conn {
		nc, err := server.Ledger()
		if err != nil {
			t.Fatal(err)
		}
		return nc
	}
	writer, projector := connect(), connect()
	copies, err := server.OpenMirrors()
	if err != nil {
		t.Fatal(err)
	}
	auditFile := filepath.Join(t.TempDir(), run.AuditFile)
	go func() {
		ended <- run.Writer(ctx, writer, run.WriterConfig{Streams: server.Options(), Logger: log, Ready: isReady})
	}()
	go func() {
		ended <- run.Projector(ctx, projector, run.ProjectorConfig{
			Streams: server.Options(), Copies: copies, AuditFile: auditFile, Logger: log, Ready: isReady,
		})
	}()
	t.Cleanup(func() {
		cancel()
		for range 2 {
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}
	})
	for range 2 {
		select {
		case <-ready:
		case err := <-ended:
			t.Fatalf("a part ended at its start: %v", err)
		}
	}
	return opened{caller: caller{t: t, url: server.ClientURL()}, ledger: connect()}
}

// forge replaces the newest value of a key by another, with the headers of the true one. It gives the value's revision.
func (o opened) forge(bucket, key, value string) {
	o.t.Helper()
	js, err := jetstream.New(o.ledger)
	if err != nil {
		o.t.Fatal(err)
	}
	stream, err := js.Stream(o.t.Context(), topology.BucketStream(bucket))
	if err != nil {
		o.t.Fatal(err)
	}
	m, err := stream.GetLastMsgForSubject(o.t.Context(), topology.BucketSubject(bucket, key))
	if err != nil {
		o.t.Fatal(err)
	}
	forged := nats.NewMsg(m.Subject)
	forged.Data = []byte(value)
	for name, v := range m.Header {
		if !strings.HasPrefix(name, "Nats-") {
			forged.Header[name] = v
		}
	}
	if _, err := js.PublishMsg(o.t.Context(), forged); err != nil {
		o.t.Fatal(err)
	}
}

// TestVerify is the verify half of case A14: a value that was changed by hand is named, and the stream is untouched.
func TestVerify(t *testing.T) {
	t.Parallel()
	o := open(t)
	o.node("n1")
	o.module("web")
	o.ok("assign", "n1", "web", "--package", "web@1.20")

	whole := read[verification](o.caller, "verify")
	if !whole.OK || whole.Events != 4 || len(whole.Mirrors) != len(topology.ChainBuckets()) {
		t.Fatalf("verify found %+v, want all well over 4 events", whole)
	}
	for _, f := range []string{"table", "yaml", "name"} {
		if found := o.ok("verify", "-o", f); !strings.Contains(found.err, whole.Head.Hash.String()) {
			t.Errorf("verify as %s says %q, want the head", f, found.err)
		}
	}

	o.forge(topology.BucketAssignments, "n1.web", `{"node":"n1","module":"web","package":{"name":"web","version":"6.66"}}`)
	found := o.must(exitFailed, "verify", "-o", "json")
	var broken verification
	if err := json.Unmarshal([]byte(found.out), &broken); err != nil {
		t.Fatal(err)
	}
	if broken.OK || broken.Chain != "" || broken.Head != whole.Head {
		t.Errorf("verify found %+v, want the stream as it was and the bucket not", broken)
	}
	for _, b := range broken.Buckets {
		if b.OK() == (b.Name == topology.BucketAssignments) {
			t.Errorf("bucket %s: ok is %v, and its differences are %+v", b.Name, b.OK(), b.Differences)
		}
	}
	table := o.must(exitFailed, "verify")
	for _, word := range []string{"NO", "chain-assignments", "n1.web"} {
		if !strings.Contains(table.out, word) {
			t.Errorf("the table does not show %q:\n%s", word, table.out)
		}
	}
	if names := o.must(exitFailed, "verify", "-o", "name"); names.out != "chain-assignments n1.web\n" {
		t.Errorf("the names are %q, want the key alone", names.out)
	}
}
