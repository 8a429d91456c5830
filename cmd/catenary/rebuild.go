package main

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"github.com/cockroachdb/errors"
	"github.com/spf13/cobra"

	"catenary/audit"
	"catenary/es/project"
	"catenary/internal/topology"
)

const repairHelp = `Repair mends the buckets that people read.

The projector folds all events afresh, compares every value of the bucket, and writes what differs again, at the bucket's end.
Nothing is removed. Each value that is written again says so, when, and which one it stands for: verify counts them, and history
leaves out what they stand for. The projector goes on meanwhile. VIEW is chain-nodes, or nodes for short; without one all are
repaired.

What can't be mended so (a value is missing, or an earlier one of a key was changed) is told, with exit code 1; then
"catenary rebuild VIEW" builds the bucket anew.`

const rebuildHelp = `Rebuild makes a bucket what a fresh fold of all events gives, whatever is wrong with it.

It mends in place what can be mended so (see repair). Where that is not enough the projector fills a new bucket beside the present
one, and when it has come as far, readers are sent there: they see the old values or the new ones, never none. The old bucket stays
as it was and can be read under its name. If the projector ends meanwhile, the old bucket goes on, and the next start goes on
building. --anew builds a new bucket in any case.`

// rebuilds is all that repair or rebuild has done.
type rebuilds struct {
	OK    bool              `json:"ok"`
	Views []project.Rebuilt `json:"views"`
}

var errNotMended = errors.New("not all could be mended in place")

func (a *app) repairCommand() *cobra.Command {
	var o project.RebuildOptions
	cmd := &cobra.Command{
		Use: "repair [VIEW...]", Short: "Mend what differs from a fresh fold", Long: repairHelp, GroupID: groupRun,
		Example: "  catenary repair --dry-run\n  catenary repair nodes", ValidArgsFunction: completeViews,
	}
	output := formatFlag(cmd, formatTable)
	cmd.Flags().BoolVar(&o.DryRun, "dry-run", false, "only say what would be done; exit code 1 if that is anything")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		o.InPlace = true
		views, err := viewsOf(args)
		if err != nil {
			return err
		}
		if len(views) == 0 {
			views = topology.ChainBuckets()
		}
		return a.rebuildViews(cmd.Context(), *output, views, o)
	}
	return cmd
}

func (a *app) rebuildCommand() *cobra.Command {
	var o project.RebuildOptions
	var all bool
	cmd := &cobra.Command{
		Use: "rebuild VIEW... | --all", Short: "Build a bucket anew while it is read", Long: rebuildHelp, GroupID: groupRun,
		Example: "  catenary rebuild nodes\n  catenary rebuild --all --dry-run", ValidArgsFunction: completeViews,
	}
	output := formatFlag(cmd, formatTable)
	flags := cmd.Flags()
	flags.BoolVar(&all, "all", false, "every view")
	flags.BoolVar(&o.Anew, "anew", false, "build a new bucket also where mending would be enough")
	flags.BoolVar(&o.DryRun, "dry-run", false, "only say what would be done; exit code 1 if that is anything")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		views, err := viewsOf(args)
		switch {
		case err != nil:
			return err
		case all == (len(views) > 0):
			return usagef("name the views to rebuild, or give --all: %s", strings.Join(topology.ChainBuckets(), ", "))
		case all:
			views = topology.ChainBuckets()
		}
		return a.rebuildViews(cmd.Context(), *output, views, o)
	}
	return cmd
}

// viewsOf gives the views that are named.
func viewsOf(args []string) ([]string, error) {
	views := make([]string, len(args))
	for i, arg := range args {
		var err error
		if views[i], err = viewName(arg); err != nil {
			return nil, err
		}
	}
	return views, nil
}

// rebuildViews has the projector do one view after another, and shows what came of each.
func (a *app) rebuildViews(ctx context.Context, f format, views []string, o project.RebuildOptions) error {
	return a.withBus(ctx, slog.New(slog.DiscardHandler), func(ctx context.Context, s *session) error {
		done := rebuilds{OK: true}
		var failure error
		for _, view := range views {
			progress := &workTalk{app: a, view: view}
			result, err := s.queries.Rebuild(ctx, audit.RebuildQuestion{View: view, RebuildOptions: o}, progress.show)
			if err != nil {
				// What was done is shown all the same.
				failure, done.OK = err, false
				break
			}
			done.Views = append(done.Views, result)
			done.OK = done.OK && result.OK()
		}
		if err := a.showRebuilds(f, done); err != nil || failure != nil {
			return errors.CombineErrors(failure, err)
		}
		if !done.OK {
			if o.DryRun {
				return errors.New("there is something to mend")
			}
			return errors.WithHint(errNotMended, "catenary rebuild VIEW builds the bucket anew")
		}
		return nil
	})
}

func (a *app) showRebuilds(f format, done rebuilds) error {
	if f == formatJSON || f == formatYAML {
		body, err := encodeJSON(done)
		if err != nil {
			return errors.Wrap(err, "encode what was done")
		}
		return a.printOne(f, nil, line{name: "report", json: body})
	}
	p := a.newPrinter(f, "VIEW", "KEY", "EVENT", "INSTEAD OF", "NOW AT", "WHAT")
	for _, r := range done.Views {
		for _, l := range mendingLines(r) {
			if err := p.add(l); err != nil {
				return err
			}
		}
	}
	return p.end()
}

// mendingLines shows what was done to a view.
func mendingLines(r project.Rebuilt) []line {
	var lines []line
	add := func(name string, cells ...string) {
		lines = append(lines, line{name: name, cells: func() []string { return append([]string{r.View}, cells...) }})
	}
	for _, m := range r.Mends {
		what := "mended"
		if m.Revision == 0 {
			what = "to be mended"
		}
		add(r.View+" "+m.Key, m.Key, number(m.Event), number(m.Replaces), number(m.Revision), what+"; "+m.Detail)
	}
	switch {
	case r.Generation != nil:
		add(r.View, "", "", "", "", fmt.Sprintf("built anew as %s (%s values): %s", r.Bucket, strconv.FormatUint(r.Values, 10), r.Anew))
	case r.Anew != "":
		add(r.View, "", "", "", "", "has to be built anew: "+r.Anew)
	case len(r.Mends) == 0:
		add(r.View, "", "", "", "", fmt.Sprintf("equals the fold of %d events", r.Events))
	}
	return lines
}

// talkInterval is how often progress is told.
const talkInterval = time.Second

// workTalk tells a person how far a rebuild is.
type workTalk struct {
	app   *app
	view  string
	told  time.Time
	last  project.WorkProgress
	since time.Time // when last was
}

func (t *workTalk) show(p project.WorkProgress) {
	now := t.app.Now()
	if p.Stage == t.last.Stage && now.Sub(t.told) < talkInterval {
		return
	}
	rate := ""
	if took := now.Sub(t.since).Seconds(); p.Stage == t.last.Stage && took > 0 && p.Events > t.last.Events {
		rate = fmt.Sprintf(", %s a second", count(int(float64(p.Events-t.last.Events)/took)))
	}
	far := "" // a stage that counts no events says its name only
	if p.Tail > 0 {
		far = fmt.Sprintf(", %s of %s events (%d %%)", count(int(p.Events)), count(int(p.Tail)), min(p.Events, p.Tail)*100/p.Tail)
	}
	t.app.sayf("%s", t.app.paint(dim, fmt.Sprintf("%s: %s%s%s", t.view, p.Stage, far, rate)))
	t.told, t.since, t.last = now, now, p
}
