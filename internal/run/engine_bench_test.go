package run

import (
	"context"
	"log/slog"
	"testing"
)

// BenchmarkEngineStart measures how long an engine takes over a million events until it has read them, on a server that runs already, and the memory
// it then has; beside it, how long nothing but reading them takes.
func BenchmarkEngineStart(b *testing.B) {
	nc, store, _ := longPast(b, false)
	b.Run("reading", func(b *testing.B) {
		for b.Loop() {
			read := 0
			for _, err := range store.Follow(b.Context(), 0) {
				if err != nil {
					b.Fatal(err)
				}
				if read++; read == pastEvents {
					break
				}
			}
		}
		b.ReportMetric(b.Elapsed().Seconds()/float64(b.N), "s/start")
	})
	b.Run("engine", func(b *testing.B) {
		var heap float64
		for b.Loop() {
			b.StopTimer()
			before := heapBytes()
			b.StartTimer()
			ctx, stop := context.WithCancel(b.Context())
			ready, ended := make(chan struct{}), make(chan error, 1)
			go func() {
				ended <- Engine(ctx, nc, EngineConfig{Logger: slog.New(slog.DiscardHandler), Ready: func() { close(ready) }})
			}()
			select {
			case <-ready:
			case err := <-ended:
				b.Fatal(err)
			}
			b.StopTimer()
			heap = (float64(heapBytes()) - float64(before)) / (1 << 20)
			stop()
			if err := <-ended; err != nil {
				b.Error(err)
			}
			b.StartTimer()
		}
		b.ReportMetric(b.Elapsed().Seconds()/float64(b.N), "s/start")
		b.ReportMetric(heap, "MiB")
	})
}
