package audit

import (
	"context"
	"fmt"
	"time"

	"github.com/cockroachdb/errors"

	"catenary/es"
	"catenary/es/project"
)

// StoreView is the name of the audit store among the views that people see and steer.
const StoreView = "audit-store"

// StoreState is what the audit store is doing.
type StoreState struct {
	// Event is the last event taken in. While a new file is built, it is the last one in that file.
	Event uint64 `json:"event"`
	// Refused is the last refused command taken in, by its place in their stream.
	Refused uint64 `json:"refused,omitempty"`
	// Building says that a new file is being built. Who asks is answered from the one before, if there is one.
	Building bool `json:"building,omitempty"`
	// Answers says that there is a file that can be asked.
	Answers bool `json:"answers,omitempty"`
	// Erasing says that a name which was erased still stands in the journal beside the file, because a reader holds on to it. It goes
	// from there by itself when the reader is done.
	Erasing bool `json:"erasing,omitempty"`
	// Stopped says why the store does not go on, Trouble why not at the moment.
	Stopped string `json:"stopped,omitempty"`
	Trouble string `json:"trouble,omitempty"`
	// At is the event that a stopped store could not pass, zero when it is the file or the stream that stopped it; Since is when it
	// stopped.
	At    uint64    `json:"at,omitempty"`
	Since time.Time `json:"since,omitzero"`
	// Paused says who has paused the store.
	Paused *project.Decision `json:"paused,omitempty"`
	// Fold is the version of the store's fold.
	Fold int `json:"fold,omitempty"`
	// Skipped lists the events that were left out, newest first, and Parked the instances that are parked: at most
	// [project.MaxListed] each, of so many.
	Skipped      []project.Skip           `json:"skipped,omitempty"`
	SkippedCount int                      `json:"skipped-count,omitempty"`
	Parked       []project.ParkedInstance `json:"parked,omitempty"`
	ParkedCount  int                      `json:"parked-count,omitempty"`
}

// storeView shows the audit store as a view among the others. It has a file in the place of a bucket, and parks what it can't fold.
func (s *Service) storeView(ctx context.Context, tail uint64) project.ViewStatus {
	state := s.config.Past.Status()
	v := project.ViewStatus{
		View: StoreView, State: project.StateRunning, Position: project.Progress{Event: state.Event}, Fold: state.Fold, Policy: project.PolicyPark,
		Reason: state.Stopped + state.Trouble, At: state.At, Since: state.Since, Paused: state.Paused,
		Skipped: state.Skipped, SkippedCount: state.SkippedCount, Parked: state.Parked, ParkedCount: state.ParkedCount,
	}
	if tail > state.Event {
		v.Behind = tail - state.Event
		age, known := s.ageOf(ctx, state.Event+1)
		v.LagSeconds = age.Seconds()
		if !known || age > project.RunningLag {
			v.State = project.StateCatchingUp
		}
	}
	switch {
	case state.Paused != nil:
		v.State = project.StatePaused
	case state.Stopped != "":
		v.State = project.StateStopped
	case state.Trouble != "":
		v.State = project.StateWaiting
	case state.Building:
		v.State = project.StateCatchingUp
	}
	if v.Reason == "" && state.Erasing {
		v.Reason = "a name that was erased still stands in the journal beside the file, because somebody reads the file; it goes when they are done"
	}
	return v
}

// ageOf says how long ago an event was recorded, if it can be read.
func (s *Service) ageOf(ctx context.Context, event uint64) (time.Duration, bool) {
	m, err := s.config.Store.Get(ctx, event)
	if err != nil {
		return 0, false
	}
	e, err := es.ReadEvent(m)
	return max(time.Since(e.Recorded), 0), err == nil
}

// Words say what the store is doing, and what to do about it. Tail is the stream's last event; zero when it is not known.
func (s StoreState) Words(tail uint64) (words, hint string) {
	at := fmt.Sprintf("event %d", s.Event)
	if tail > 0 {
		at += fmt.Sprintf(" of %d", tail)
	}
	switch {
	case s.Stopped != "":
		return fmt.Sprintf("the audit store has stopped at %s: %s", at, s.Stopped),
			"it does not go on by itself: deal with the reason, and start the projector again; a file that was removed is built anew"
	case s.Trouble != "":
		return fmt.Sprintf("the audit store can't go on at %s: %s", at, s.Trouble), "it tries again by itself every few seconds"
	case s.Paused != nil:
		return fmt.Sprintf("the audit store is paused at %s: %s", at, s.Paused.Reason), "catenary projections resume " + StoreView + " lets it go on"
	case s.Building:
		return "the audit store is being built, and has come to " + at, "ask again when it is built; it takes a second for tens of thousands of events"
	default:
		return "the audit store has come to " + at, "ask again in a moment: while much is recorded it is behind, and it catches up by itself"
	}
}

// Unready is why a store in this state can't answer. It is marked [ErrStoreStopped] or [ErrStoreBehind], and hints say what to do.
func (s StoreState) Unready(tail uint64) error {
	words, hint := s.Words(tail)
	kind := ErrStoreBehind
	if s.Stopped != "" {
		kind = ErrStoreStopped
	}
	return errors.Mark(errors.WithHint(errors.Newf("%s", words), hint), kind)
}
