package embedded_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/errors"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nats.go/micro"

	"catenary/embedded"
	"catenary/internal/topology"
)

func connectLedger(t *testing.T, b bus) *nats.Conn {
	t.Helper()
	nc, err := b.Ledger()
	check(t, err)
	return nc
}

func lastSequence(t *testing.T, js jetstream.JetStream, stream string) uint64 {
	t.Helper()
	s, err := js.Stream(testContext(t), stream)
	check(t, err)
	return s.CachedInfo().State.LastSeq
}

// awaitMirror waits until people see a bucket's value.
func awaitMirror(t *testing.T, b bus, bucket string, sequence uint64) {
	t.Helper()
	nc := dial(t, b.ClientURL())
	defer nc.Close()
	js := jetstreamOf(t, nc)
	eventually(t, "the mirror of "+bucket+" follows", func() bool {
		return lastSequence(t, js, topology.BucketStream(bucket)) >= sequence
	})
}

// TestPeopleReadMirrors does what `nats kv ls|get|history|watch` do, as the operator. Case C06: the history has all 70 values.
func TestPeopleReadMirrors(t *testing.T) {
	t.Parallel()
	s := start(t, embedded.Config{})
	_, js := ledgerOf(t, s)
	check(t, s.EnsureMirrors(testContext(t)))
	last := put(t, js, topology.BucketAssignments, "n1.web", 70)
	awaitMirror(t, s, topology.BucketAssignments, last)

	ctx := testContext(t)
	operator := jetstreamOf(t, dial(t, s.ClientURL()))
	kv, err := operator.KeyValue(ctx, topology.BucketAssignments)
	check(t, err)
	entry, err := kv.Get(ctx, "n1.web")
	check(t, err)
	if string(entry.Value()) != `{"n":70}` || entry.Revision() != last {
		t.Errorf("got %s at %d, want the last value at %d", entry.Value(), entry.Revision(), last)
	}
	history, err := kv.History(ctx, "n1.web")
	check(t, err)
	if len(history) != 70 || string(history[0].Value()) != `{"n":1}` {
		t.Errorf("history has %d values, want 70 from the first on", len(history))
	}
	keys, err := kv.Keys(ctx)
	check(t, err)
	if !slices.Equal(keys, []string{"n1.web"}) {
		t.Errorf("keys are %v", keys)
	}
	watch, err := kv.Watch(ctx, "n1.>", jetstream.UpdatesOnly())
	check(t, err)
	put(t, js, topology.BucketAssignments, "n1.api", 1)
	if e := await(t, "a watched value", watch.Updates()); e == nil || e.Key() != "n1.api" {
		t.Errorf("watched %v, want n1.api", e)
	}
	check(t, watch.Stop())

	// The tool lists streams by their names; a mirror has no subjects, which is what the client's own listing looks for.
	var names []string
	for name := range operator.StreamNames(ctx).Name() {
		names = append(names, strings.TrimPrefix(name, "KV_"))
	}
	slices.Sort(names)
	if want := slices.Sorted(slices.Values(topology.MirroredBuckets())); !slices.Equal(names, want) {
		t.Errorf("buckets are %v, want %v", names, want)
	}
}

// A put to a mirror goes to its origin by the client's own rules, where people may not publish.
func TestPutToMirrorIsRefused(t *testing.T) {
	t.Parallel()
	s := start(t, embedded.Config{})
	_, js := ledgerOf(t, s)
	check(t, s.EnsureMirrors(testContext(t)))
	last := put(t, js, topology.BucketAssignments, "n1.web", 1)
	awaitMirror(t, s, topology.BucketAssignments, last)

	refusals := make(chan error, 10)
	nc := dial(t, s.ClientURL(), nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { refusals <- err }))
	kv, err := jetstreamOf(t, nc).KeyValue(testContext(t), topology.BucketAssignments)
	check(t, err)
	done := make(chan error, 1)
	ctx := testContext(t)
	go func() {
		_, err := kv.Put(ctx, "n1.web", []byte("forged"))
		done <- err
	}()
	if err := await(t, "the refusal", refusals); !errors.Is(err, nats.ErrPermissionViolation) || !strings.Contains(err.Error(), "LEDGER.API") {
		t.Errorf("refused with %v", err)
	}
	nc.Close()
	if err := await(t, "the end of the put", done); err == nil {
		t.Error("the put was acknowledged")
	}
	// The bucket's own subject, which the server knows in the ledger account only.
	direct := dial(t, s.ClientURL())
	if _, err := direct.Request(topology.BucketSubject(topology.BucketAssignments, "n1.web"), []byte("forged"), time.Second); !errors.Is(err, nats.ErrNoResponders) {
		t.Errorf("publishing to the bucket's subject: got error %v, want no responders", err)
	}
	for account, api := range map[string]jetstream.JetStream{"ledger": js, "ops": jetstreamOf(t, direct)} {
		if got := lastSequence(t, api, topology.BucketStream(topology.BucketAssignments)); got != last {
			t.Errorf("bucket in %s ends at %d, want %d", account, got, last)
		}
	}
}

// TestServicesAreVisible does what `nats micro ls|info|stats` do, as the operator.
func TestServicesAreVisible(t *testing.T) {
	t.Parallel()
	s := start(t, embedded.Config{})
	ledger := connectLedger(t, s)
	service, err := micro.AddService(ledger, micro.Config{Name: topology.WriterService, Version: "1.2.3"})
	check(t, err)
	check(t, service.AddEndpoint("assign", micro.HandlerFunc(func(r micro.Request) {
		check(t, r.RespondJSON(map[string]string{"status": "accepted"}))
	}), micro.WithEndpointSubject(topology.CommandSubject("assignment", "assign"))))
	check(t, ledger.Flush())
	nc := dial(t, s.ClientURL())
	answer, err := nc.Request(topology.CommandSubject("assignment", "assign"), []byte("{}"), patience)
	check(t, err)
	if string(answer.Data) != `{"status":"accepted"}` {
		t.Errorf("answered %s", answer.Data)
	}
	for _, verb := range []string{"PING", "INFO", "STATS"} {
		reply, err := nc.Request("$SRV."+verb+"."+topology.WriterService, nil, patience)
		check(t, err)
		var got struct{ Name, Version string }
		check(t, json.Unmarshal(reply.Data, &got))
		if got.Name != topology.WriterService || got.Version != "1.2.3" {
			t.Errorf("%s answered %s", verb, reply.Data)
		}
	}
	check(t, service.Stop())
}
