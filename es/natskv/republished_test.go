package natskv_test

import (
	"testing"

	"github.com/cockroachdb/errors"
	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"catenary/es"
	"catenary/es/estest"
	"catenary/es/natskv"
	"catenary/es/project"
	"catenary/internal/topology"
)

// TestOnlyWhatIsReadTells: the values of a generation are told from when it is served until it is fenced, and of the keys only those
// of records.
func TestOnlyWhatIsReadTells(t *testing.T) {
	t.Parallel()
	ctx := bounded(t)
	nc := estest.Server(t, false).Connect(t)
	g := openGenerations(t, nc, topology.Options{BucketBytes: 64 << 20})
	heard, err := nc.SubscribeSync(topology.ToldSubject("n1", "*"))
	if err != nil {
		t.Fatal(err)
	}
	put := func(b project.Bucket, after uint64, key string) error {
		return es.Wait(ctx, b.Put(ctx, after, key, []byte(`{"node":"n1"}`), metaOf(after+1)))
	}
	must := func(b project.Bucket, err error) project.Bucket {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	first := project.FirstPointer(topology.BucketAssignments).Generation
	next := project.Generation{Number: 2, Bucket: topology.Generation(topology.BucketAssignments, 2)}
	read, built := must(g.Serve(ctx, first)), must(g.Open(ctx, next))
	// In this order; what is told is written down with its bucket and revision.
	for _, err := range []error{
		put(built, 0, "n1.web"),              // nobody is sent there yet
		put(read, 0, "n1.web"),               // told
		put(read, 1, "/parked.thing.n1.web"), // no record
		put(read, 2, "n2.web"),               // another node's
		g.Fence(ctx, first),
		put(built, 1, "n1.db"), // still nobody
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	must(g.Serve(ctx, next))
	must(g.Open(ctx, next)) // whoever still builds it takes nothing back
	if err := put(built, 2, "n1.api"); err != nil {
		t.Fatal(err)
	}
	want := []hint{{"chain-assignments", "n1.web", 1, 1}, {"chain-assignments-g2", "n1.api", 3, 3}}
	if diff := cmp.Diff(want, toldTo(t, heard, len(want))); diff != "" {
		t.Errorf("told (-want +have):\n%s", diff)
	}
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	fenced, err := js.Stream(ctx, topology.BucketStream(first.Bucket))
	if err != nil || fenced.CachedInfo().Config.RePublish != nil {
		t.Errorf("the fenced bucket would tell %+v, %v", fenced, err)
	}
}

// hint is what is known of a value that was told.
type hint struct {
	Bucket, Key    string
	Revision, From uint64
}

// toldTo takes the messages that a subscription has got, as many as are told, and makes sure that there are no more.
func toldTo(t *testing.T, heard *nats.Subscription, count int) []hint {
	t.Helper()
	var all []hint
	for range count {
		m, err := heard.NextMsgWithContext(bounded(t))
		if err != nil {
			t.Fatalf("after %+v: %v", all, err)
		}
		bucket, e, err := natskv.ReadRepublished(m)
		if err != nil || string(e.Value) != `{"node":"n1"}` || e.Stored.IsZero() {
			t.Fatalf("it tells %+v of bucket %s, %v", e, bucket, err)
		}
		all = append(all, hint{bucket, e.Key, e.Revision, e.Meta.Source.Sequence})
	}
	if more, _, err := heard.Pending(); err != nil || more != 0 {
		t.Errorf("%d more are told, %v", more, err)
	}
	return all
}

// A bucket whose values go elsewhere is not safe: they might come back as something else.
func TestForeignRepublishing(t *testing.T) {
	t.Parallel()
	ctx := bounded(t)
	nc := estest.Server(t, false).Connect(t)
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	c := topology.Bucket(topology.BucketAssignments, topology.Options{BucketBytes: 1 << 20})
	c.RePublish = &jetstream.RePublish{Source: ">", Destination: "evt.>"}
	if _, err := js.CreateStream(ctx, c); err != nil {
		t.Fatal(err)
	}
	g := openGenerations(t, nc, topology.Options{BucketBytes: 1 << 20})
	var unsafe *natskv.ConfigError
	if _, err := g.Serve(ctx, project.FirstPointer(topology.BucketAssignments).Generation); !errors.As(err, &unsafe) || unsafe.Field != "RePublish" {
		t.Errorf("served with %v", err)
	}
}

func TestReadRepublishedRefuses(t *testing.T) {
	t.Parallel()
	whole := nats.Header{
		"Nats-Stream": {"KV_chain-assignments"}, "Nats-Subject": {"$KV.chain-assignments.n1.web"}, "Nats-Sequence": {"7"},
		"Nats-Time-Stamp": {"2026-01-02T03:04:05Z"}, natskv.HeaderPosition: {"5.1/1"}, natskv.HeaderSource: {"5 a"},
		natskv.HeaderFold: {"1"}, natskv.HeaderRecorded: {"2026-01-02T03:04:05Z"},
	}
	if bucket, e, err := natskv.ReadRepublished(&nats.Msg{Header: whole}); err != nil || bucket != "chain-assignments" || e.Key != "n1.web" || e.Revision != 7 {
		t.Errorf("read %s, %+v, %v", bucket, e, err)
	}
	for name := range whole {
		h := nats.Header{}
		for other, v := range whole {
			if other != name {
				h[other] = v
			}
		}
		if _, _, err := natskv.ReadRepublished(&nats.Msg{Header: h}); !errors.Is(err, project.ErrForeign) {
			t.Errorf("without %s: %v", name, err)
		}
	}
}
