package dispatch

import "time"

// Watch is told what a writer does, on the writer's own goroutine: what it calls MUST NOT block. What is nil is not told.
type Watch struct {
	// Beat is called a few times in each [Config.Patience] for as long as the writer goes round, whatever it waits for.
	Beat func()
	// Landed tells of an append that stands: up to which event, how many it had, and how long it took since the first of its commands was
	// decided.
	Landed func(through uint64, events int, took time.Duration)
	// Stands tells up to which event all stands when the writer takes over, and when another has appended.
	Stands func(through uint64)
	// Store tells that the store does not take appends, and why; with nil, that it does again. Only changes are told: another reason is
	// none.
	Store func(why error)
}

func (w *Writer) beat() {
	if w.cfg.Watch.Beat != nil {
		w.cfg.Watch.Beat()
	}
}

// tellLanded tells of the oldest n flights, which stand.
func (w *Writer) tellLanded(flights []*flight) {
	if w.cfg.Watch.Landed == nil {
		return
	}
	for _, f := range flights {
		w.cfg.Watch.Landed(f.before.Sequence+uint64(len(f.messages)), len(f.messages), time.Since(f.begun))
	}
}

func (w *Writer) tellStands() {
	if w.cfg.Watch.Stands != nil {
		w.cfg.Watch.Stands(w.confirmed.Sequence)
	}
}

// tellStore tells whether the store takes appends.
func (w *Writer) tellStore(why error) {
	if (why != nil) == w.troubled {
		return
	}
	w.troubled = why != nil
	if w.cfg.Watch.Store != nil {
		w.cfg.Watch.Store(why)
	}
}
