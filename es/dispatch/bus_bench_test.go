package dispatch_test

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"catenary/es"
	"catenary/es/dispatch"
	"catenary/es/estest"
	"catenary/es/natsstore"
	"catenary/internal/topology"
)

// slice is how long each measurement of a round takes, and pipelineDepth how many bare publishes are in flight: more gain
// nothing.
const (
	slice         = 300 * time.Millisecond
	pipelineDepth = 1024
)

// BenchmarkWriter measures commands of one event each, from callers who wait for their answers, beside nats.go alone on the
// same server: guarded publishes one after another, and guarded publishes in a pipeline. All of them store messages of the
// same size with the same headers. They take turns, a moment each, so that whatever else the machine does meets all of
// them alike; the figures are medians over the rounds.
func BenchmarkWriter(b *testing.B) {
	for _, fsync := range []bool{false, true} {
		durability := "interval"
		if fsync {
			durability = "fsync"
		}
		for _, c := range []struct{ callers, accounts int }{{1, 1000}, {64, 1}, {64, 1000}, {256, 1000}, {1024, 1000}} {
			b.Run(fmt.Sprintf("%s/callers=%d/instances=%d", durability, c.callers, c.accounts), func(b *testing.B) {
				bus := estest.Server(b, fsync)
				bare := newBare(b, bus)
				w := start(b, natsStore(b, bus), func(cfg *dispatch.Config) { cfg.Durability.Fsync = fsync })
				var rate, one, pipelined []float64
				for b.Loop() {
					rate = append(rate, w.rate(b, c.callers, c.accounts))
					one = append(one, bare.rate(b, 1))
					pipelined = append(pipelined, bare.rate(b, pipelineDepth))
				}
				b.ReportMetric(0, "ns/op")
				b.ReportMetric(median(rate), "commands/s")
				b.ReportMetric(median(ratios(rate, one)), "×one-by-one")
				b.ReportMetric(median(ratios(rate, pipelined)), "×pipelined")
			})
		}
	}
}

// BenchmarkWriterInMemory measures what deciding alone costs.
func BenchmarkWriterInMemory(b *testing.B) {
	for _, callers := range []int{1, 64, 1024} {
		b.Run(fmt.Sprintf("callers=%d", callers), func(b *testing.B) {
			w := start(b, memory(b))
			commands := prepared(b.N, 1000)
			b.ReportAllocs()
			b.ResetTimer()
			w.load(b, commands, callers, time.Hour)
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "commands/s")
		})
	}
}

func ratios(a, b []float64) []float64 {
	out := make([]float64, len(a))
	for i := range a {
		out[i] = a[i] / b[i]
	}
	return out
}

func median(of []float64) float64 {
	sorted := slices.Sorted(slices.Values(of))
	return sorted[len(sorted)/2]
}

func natsStore(b testing.TB, bus *estest.Bus) es.Store {
	b.Helper()
	nc := bus.Connect(b)
	if err := natsstore.Ensure(b.Context(), nc, topology.Options{EventStoreBytes: benchStoreBytes}); err != nil {
		b.Fatal(err)
	}
	s, err := natsstore.Open(b.Context(), nc, natsstore.Config{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(s.Close)
	return s
}

// prepared gives commands that pay into some accounts in turn.
func prepared(n, accounts int) []es.Command {
	out := make([]es.Command, n)
	for i := range out {
		out[i] = command(pay{Account: name(i % accounts), Amount: 1})
	}
	return out
}

// rate gives the commands a second that so many callers get answered.
func (b *bench) rate(tb *testing.B, callers, accounts int) float64 {
	tb.Helper()
	commands := prepared(int(100_000*slice.Seconds()), accounts)
	start := time.Now()
	n := b.load(tb, commands, callers, slice)
	return float64(n) / time.Since(start).Seconds()
}

// load sends the commands from so many callers, each of whom waits for its answer before the next. It ends with the commands
// or with the time, and gives how many were answered.
func (b *bench) load(tb *testing.B, commands []es.Command, callers int, limit time.Duration) int {
	tb.Helper()
	var next, done atomic.Int64
	var group sync.WaitGroup
	end := time.Now().Add(limit)
	for range callers {
		group.Go(func() {
			answered := make(chan es.Answer, 1)
			answer := func(a es.Answer) { answered <- a }
			for time.Now().Before(end) {
				i := int(next.Add(1)) - 1
				if i >= len(commands) {
					return
				}
				b.writer.Submit(commands[i], answer)
				if a := <-answered; a.Status != es.StatusAccepted {
					tb.Errorf("command %d: %+v", i, a)
					return
				}
				done.Add(1)
			}
		})
	}
	group.Wait()
	return int(done.Load())
}

// bare publishes by nats.go alone, into a stream like the events'.
type bare struct {
	js       jetstream.JetStream
	messages []es.Message
	last     uint64
}

func newBare(b *testing.B, bus *estest.Bus) *bare {
	b.Helper()
	js, err := jetstream.New(bus.Connect(b), jetstream.WithPublishAsyncMaxPending(8192))
	if err != nil {
		b.Fatal(err)
	}
	config := topology.Events(topology.Options{EventStoreBytes: benchStoreBytes})
	config.Name, config.Subjects = "BARE", []string{"bare.>"}
	if _, err := js.CreateStream(b.Context(), config); err != nil {
		b.Fatal(err)
	}
	sample := memory(b)
	w := start(b, sample)
	w.load(b, prepared(100, 100), 1, time.Hour)
	p := &bare{js: js}
	for m, err := range sample.Read(b.Context(), 1) {
		if err != nil {
			b.Fatal(err)
		}
		p.messages = append(p.messages, m)
	}
	return p
}

// message gives the next message, with the guard that bare users have.
func (p *bare) message() *nats.Msg {
	m := p.messages[p.last%uint64(len(p.messages))]
	header := make(nats.Header, len(m.Header)+1)
	for name, values := range m.Header {
		header[name] = values
	}
	header[jetstream.ExpectedLastSeqHeader] = []string{strconv.FormatUint(p.last, 10)}
	p.last++
	return &nats.Msg{Subject: "bare" + m.Subject[len(es.SubjectPrefix):], Header: header, Data: m.Body}
}

// rate gives the messages a second that can be published with so many in flight.
func (p *bare) rate(b *testing.B, depth int) float64 {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.Context(), time.Minute)
	defer cancel()
	start, n := time.Now(), 0
	var inFlight []jetstream.PubAckFuture
	for time.Since(start) < slice || len(inFlight) > 0 {
		for time.Since(start) < slice && len(inFlight) < depth {
			f, err := p.js.PublishMsgAsync(p.message())
			if err != nil {
				b.Fatal(err)
			}
			inFlight = append(inFlight, f)
		}
		select {
		case <-inFlight[0].Ok():
			n++
		case err := <-inFlight[0].Err():
			b.Fatal(err)
		case <-ctx.Done():
			b.Fatal(ctx.Err())
		}
		inFlight = inFlight[1:]
	}
	return float64(n) / time.Since(start).Seconds()
}

// benchStoreBytes bounds each of a benchmark's streams, well above what one fills.
const benchStoreBytes = 8 << 30
