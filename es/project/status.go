package project

import (
	"context"
	"time"

	"github.com/cockroachdb/errors"
)

// State says what a view is doing.
type State string

// The states of a view.
const (
	// StateCatchingUp means that the view has not yet passed what stood in the stream when it was taken up, or waits to try
	// again; then the reason says why.
	StateCatchingUp State = "catching-up"
	// StateRunning means that the view follows the stream.
	StateRunning State = "running"
	// StateStopped means that the view goes on only after somebody has dealt with the reason and started it again.
	StateStopped State = "stopped"
)

// Status is what the runner and its views are doing.
type Status struct {
	// Tail is the stream's last event, as last heard.
	Tail uint64 `json:"tail"`
	// Reason says why nothing goes on at all: the stream is damaged, or can't be read at the moment.
	Reason string       `json:"reason,omitempty"`
	Views  []ViewStatus `json:"views"`
}

// Healthy says whether everything goes on: no view has stopped and the stream can be read.
func (s Status) Healthy() bool {
	for _, v := range s.Views {
		if v.State == StateStopped {
			return false
		}
	}
	return s.Reason == ""
}

// ViewStatus is what one view is doing.
type ViewStatus struct {
	View     string   `json:"view"`
	State    State    `json:"state"`
	Position Progress `json:"position"`
	// Behind counts the events of the stream that the view has not passed.
	Behind uint64 `json:"behind"`
	// Reason says why the view has stopped, or why it is not going on at the moment.
	Reason string `json:"reason,omitempty"`
	// At is the event a stopped view could not pass; zero when it is the bucket that stopped it.
	At uint64 `json:"at,omitempty"`
	// Since is when the view stopped.
	Since time.Time `json:"since,omitzero"`
}

// Status tells what the runner is doing. It reads the stream's tail; when that fails, the last known one counts and the
// reason says so.
func (r *Runner) Status(ctx context.Context) Status {
	tail, err := r.cfg.Store.Tail(ctx)
	r.mu.Lock()
	if err == nil {
		r.tail = max(r.tail, tail)
	}
	s := Status{Tail: r.tail}
	if r.failure != nil {
		s.Reason = r.failure.Error()
	} else if err != nil {
		s.Reason = errors.Wrap(err, "the stream's tail").Error()
	}
	r.mu.Unlock()
	for _, w := range r.workers {
		s.Views = append(s.Views, w.track.status(w.name, s.Tail))
	}
	return s
}

func (t *tracker) status(view string, tail uint64) ViewStatus {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := ViewStatus{View: view, State: StateRunning, Position: t.progress}
	if tail > t.progress.Event {
		s.Behind = tail - t.progress.Event
	}
	switch {
	case t.stop != nil:
		s.State, s.Reason, s.At, s.Since = StateStopped, t.stop.Error(), t.stop.at, t.since
	case t.trouble != "":
		s.State, s.Reason = StateCatchingUp, t.trouble
	case t.progress.Event < t.target:
		s.State = StateCatchingUp
	}
	return s
}
