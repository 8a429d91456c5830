package run

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/errors"
	"github.com/nats-io/nats.go/jetstream"

	"catenary/es"
	"catenary/es/dispatch"
	"catenary/internal/health"
	"catenary/internal/telemetry"
	"catenary/internal/topology"
)

// writerStill is for how long a writer's loop may stand still. It goes round every second or so, also while the store is away; a machine
// that is very busy may take ten times as long.
const writerStill = 30 * time.Second

// writerWatch is what a writer's process tells its monitor.
type writerWatch struct {
	Monitor
	writer, store *health.Signal
	pulse         *health.Pulse
	// working is the writer while it takes commands; nil while it stands by.
	working atomic.Pointer[dispatch.Writer]
	forget  func()
}

func newWriterWatch(m Monitor) *writerWatch {
	const wait = "wait: reading a stream of millions of events takes minutes; the log says how far it is"
	w := &writerWatch{
		Monitor: m,
		writer:  m.Health.Signal(health.CheckWriter, health.Finding{State: health.Fail, Code: health.Starting, Reason: "it is starting", Next: wait}),
		store:   m.Health.Signal("event store", health.Finding{State: health.OK}),
	}
	w.forget = m.Metrics.Look(func(_ context.Context, set telemetry.Set) {
		working := w.working.Load()
		if working == nil {
			set(telemetry.WriterActive, 0)
			return
		}
		set(telemetry.WriterActive, 1)
		set(telemetry.CommandsWaiting, float64(working.Waiting()))
	})
	return w
}

// end takes away all checks.
func (w *writerWatch) end() {
	w.forget()
	w.writer.Drop()
	w.store.Drop()
}

// standsBy says that the process stands by.
func (w *writerWatch) standsBy(active string) {
	w.writer.OK("it stands by: " + active + " works, and this one takes over when that is gone")
	w.store.OK("")
}

// fenced says that another writer has taken over.
func (w *writerWatch) fenced(why error) {
	w.writer.Warn(health.Fenced, "it is fenced: "+why.Error(), "none, if that was meant: this writer stands by from now on; else find out what held this process up")
}

// takesCommands says that the writer works; what is given ends that.
func (w *writerWatch) takesCommands(writer *dispatch.Writer) (ended func()) {
	w.writer.Set(health.Finding{State: health.OK, Reason: "it takes commands", Measures: []health.Measure{{Name: health.Active, Value: 1}}})
	w.working.Store(writer)
	return func() { w.working.Store(nil) }
}

// tells gives what a writer tells while it works.
func (w *writerWatch) tells() dispatch.Watch {
	if w.Health == nil && w.Metrics == nil {
		return dispatch.Watch{}
	}
	return dispatch.Watch{
		Beat:   func() { w.pulse.Beat() },
		Landed: w.Metrics.Landed,
		Stands: w.Metrics.Stands,
		Store: func(why error) {
			switch {
			case why == nil:
				w.store.OK("")
			case errors.Is(why, es.ErrFull):
				w.store.Fail(health.Full, "it is full, and refuses what is new: "+why.Error(), "raise the limit of the event stream (--event-store-bytes), or make room on the disk")
			default:
				w.store.Fail(health.Away, "it has not answered an append: "+why.Error(), "see whether the server, and in a cluster the leader of stream "+topology.EventStream+", is there; the writer goes on by itself")
			}
		},
	}
}

// beats begins to watch that the writer's loop goes round; what is given ends that.
func (w *writerWatch) beats() (ended func()) {
	w.pulse = w.Health.Pulse("writer loop", writerStill)
	return w.pulse.Stop
}

// offer gives what counts and traces the commands that are offered.
func (w *writerWatch) offer(offer func(dispatch.Submission)) func(dispatch.Submission) {
	if w.Metrics == nil && w.Tracing == nil {
		return offer
	}
	return func(s dispatch.Submission) {
		began := time.Now()
		var span *telemetry.Span
		if w.Tracing != nil {
			s.Read = w.traced(s, began, &span)
		}
		ref, verb, answer := s.Command.Ref, s.Command.Verb, s.Answer
		s.Answer = func(a es.Answer) {
			w.Metrics.Answered(ref.Aggregate, verb, string(a.Status), time.Since(began))
			endCommand(span, a)
			answer(a)
		}
		offer(s)
	}
}

// traced begins the span of a command when it is read, and lets what comes of it be told below that.
func (w *writerWatch) traced(s dispatch.Submission, began time.Time, span **telemetry.Span) func() (es.Command, error) {
	return func() (es.Command, error) {
		c, err := s.Command, error(nil)
		if s.Read != nil {
			c, err = s.Read()
		}
		about := []telemetry.Attribute{telemetry.Text("catenary.command", c.ID), telemetry.Text("catenary.key", c.Ref.Key)}
		*span = w.Tracing.Start(c.Trace, "command "+c.Ref.Aggregate+"."+c.Verb, began, about...)
		c.Trace = (*span).Context()
		return c, err
	}
}

// endCommand ends the span of a command with its answer.
func endCommand(span *telemetry.Span, a es.Answer) {
	if span == nil {
		return
	}
	failure := ""
	if a.Error != nil {
		failure = a.Error.Code + ": " + a.Error.Message
	}
	span.End(failure, telemetry.Text("catenary.status", string(a.Status)), telemetry.Number("catenary.event", a.Sequence))
}

// lookAtStore counts who follows the event stream, until that is forgotten.
func (w *writerWatch) lookAtStore(js jetstream.JetStream) (forget func()) {
	return w.Metrics.Look(func(ctx context.Context, set telemetry.Set) {
		if stream, err := js.Stream(ctx, topology.EventStream); err == nil {
			set(telemetry.StoreFollowers, float64(stream.CachedInfo().State.Consumers))
		}
	})
}
