package natsstore_test

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"catenary/es"
	"catenary/es/estest"
	"catenary/es/natsstore"
	"catenary/internal/topology"
)

// events gives n sealed events of usual size: 256 bytes of body, the headers of a command from a person.
func events(n int) []es.Message {
	chain := estest.Chain{Label: "bench"}
	out := make([]es.Message, n)
	for i := range out {
		out[i] = chain.Seal(&es.Event{
			Ref: es.Ref{Aggregate: "assignment", Key: "n" + strconv.Itoa(i%5000) + ".web"}, Type: "assignment.assigned.v1", Version: 7,
			Effective: estest.Epoch(), Body: make([]byte, 256),
			Command: es.Cause{ID: "0197b1f0-5c3e-7b1a-9a52-3f1f6f5b1a22", Digest: es.Digest(nil), Actor: "a-12345", Correlation: "0197b1f0-5c3e-7b1a-9a52-3f1f6f5b1a23"},
		})
	}
	return out
}

// headBefore gives the head that the i-th of the stream's messages follows.
func headBefore(b *testing.B, messages []es.Message, i int) es.Head {
	if i == 0 {
		return es.Head{}
	}
	return estest.HeadOf(b, messages[i-1])
}

func rate(b *testing.B, events int) {
	b.ReportMetric(float64(events)/b.Elapsed().Seconds(), "events/s")
}

// BenchmarkAppend sends guarded appends of one event, all in one pipeline, and batches of 500, one in flight, beside the
// same by nats.go alone.
func BenchmarkAppend(b *testing.B) {
	for _, sync := range []bool{false, true} {
		durability := "interval"
		if sync {
			durability = "fsync"
		}
		b.Run(durability+"/single/store", func(b *testing.B) {
			s := open(b, estest.Server(b, sync).Connect(b), estest.Limits{}, natsstore.Config{})
			messages := events(b.N)
			b.ResetTimer()
			pending := make([]es.Pending, b.N)
			for i := range messages {
				pending[i] = s.Append(b.Context(), headBefore(b, messages, i), messages[i:i+1])
			}
			for _, p := range pending {
				if err := es.Wait(b.Context(), p); err != nil {
					b.Fatal(err)
				}
			}
			rate(b, b.N)
		})
		b.Run(durability+"/single/bare", func(b *testing.B) {
			nc := bareStream(b, sync)
			js, err := jetstream.New(nc, jetstream.WithPublishAsyncMaxPending(4096))
			if err != nil {
				b.Fatal(err)
			}
			messages := events(b.N)
			b.ResetTimer()
			for i, m := range messages {
				if _, err := js.PublishMsgAsync(&nats.Msg{Subject: m.Subject, Header: m.Header, Data: m.Body}, jetstream.WithExpectLastSequence(uint64(i)), jetstream.WithStallWait(time.Minute)); err != nil {
					b.Fatal(err)
				}
			}
			<-js.PublishAsyncComplete()
			rate(b, b.N)
			wantTail(b, nc, uint64(b.N))
		})
		const size = 500
		b.Run(durability+"/batch/store", func(b *testing.B) {
			s := open(b, estest.Server(b, sync).Connect(b), estest.Limits{}, natsstore.Config{})
			messages := events(b.N * size)
			b.ResetTimer()
			for i := range b.N {
				if err := es.Wait(b.Context(), s.Append(b.Context(), headBefore(b, messages, i*size), messages[i*size:(i+1)*size])); err != nil {
					b.Fatal(err)
				}
			}
			rate(b, b.N*size)
		})
		b.Run(durability+"/batch/bare", func(b *testing.B) {
			nc := bareStream(b, sync)
			messages := events(b.N * size)
			b.ResetTimer()
			for i := range b.N {
				for k := range size {
					m := messages[i*size+k]
					msg := &nats.Msg{Subject: m.Subject, Header: m.Header, Data: m.Body}
					msg.Header["Nats-Batch-Id"] = []string{strconv.Itoa(i)}
					msg.Header["Nats-Batch-Sequence"] = []string{strconv.Itoa(k + 1)}
					if k == 0 {
						msg.Header["Nats-Expected-Last-Sequence"] = []string{strconv.Itoa(i * size)}
					}
					if k < size-1 {
						if err := nc.PublishMsg(msg); err != nil {
							b.Fatal(err)
						}
						continue
					}
					msg.Header["Nats-Batch-Commit"] = []string{"1"}
					if _, err := nc.RequestMsgWithContext(b.Context(), msg); err != nil {
						b.Fatal(err)
					}
				}
			}
			rate(b, b.N*size)
			wantTail(b, nc, uint64(b.N*size))
		})
	}
}

func bareStream(b *testing.B, sync bool) *nats.Conn {
	nc := estest.Server(b, sync).Connect(b)
	if _, err := js(b, nc).CreateStream(b.Context(), topology.Events(topology.Options{})); err != nil {
		b.Fatal(err)
	}
	return nc
}

func wantTail(b *testing.B, nc *nats.Conn, want uint64) {
	info, err := stream(b, nc).Info(b.Context())
	if err != nil || info.State.LastSeq != want {
		b.Fatalf("the tail is %d (%v), want %d", info.State.LastSeq, err, want)
	}
}

// replayed is how many events a replay reads.
const replayed = 100_000

func filled(b *testing.B) (*natsstore.Store, *nats.Conn, es.Head) {
	nc := estest.Server(b, false).Connect(b)
	s := open(b, nc, estest.Limits{}, natsstore.Config{})
	var last es.Pending
	messages := events(replayed)
	for i := range messages {
		last = s.Append(b.Context(), headBefore(b, messages, i), messages[i:i+1])
	}
	if err := es.Wait(b.Context(), last); err != nil {
		b.Fatal(err)
	}
	return s, nc, estest.HeadOf(b, messages[replayed-1])
}

// BenchmarkReplay reads 100,000 events, beside an ordered consumer of nats.go that only takes the headers.
func BenchmarkReplay(b *testing.B) {
	s, nc, _ := filled(b)
	b.Run("store", func(b *testing.B) {
		for b.Loop() {
			n := 0
			for _, err := range s.Read(b.Context(), 0) {
				if err != nil {
					b.Fatal(err)
				}
				n++
			}
			if n != replayed {
				b.Fatalf("read %d", n)
			}
		}
		rate(b, b.N*replayed)
	})
	b.Run("bare", func(b *testing.B) {
		for b.Loop() {
			consumer, err := js(b, nc).OrderedConsumer(b.Context(), topology.EventStream, jetstream.OrderedConsumerConfig{})
			if err != nil {
				b.Fatal(err)
			}
			done := make(chan struct{})
			n := 0
			consume, err := consumer.Consume(func(m jetstream.Msg) {
				if m.Headers() != nil {
					n++
				}
				if n == replayed {
					close(done)
				}
			}, jetstream.PullMaxMessages(4000))
			if err != nil {
				b.Fatal(err)
			}
			<-done
			consume.Stop()
		}
		rate(b, b.N*replayed)
	})
}

// BenchmarkReads measures single questions in a stream of 100,000 events.
func BenchmarkReads(b *testing.B) {
	s, _, head := filled(b)
	for _, n := range []int{1, 2, 5, 20, 200} {
		ref := es.Ref{Aggregate: "assignment", Key: "of-" + strconv.Itoa(n)}
		for range n {
			chain := estest.Chain{Label: "agg", Head: head}
			if err := es.Wait(b.Context(), s.Append(b.Context(), head, []es.Message{chain.On(ref)})); err != nil {
				b.Fatal(err)
			}
			head = chain.Head
		}
		b.Run("aggregate of "+strconv.Itoa(n), func(b *testing.B) {
			for b.Loop() {
				got := 0
				for _, err := range s.ReadAggregate(b.Context(), ref) {
					if err != nil {
						b.Fatal(err)
					}
					got++
				}
				if got != n {
					b.Fatalf("read %d", got)
				}
			}
		})
	}
	for name, ask := range map[string]func(context.Context) error{
		"tail": func(ctx context.Context) error { _, err := s.Tail(ctx); return err },
		"get":  func(ctx context.Context) error { _, err := s.Get(ctx, 777); return err },
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if err := ask(b.Context()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
