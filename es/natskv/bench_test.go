package natskv_test

import (
	"fmt"
	"maps"
	"strconv"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"catenary/es"
	"catenary/es/estest"
	"catenary/es/natskv"
)

// BenchmarkPut compares a pipelined guarded put with the bare client's, in the same run, without headers and with as many.
func BenchmarkPut(b *testing.B) {
	value := fmt.Appendf(nil, "%0256d", 1)
	b.Run("bucket", func(b *testing.B) {
		bucket, _ := bucket(b)
		ctx := bounded(b)
		pending := make([]es.Pending, 0, 1024)
		b.ResetTimer()
		for i := range uint64(b.N) {
			pending = append(pending, bucket.Put(ctx, i, keyOf(i), value, metaOf(i+1)))
			if len(pending) == cap(pending) || i+1 == uint64(b.N) {
				for _, p := range pending {
					if err := es.Wait(ctx, p); err != nil {
						b.Fatal(err)
					}
				}
				pending = pending[:0]
			}
		}
		b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "values/s")
	})
	b.Run("bare", func(b *testing.B) { benchmarkBare(b, value, nil) })
	b.Run("bare, as many headers", func(b *testing.B) {
		benchmarkBare(b, value, nats.Header{
			"Cat-Position": {"12345.1/1"}, "Cat-Source": {"12345 event-12345"}, "Cat-Fold": {"1"}, "Cat-Type": {"thing.put.v1"},
			"Cat-Recorded": {"2026-01-01T00:00:00.123456789Z"}, "Cat-Actor": {"a1"},
		})
	})
}

func benchmarkBare(b *testing.B, value []byte, header nats.Header) {
	nc := estest.Server(b, false).Connect(b)
	open(b, nc, small("things"))
	js, err := jetstream.New(nc)
	if err != nil {
		b.Fatal(err)
	}
	pending := make([]jetstream.PubAckFuture, 0, 1024)
	b.ResetTimer()
	for i := range uint64(b.N) {
		h := nats.Header{jetstream.ExpectedLastSeqHeader: {strconv.FormatUint(i, 10)}}
		maps.Copy(h, header)
		p, err := js.PublishMsgAsync(&nats.Msg{Subject: "$KV.things." + keyOf(i), Data: value, Header: h})
		if err != nil {
			b.Fatal(err)
		}
		pending = append(pending, p)
		if len(pending) == cap(pending) || i+1 == uint64(b.N) {
			for _, p := range pending {
				select {
				case <-p.Ok():
				case err := <-p.Err():
					b.Fatal(err)
				}
			}
			pending = pending[:0]
		}
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "values/s")
}

// BenchmarkRead gives how fast a bucket of 20,000 keys, with five values each, is read.
func BenchmarkRead(b *testing.B) {
	bucket, _ := bucket(b)
	ctx := bounded(b)
	keys := make([]string, 20_000)
	for i := range keys {
		keys[i] = keyOf(uint64(i))
	}
	fill(b, bucket, 5*len(keys), keys...)
	for name, read := range map[string]func() int{
		"all":     func() int { return len(collect(b, bucket.All(ctx, 0))) },
		"entries": func() int { return len(collect(b, bucket.Entries(ctx))) },
		"filter":  func() int { return len(collect(b, bucket.Entries(ctx, "n1.*"))) },
		"history": func() int { return len(collect(b, bucket.History(ctx, keys[7]))) },
	} {
		b.Run(name, func(b *testing.B) {
			got := 0
			for range b.N {
				got += read()
			}
			b.ReportMetric(float64(got)/b.Elapsed().Seconds(), "values/s")
		})
	}
}

func keyOf(i uint64) string { return fmt.Sprintf("n%d.m%d", i%200, i%20_000) }

// BenchmarkPage gives how long a page of 100 keys of 100,000 takes, at first and after that.
func BenchmarkPage(b *testing.B) {
	bucket, nc := bucket(b)
	ctx := bounded(b)
	keys := make([]string, 100_000)
	for i := range keys {
		keys[i] = fmt.Sprintf("n%d.m%d", i%200, i)
	}
	fill(b, bucket, len(keys), keys...)
	page := func(b *testing.B, bucket *natskv.Bucket, filter, after string) {
		if entries, err := bucket.Page(ctx, filter, after, 100); err != nil || len(entries) != 100 {
			b.Fatalf("%d entries, %v", len(entries), err)
		}
	}
	b.Run("first", func(b *testing.B) {
		for range b.N {
			fresh, err := natskv.Open(ctx, nc, bucket.Name())
			if err != nil {
				b.Fatal(err)
			}
			page(b, fresh, "", "")
		}
	})
	b.Run("next", func(b *testing.B) {
		for i := range b.N {
			page(b, bucket, "", keys[i%1000])
		}
	})
	b.Run("under a filter", func(b *testing.B) {
		for range b.N {
			page(b, bucket, "n7.*", "")
		}
	})
}
