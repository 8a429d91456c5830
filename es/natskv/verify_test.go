package natskv_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"catenary/es"
	"catenary/es/memstore"
	"catenary/es/project"
	"catenary/es/project/projecttest"
)

// told is an event about a thing; counts is a view that counts them.
type told struct{}

type counts struct{ state map[string]int }

func newCounts() project.View { return &counts{state: map[string]int{}} }

func (*counts) Name() string { return "things" }
func (*counts) Version() int { return 1 }

func (c *counts) Load(key string, value []byte) error {
	n, err := strconv.Atoi(string(value))
	c.state[key] = n
	return err
}

func (c *counts) Fold(e es.Event) ([]project.Value, error) {
	c.state[e.Ref.Key]++
	return []project.Value{{Key: e.Ref.Key, Data: strconv.AppendInt(nil, int64(c.state[e.Ref.Key]), 10)}}, nil
}

// TestVerifyNamesAValueChangedByHand is the first half of case A14: somebody with access to the ledger writes a value over
// one of ours, with the headers that ours has. Verification names its key and leaves the stream alone.
func TestVerifyNamesAValueChangedByHand(t *testing.T) {
	t.Parallel()
	b, nc := bucket(t)
	ctx := bounded(t)
	registry := es.NewRegistry(es.Msgpack{})
	es.Register[told](registry, "thing.told.v1")
	store := memstore.New(memstore.Config{})
	var facts []projecttest.Fact
	for i := range 50 {
		facts = append(facts, projecttest.Fact{Ref: es.Ref{Aggregate: "thing", Key: fmt.Sprint("t", i%7)}, Data: told{}})
	}
	tail := projecttest.Append(t, registry, store, facts...)
	projecttest.Run(t, project.Config{Store: store, Registry: registry, Views: []project.ViewSpec{{New: newCounts, Bucket: b}}}, tail)
	verify := func() project.Report {
		t.Helper()
		report, err := project.Verify(ctx, project.Verification{
			Store: store, Registry: registry,
			NewViews: func() []project.View { return []project.View{newCounts()} },
			Bucket:   func(string) (project.Bucket, error) { return b, nil },
		})
		if err != nil {
			t.Fatal(err)
		}
		return report
	}
	if report := verify(); !report.OK() || report.Buckets[0].Keys != 7 || report.Buckets[0].Values != 50 {
		t.Fatalf("before: %+v", report)
	}

	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	stream, err := js.Stream(ctx, "KV_things")
	if err != nil {
		t.Fatal(err)
	}
	standing, err := stream.GetLastMsgForSubject(ctx, "$KV.things.t4")
	if err != nil {
		t.Fatal(err)
	}
	forged := &nats.Msg{Subject: standing.Subject, Header: nats.Header{}, Data: []byte("1000000")}
	for name, values := range standing.Header {
		if !strings.HasPrefix(name, "Nats-") {
			forged.Header[name] = values
		}
	}
	ack, err := js.PublishMsg(ctx, forged)
	if err != nil {
		t.Fatal(err)
	}
	if e, err := b.Get(ctx, "t4"); err != nil || string(e.Value) != "1000000" {
		t.Fatalf("the forged value does not stand: %+v, %v", e, err)
	}
	report := verify()
	found := report.Buckets[0].Differences
	if report.OK() || report.Chain != "" || report.Events != tail || len(found) != 1 {
		t.Fatalf("after: %+v", report)
	}
	if d := found[0]; d.Kind != project.KindExtra || d.Key != "t4" || d.Revision != ack.Sequence || d.Event != 47 {
		t.Errorf("difference %+v", d)
	}
}
