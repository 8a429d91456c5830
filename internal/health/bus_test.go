package health_test

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"catenary/es/estest"
	"catenary/internal/health"
)

// TestGather asks once and hears of all, also of one that takes a while to look.
func TestGather(t *testing.T) {
	t.Parallel()
	bus := estest.Server(t, false)
	nc := bus.Connect(t)
	if all, err := health.Gather(t.Context(), nc); err != nil || len(all) != 0 {
		t.Fatalf("where nobody runs: %v, %v", all, err)
	}
	ctx, stop := context.WithCancel(t.Context())
	var serving sync.WaitGroup
	for _, program := range []string{"writer", "projector"} {
		r := health.New(health.Process{Program: program, Version: "1.0.0"}, time.Now)
		r.Look(func(ctx context.Context) []health.Check {
			if program == "projector" {
				<-ctx.Done() // longer than the others take to say that they are there
			}
			return []health.Check{{Name: program, Finding: health.Finding{State: health.OK}}}
		})
		own := bus.Connect(t)
		serving.Go(func() {
			if err := health.Serve(ctx, own, r, slog.New(slog.DiscardHandler)); err != nil {
				t.Error(err)
			}
		})
	}
	tick, late := time.NewTicker(10*time.Millisecond), time.After(30*time.Second)
	defer tick.Stop()
	for {
		all, err := health.Gather(t.Context(), nc)
		if err != nil {
			t.Fatal(err)
		}
		var programs []string
		for _, h := range all {
			programs = append(programs, h.Program)
			if ahead, doubt := h.Skew(); ahead.Abs() > doubt+time.Second {
				t.Errorf("the clock of %s is ahead by %v, give or take %v", h.Program, ahead, doubt)
			}
		}
		slices.Sort(programs)
		if slices.Equal(programs, []string{"projector", "writer"}) {
			break
		}
		select {
		case <-tick.C:
		case <-late:
			t.Fatalf("heard %v", programs)
		}
	}
	stop()
	serving.Wait()
}
