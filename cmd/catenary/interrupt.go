package main

import (
	"context"
	"sync/atomic"
)

// interruptible runs something until it ends, or until it is left at once, and gives the exit code. ^C and SIGTERM end its context, and a second one
// leaves it. Where it drains there is one more before these: what has begun is waited for.
func (a *app) interruptible(ctx context.Context, program func(context.Context) int) int {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	code := make(chan int, 1)
	go func() { code <- program(ctx) }()
	heard := 0
	for {
		select {
		case c := <-code:
			return c
		case <-a.Signals:
			heard++
		}
		switch {
		case heard == 1 && a.draining.begin():
		case ctx.Err() == nil:
			if a.draining.begun() {
				a.sayf("stopping now: steps that are under way go on at the next start; once more leaves at once")
			}
			stop()
		default:
			if a.draining.begun() {
				a.sayf("left at once: steps that are under way are named above, and go on at the next start")
			}
			return exitFailed
		}
	}
}

// draining is how a program that can do so lets what has begun come to its end.
type draining struct {
	able, under atomic.Bool
	// asked is closed when it is to begin.
	asked chan struct{}
}

func newDraining() *draining { return &draining{asked: make(chan struct{})} }

// begin lets the program drain, and says whether it does.
func (d *draining) begin() bool {
	if !d.able.Load() {
		return false
	}
	if !d.under.Swap(true) {
		close(d.asked)
	}
	return true
}

func (d *draining) begun() bool { return d.under.Load() }
