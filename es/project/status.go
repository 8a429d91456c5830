package project

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/cockroachdb/errors"

	"catenary/es"
)

// State says what a view is doing.
type State string

// The states of a view.
const (
	// StateRunning means that the view follows the stream: no event that it has not passed is older than [RunningLag].
	StateRunning State = "running"
	// StateCatchingUp means that the view folds what was recorded a while ago.
	StateCatchingUp State = "catching-up"
	// StateWaiting means that the view can't go on at the moment, for the reason given, and tries again by itself.
	StateWaiting State = "waiting"
	// StatePaused means that somebody has paused the view.
	StatePaused State = "paused"
	// StateRebuilding means that the view waits for a new generation of its bucket, which is being built: it can't go on with the
	// present one.
	StateRebuilding State = "rebuilding"
	// StateStopped means that the view goes on only after somebody has dealt with the reason.
	StateStopped State = "stopped"
)

// RunningLag is how old an event may be that a running view has not passed: well above what an event takes to its bucket, and
// below what anybody would call behind. The clocks of writer and projector may differ by about as much.
const RunningLag = 2 * time.Second

// MaxListed bounds what a status lists of one kind: parked instances, skips, unknown types.
const MaxListed = 100

// Status is what the runner and its views are doing.
type Status struct {
	// Tail is the stream's last event, as last heard.
	Tail uint64 `json:"tail"`
	// Reason says why nothing goes on at all: the stream is damaged, or can't be read at the moment.
	Reason string `json:"reason,omitempty"`
	// Away says that the reason is the second: it passes when the server is there again.
	Away bool `json:"away,omitempty"`
	// Unknown counts the events of types that the program does not know which the reader has met since the program began,
	// whichever views they concern.
	Unknown []UnknownType `json:"unknown,omitempty"`
	Views   []ViewStatus  `json:"views"`
}

// Healthy says whether everything goes on: no view has stopped or waits, none has parked anything, and the stream can be read. A
// paused view is as somebody wants it.
func (s Status) Healthy() bool {
	for _, v := range s.Views {
		if v.State == StateStopped || v.State == StateWaiting || v.ParkedCount > 0 {
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
	// Behind counts the events of the stream that the view has not passed, LagSeconds is the age of the oldest of them.
	Behind     uint64  `json:"behind"`
	LagSeconds float64 `json:"lag-seconds"`
	// EventsPerSecond is how fast a view that is behind goes on.
	EventsPerSecond float64 `json:"events-per-second,omitempty"`
	// Fold is the version of the view's fold, Generation counts the buckets it had in turn, Policy says what becomes of an
	// event that it can't fold.
	Fold       int    `json:"fold"`
	Generation int    `json:"generation"`
	Policy     Policy `json:"policy"`
	// Reason says why the view has stopped, or why it is not going on at the moment.
	Reason string `json:"reason,omitempty"`
	// At is the event a stopped view could not pass, Type its type; zero when it is the bucket that stopped it.
	At   uint64 `json:"at,omitempty"`
	Type string `json:"type,omitempty"`
	// Since is when the view stopped.
	Since time.Time `json:"since,omitzero"`
	// Paused says who has paused the view.
	Paused *Decision `json:"paused,omitempty"`
	// Skipped lists the events that were left out, newest first, and Parked the instances that are parked: at most [MaxListed]
	// each, of so many.
	Skipped      []Skip           `json:"skipped,omitempty"`
	SkippedCount int              `json:"skipped-count,omitempty"`
	Parked       []ParkedInstance `json:"parked,omitempty"`
	ParkedCount  int              `json:"parked-count,omitempty"`
	// Unknown counts those of them that concern the view.
	Unknown []UnknownType `json:"unknown,omitempty"`
}

// ParkedInstance is an instance of which nothing is folded any more.
type ParkedInstance struct {
	// Instance is its aggregate and key.
	Instance string `json:"instance"`
	Parked
	// Said is what the fold said of the first event; empty when that was before the program began.
	Said string `json:"said,omitempty"`
}

// Status tells what the runner is doing. It reads the stream's tail, and for views that are behind when their next event was
// recorded; when the tail can't be read, the last known one counts and the reason says so.
func (r *Runner) Status(ctx context.Context) Status {
	tail, err := r.cfg.Store.Tail(ctx)
	r.mu.Lock()
	if err == nil {
		r.tail = max(r.tail, tail)
	}
	s := Status{Tail: r.tail, Unknown: r.strange.list()}
	if r.failure != nil {
		s.Reason = r.failure.Error()
	} else if err != nil {
		s.Reason, s.Away = errors.Wrap(err, "the stream's tail").Error(), true
	}
	r.mu.Unlock()
	ages := ages{store: r.cfg.Store, now: r.cfg.Clock(), known: map[uint64]time.Duration{}}
	for _, w := range r.workers {
		v := w.track.status(w.name, s.Tail)
		if v.Behind > 0 {
			age, known := ages.of(ctx, v.Position.Event+1)
			v.LagSeconds = age.Seconds()
			if v.State == StateRunning && (!known || age > RunningLag) {
				v.State = StateCatchingUp
			}
		}
		s.Views = append(s.Views, v)
	}
	return s
}

// ages tells how long ago events were recorded. Views that are behind mostly stand at the same event.
type ages struct {
	store es.Store
	now   time.Time
	known map[uint64]time.Duration
}

func (a ages) of(ctx context.Context, event uint64) (time.Duration, bool) {
	if age, ok := a.known[event]; ok {
		return age, true
	}
	m, err := a.store.Get(ctx, event)
	if err != nil {
		return 0, false
	}
	e, err := es.ReadEvent(m)
	if err != nil {
		return 0, false
	}
	a.known[event] = max(a.now.Sub(e.Recorded), 0)
	return a.known[event], true
}

// status tells what the view is doing; whether one that runs is up to date is for the caller to say.
func (t *tracker) status(view string, tail uint64) ViewStatus {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := ViewStatus{
		View: view, State: StateRunning, Position: t.progress, Fold: t.fold, Generation: t.generation, Policy: t.policy,
		Paused: t.control.Paused, SkippedCount: len(t.control.Skipped), ParkedCount: len(t.parked),
	}
	if tail > t.progress.Event {
		s.Behind = tail - t.progress.Event
		t.pace.look(time.Now(), t.progress.Event)
		s.EventsPerSecond = t.pace.rate
	}
	if t.stop != nil {
		s.Reason, s.At, s.Type, s.Since = t.stop.Error(), t.stop.at, t.stop.typ, t.since
	} else {
		s.Reason = t.trouble
	}
	switch {
	case s.Paused != nil:
		s.State = StatePaused
	case t.stop != nil:
		s.State = StateStopped
	case t.rebuilding:
		s.State = StateRebuilding
	case t.trouble != "":
		s.State = StateWaiting
	}
	s.Skipped = slices.Clone(t.control.Skipped[max(len(t.control.Skipped)-MaxListed, 0):])
	slices.Reverse(s.Skipped)
	for _, p := range t.parked {
		s.Parked = append(s.Parked, p)
	}
	slices.SortFunc(s.Parked, func(a, b ParkedInstance) int { return cmp.Compare(a.Event, b.Event) })
	s.Parked = s.Parked[:min(len(s.Parked), MaxListed)]
	s.Unknown = t.unknown.list()
	return s
}
