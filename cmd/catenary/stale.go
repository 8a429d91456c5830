package main

import (
	"context"
	"slices"
	"time"

	"github.com/cockroachdb/errors"
	"github.com/spf13/cobra"

	"catenary/audit"
	"catenary/chain"
	"catenary/es"
)

const (
	// freshPatience bounds the question whether what was shown is up to date. A projector that is stopped in its tracks does not
	// answer it.
	freshPatience = 3 * time.Second
	// freshWait is how long a view may take to pass what is newest. Usually it takes milliseconds.
	freshWait = time.Second
)

// errStale means that something was shown which may be older than what was recorded.
var errStale = errors.New("what is shown may be out of date")

// atLeastFlag lets a read wait for an event.
func atLeastFlag(cmd *cobra.Command) *uint64 {
	event := new(uint64)
	cmd.Flags().Var(version(event), "at-least", "first wait until `event` can be read; a command's answer has it as sequence")
	return event
}

// readRecords reads records of a kind, or the one with the names if there are some, after it has waited for an event, if there is one to wait
// for. When they may be older than what was recorded, it says so by an error after they were shown, or in the place of one that says that they
// are not there. That some of many are parked is said beside them and is no error: the others are as they were recorded.
func (a *app) readRecords(ctx context.Context, k kind, names []string, atLeast uint64, work func(context.Context, *session) error) error {
	return a.read(ctx, func(ctx context.Context, s *session) error {
		if atLeast > 0 {
			if err := s.reader.WaitFor(ctx, atLeast, k.views...); err != nil {
				return err
			}
		}
		err := work(ctx, s)
		if err != nil && !errors.Is(err, es.ErrNotFound) {
			return err
		}
		parked, stale := s.stale(ctx, k.views)
		if stale == nil && len(names) > 0 {
			stale = s.parked(ctx, k, names)
		}
		if len(names) == 0 {
			for _, v := range parked {
				a.sayf("%d of the %s are parked: nothing that was recorded of them since is shown; catenary projections show %s tells which, and why", v.Parked, k.plural, v.View)
			}
		}
		if err != nil && stale != nil {
			return errors.Wrapf(stale, "%v", err) // it may be there all the same
		}
		return errors.CombineErrors(err, stale)
	})
}

// stale gives an error marked errStale when one of the views has stopped or is behind, or nobody says how far it is, and those of them that
// have parked something.
func (s *session) stale(ctx context.Context, views []string) (parked []audit.ViewPosition, err error) {
	ctx, cancel := context.WithTimeout(ctx, freshPatience)
	defer cancel()
	p, err := s.queries.Position(ctx, audit.PositionQuestion{})
	read := func(p audit.Positions) []audit.ViewPosition {
		return slices.DeleteFunc(slices.Clone(p.Views), func(v audit.ViewPosition) bool { return !slices.Contains(views, v.View) })
	}
	behind := func(v audit.ViewPosition) bool { return v.Event < p.Tail }
	if err == nil && slices.ContainsFunc(read(p), behind) {
		p, err = s.queries.Position(ctx, audit.PositionQuestion{Sequence: p.Tail, Wait: audit.Duration(freshWait)})
		p.Tail = p.Sequence
	}
	if err != nil {
		return nil, errors.Wrapf(errStale, "nobody says how far the views are (%v)", err)
	}
	for _, view := range views {
		if !slices.ContainsFunc(p.Views, func(v audit.ViewPosition) bool { return v.View == view }) {
			return nil, errors.Wrapf(errStale, "the projector that runs fills no view %s", view)
		}
	}
	for _, v := range read(p) {
		if v.Parked > 0 {
			parked = append(parked, v)
		}
		switch {
		case v.Event >= p.Tail:
		case v.Paused:
			return parked, errors.WithHintf(errors.Wrapf(errStale, "%s has come to event %d of %d, %s", v.View, v.Event, p.Tail, v.Stopped),
				"when the reason is gone: catenary projections resume %s --reason TEXT", v.View)
		case v.Stopped != "":
			return parked, errors.WithHintf(errors.Wrapf(errStale, "%s has stopped at event %d of %d: %s", v.View, v.Event, p.Tail, v.Stopped),
				"when the reason is gone: catenary repair %[1]s; to have the bucket built anew: catenary rebuild %[1]s --anew", v.View)
		case v.Rebuilding:
			return parked, errors.Wrapf(errStale, "%s is being built anew; until that is done nothing is added to what is shown", v.View)
		default:
			return parked, errors.Wrapf(errStale, "%s is behind by %d events", v.View, p.Tail-v.Event)
		}
	}
	return parked, nil
}

// upTo gives an error marked errStale when an answer from the audit store leaves out what was recorded last. Known is until when things
// had to be known to count; zero for all.
func (s *session) upTo(ctx context.Context, b audit.Basis, known time.Time) error {
	if !b.Misses(known) {
		return nil
	}
	err := errors.Wrapf(errStale, "the answer is given through event %d of %d", b.Through, b.Tail)
	ctx, cancel := context.WithTimeout(ctx, freshPatience)
	defer cancel()
	p, positionErr := s.queries.Position(ctx, audit.PositionQuestion{})
	if positionErr != nil || p.Audit == nil {
		return err // how far it is was said
	}
	words, hint := p.Audit.Words(p.Tail)
	return errors.WithHint(errors.Wrapf(err, "%s", words), hint)
}

// parked gives an error marked errStale when a record's view has parked what was recorded of it.
func (s *session) parked(ctx context.Context, k kind, names []string) error {
	p, err := k.parked(ctx, s, names)
	switch {
	case errors.Is(err, es.ErrNotFound):
		return nil
	case err != nil:
		return err
	}
	err = errors.Wrapf(errStale, "%s can't fold event %d of this %s (%s, %s), and %d events behind it are parked too", k.views[0], p.Event, k.singular, p.Type, p.Why, p.Behind)
	return errors.WithHintf(err, "catenary projections show %s tells why", k.views[0])
}

// positions asks how far the views are, for the reader.
func (s *session) positions(ctx context.Context, event uint64) ([]chain.Position, error) {
	// Half of the time is the service's, so that its answer, which says what is behind, still comes.
	wait := audit.MaxWait
	if deadline, ok := ctx.Deadline(); ok {
		wait = min(wait, time.Until(deadline)/2)
	}
	p, err := s.queries.Position(ctx, audit.PositionQuestion{Sequence: event, Wait: audit.Duration(wait)})
	if err != nil {
		return nil, err
	}
	found := make([]chain.Position, len(p.Views))
	for i, v := range p.Views {
		found[i] = chain.Position{View: v.View, Bucket: v.Bucket, Event: v.Event, Revision: v.Revision, Stopped: v.Stopped}
	}
	return found, nil
}
