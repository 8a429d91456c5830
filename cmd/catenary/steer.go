package main

import (
	"context"
	"slices"
	"time"

	"github.com/cockroachdb/errors"
	"github.com/spf13/cobra"

	"catenary/audit"
	"catenary/commands"
	"catenary/es"
	"catenary/es/project"
)

// errNotStanding means that a view does not stand at the event that is to be left out.
var errNotStanding = errors.New("the view does not stand there")

func (a *app) pauseCommand() *cobra.Command {
	var c commands.PauseProjection
	cmd := &cobra.Command{
		Use: "pause VIEW --reason TEXT", Short: "Let a view fold no further", Args: takes("VIEW"), ValidArgsFunction: completeSteered,
		Long: `Pause lets a view fold no further until it is resumed. Its bucket stays as it is and can be read; events go on being recorded.`,
	}
	w := a.writeFlags(cmd)
	cmd.Flags().StringVar(&c.Reason, "reason", "", "why, in a `sentence`; everybody sees it")
	cmd.RunE = func(cmd *cobra.Command, args []string) (err error) {
		if c.View, err = steeredName(args[0]); err != nil {
			return err
		}
		return a.steer(cmd, w, "pause "+c.View, c, func(v project.ViewStatus) bool { return v.State == project.StatePaused })
	}
	return cmd
}

func (a *app) resumeCommand() *cobra.Command {
	var c commands.ResumeProjection
	cmd := &cobra.Command{
		Use: "resume VIEW", Short: "Let a view that is paused go on", Args: takes("VIEW"), ValidArgsFunction: completeSteered,
		Long: `Resume lets a view that is paused go on from where it stands. One that has stopped needs another help: see the reason.`,
	}
	w := a.writeFlags(cmd)
	cmd.Flags().StringVar(&c.Reason, "reason", "", "why, in a `sentence`")
	cmd.RunE = func(cmd *cobra.Command, args []string) (err error) {
		if c.View, err = steeredName(args[0]); err != nil {
			return err
		}
		return a.steer(cmd, w, "resume "+c.View, c, func(v project.ViewStatus) bool { return v.State != project.StatePaused })
	}
	return cmd
}

const skipHelp = `Skip leaves one event out of a view, for good: of what that event says nothing is in the view, now and in every later fold. The
event itself stays, and other views are as they are.

Only an event at which the view has stopped, or which it has parked, can be skipped. Where the event was parked, rebuild the
view afterwards: what came behind it is folded then. The audit store does so by itself.`

func (a *app) skipCommand() *cobra.Command {
	var c commands.SkipProjection
	cmd := &cobra.Command{
		Use: "skip VIEW --event NUMBER --reason TEXT", Short: "Leave an event out of a view that can't fold it", Long: skipHelp,
		Args: takes("VIEW"), ValidArgsFunction: completeSteered,
	}
	w := a.writeFlags(cmd)
	cmd.Flags().Var(version(&c.Event), "event", "the event's sequence `number`, as projections show and the log have it")
	cmd.Flags().StringVar(&c.Reason, "reason", "", "why, in a `sentence`; everybody sees it")
	cmd.RunE = func(cmd *cobra.Command, args []string) (err error) {
		if c.View, err = steeredName(args[0]); err != nil {
			return err
		}
		if err := c.Validate(); err != nil {
			return err
		}
		parked := false
		err = a.read(cmd.Context(), func(ctx context.Context, s *session) error {
			v, err := s.view(ctx, c.View)
			if err == nil {
				parked, err = stands(v, c.Event)
			}
			return err
		})
		if err != nil {
			return err
		}
		err = a.steer(cmd, w, "skip an event of "+c.View, c, func(v project.ViewStatus) bool { return v.At != c.Event })
		if err == nil && parked && c.View == audit.StoreView {
			a.sayf("the audit store is built anew without it; until then it answers as before")
		} else if err == nil && parked {
			a.sayf("what came behind it is folded when the view is rebuilt: catenary rebuild %s", c.View)
		}
		return err
	}
	return cmd
}

// stands says whether the view waits for somebody to deal with the event, and whether it is parked. Otherwise it gives an
// error marked errNotStanding. One that was skipped already may be skipped again.
func stands(v project.ViewStatus, event uint64) (parked bool, err error) {
	parked = slices.ContainsFunc(v.Parked, func(p project.ParkedInstance) bool { return p.Event == event })
	skipped := slices.ContainsFunc(v.Skipped, func(s project.Skip) bool { return s.Event == event })
	switch {
	case parked, skipped, v.At == event:
		return parked, nil
	case v.At > 0:
		return false, errors.Mark(errors.Newf("%s has stopped at event %d, not at event %d", v.View, v.At, event), errNotStanding)
	default:
		err = errors.Mark(errors.Newf("%s has neither stopped at event %d nor parked it: it is %s at event %d", v.View, event, v.State, v.Position.Event), errNotStanding)
		return false, errors.WithHint(err, "only what a view can't fold is skipped")
	}
}

// view asks what one view is doing.
func (s *session) view(ctx context.Context, name string) (project.ViewStatus, error) {
	asking, cancel := context.WithTimeout(ctx, projectionsPatience)
	defer cancel()
	status, err := s.queries.Projections(asking)
	if err != nil {
		return project.ViewStatus{}, err
	}
	at := slices.IndexFunc(status.Views, func(v project.ViewStatus) bool { return v.View == name })
	if at < 0 {
		return project.ViewStatus{}, errors.Mark(errors.Newf("the projector has no view %s: is it an older program?", name), es.ErrNotFound)
	}
	return status.Views[at], nil
}

// steerPause is how often a view is looked at until it does what it was told.
const steerPause = 50 * time.Millisecond

// steer sends a command about a view, and waits until the projector does as it says. That is a courtesy: what was recorded
// stays recorded, so when it can't be told a note says so, and no error is given.
func (a *app) steer(cmd *cobra.Command, w *writeFlags, what string, p es.Payload, done func(project.ViewStatus) bool) error {
	wait := w.wait
	w.wait = 0 // the buckets show nothing of it
	if err := a.write(cmd, w, what, p); err != nil || wait == 0 || w.durable {
		return err
	}
	view, err := es.UnescapeToken(p.Ref().Key)
	if err != nil {
		return errors.Wrap(err, what)
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), wait)
	defer cancel()
	err = a.read(ctx, func(ctx context.Context, s *session) error {
		for {
			v, err := s.view(ctx, view)
			if err != nil || done(v) {
				return err
			}
			select {
			case <-time.After(steerPause):
			case <-ctx.Done():
				return errors.Newf("%s is %s at event %d", view, v.State, v.Position.Event)
			}
		}
	})
	if err != nil {
		a.sayf("recorded, but the projector has not done it yet: %s", printable(err.Error()))
	}
	return nil
}
