package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/cockroachdb/errors"
	"github.com/spf13/cobra"

	"catenary/audit"
	"catenary/es"
	"catenary/es/natskv"
	"catenary/es/project"
	"catenary/internal/topology"
)

const projectionsHelp = `Projections shows the views that make the buckets out of the events, and deals with those that do not go on.

A VIEW is a bucket's name, with or without "chain-", or audit-store, which has a file instead of a bucket. It is running, catching-up, waiting (it can't go on at the moment and tries
again), paused, or stopped (at an event that it can't fold, or because its bucket is not what it should be). LAG is the age of the
oldest event that is not in the bucket; COPY is how far the copy is that you read.

When no projector answers, the copies and the event stream themselves tell how far behind the views are at most.`

// projectionsPatience is how long the projector may take to answer. It answers from memory, within milliseconds.
const projectionsPatience = 4 * time.Second

// shownView is a view as the tool shows it.
type shownView struct {
	project.ViewStatus
	Copy *copyStatus `json:"copy,omitempty"`
}

// copyStatus tells how far the copy of a bucket is that is read here.
type copyStatus struct {
	// Revision is its last value, Event the event of that.
	Revision uint64 `json:"revision"`
	Event    uint64 `json:"event"`
	// Problem says why the copy can't be looked at.
	Problem string `json:"problem,omitempty"`
}

// stateUnknown is what a view is doing when no projector answers.
const stateUnknown project.State = "no-answer"

func (a *app) projectionsCommand() *cobra.Command {
	return group(&cobra.Command{
		Use: "projections", Aliases: []string{"projection"}, Short: "See and steer the views that make the buckets", Long: projectionsHelp, GroupID: groupRead,
		Example: `  catenary projections ls
  catenary projections show builds
  catenary projections skip builds --event 4711 --reason "recorded by mistake"
  catenary projections pause builds --reason "the disk is moved"
  catenary projections resume builds`,
	}, a.projectionsListCommand(), a.projectionsShowCommand(), a.pauseCommand(), a.resumeCommand(), a.skipCommand())
}

func (a *app) projectionsListCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "ls", Short: "Show how far all views are", Args: cobra.NoArgs}
	output := formatFlag(cmd, formatTable)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return a.read(cmd.Context(), func(ctx context.Context, s *session) error {
			views, unknown, failure := s.views(ctx)
			p := a.newPrinter(*output, "VIEW", "STATE", "EVENT", "BEHIND", "LAG", "RATE", "REVISION", "COPY", "FOLD", "POLICY", "PARKED", "SKIPPED", "REASON")
			for _, v := range views {
				l, err := v.line()
				if err == nil {
					err = p.add(l)
				}
				if err != nil {
					return err
				}
			}
			err := p.end()
			for _, u := range unknown {
				a.sayf("events of a newer program: %d of type %s, from event %d to %d; catenary log shows them raw", u.Events, u.Type, u.First, u.Last)
			}
			return errors.CombineErrors(failure, err)
		})
	}
	return cmd
}

func (a *app) projectionsShowCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "show VIEW", Short: "Show all about a view: what it has skipped, parked and met", Args: takes("VIEW"), ValidArgsFunction: completeSteered,
	}
	output := formatFlag(cmd, formatTable)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		name, err := steeredName(args[0])
		if err != nil {
			return err
		}
		return a.read(cmd.Context(), func(ctx context.Context, s *session) error {
			views, _, failure := s.views(ctx)
			for _, v := range views {
				if v.View == name {
					return errors.CombineErrors(failure, a.showView(s, *output, v))
				}
			}
			return errors.CombineErrors(failure, errors.Mark(errors.Newf("the projector has no view %s: is it an older program?", name), es.ErrNotFound))
		})
	}
	return cmd
}

// views gives what the views are doing, and how far their copies are. When no projector answers it gives what can be told
// without, beside the error. It also gives the types of events that the projector does not know.
func (s *session) views(ctx context.Context) ([]shownView, []project.UnknownType, error) {
	asking, cancel := context.WithTimeout(ctx, projectionsPatience)
	status, failure := s.queries.Projections(asking)
	cancel()
	if failure != nil && !errors.IsAny(failure, audit.ErrNoService, audit.ErrTimeout) {
		return nil, nil, failure
	}
	if failure == nil && status.Reason != "" {
		failure = errors.Newf("no view goes on: %s", status.Reason)
	}
	var shown []shownView
	if len(status.Views) == 0 {
		for _, name := range topology.ChainBuckets() {
			status.Views = append(status.Views, project.ViewStatus{View: name, State: stateUnknown})
		}
	}
	for _, v := range status.Views {
		one := shownView{ViewStatus: v}
		if v.View != audit.StoreView { // it has no bucket, so nobody has a copy
			one.Copy = s.copyOf(ctx, v.View, v.Position.Bucket)
		}
		shown = append(shown, one)
	}
	if errors.IsAny(failure, audit.ErrNoService, audit.ErrTimeout) {
		return shown, nil, s.withoutProjector(ctx, shown, failure)
	}
	return shown, status.Unknown, failure
}

// copyOf tells how far the copy of a view's bucket is: of the generation that is named, or else of the one that is read.
func (s *session) copyOf(ctx context.Context, view, bucket string) *copyStatus {
	var err error
	if bucket == "" {
		bucket, err = s.reader.Bucket(ctx, view)
	}
	var b *natskv.Bucket
	if err == nil {
		b, err = s.open(ctx, bucket)
	}
	if err != nil {
		return &copyStatus{Problem: err.Error()}
	}
	e, err := b.Tail(ctx)
	switch {
	case errors.Is(err, es.ErrNotFound):
		return &copyStatus{}
	case err != nil:
		return &copyStatus{Revision: e.Revision, Problem: err.Error()}
	}
	return &copyStatus{Revision: e.Revision, Event: e.Meta.Position.Sequence}
}

// withoutProjector fills in how far views are from what their copies hold, and adds to the error how far that is behind.
func (s *session) withoutProjector(ctx context.Context, shown []shownView, failure error) error {
	asking, cancel := context.WithTimeout(ctx, projectionsPatience)
	defer cancel()
	tail, err := s.queries.Tail(asking)
	var newest uint64
	for i := range shown {
		v := &shown[i]
		v.Position = project.Progress{Event: v.Copy.Event, Revision: v.Copy.Revision}
		newest = max(newest, v.Copy.Event)
		if err == nil && tail.Sequence > v.Copy.Event {
			v.Behind = tail.Sequence - v.Copy.Event
		}
	}
	if err != nil {
		return errors.WithSecondaryError(errors.WithHint(failure, "no writer tells where the event stream ends either"), err)
	}
	return errors.WithHintf(failure, "the newest value of all copies is of event %d and the stream ends at event %d: the projector is behind by at most %d",
		newest, tail.Sequence, tail.Sequence-min(newest, tail.Sequence))
}

func (v shownView) line() (line, error) {
	body, err := encodeJSON(v)
	if err != nil {
		return line{}, errors.Wrapf(err, "encode view %s", v.View)
	}
	l := line{name: v.View, json: body, cells: func() []string {
		policy, fold := string(v.Policy), strconv.Itoa(v.Fold)
		if v.State == stateUnknown {
			policy, fold = "", ""
		}
		return []string{
			v.View, string(v.State), number(v.Position.Event), number(v.Behind), v.lag(), v.rate(), number(v.Position.Revision), v.copied(), fold, policy,
			number(uint64(v.ParkedCount)), number(uint64(v.SkippedCount)), v.why(),
		}
	}}
	switch v.State {
	case project.StateStopped, stateUnknown:
		l.shade = red
	case project.StateWaiting, project.StatePaused, project.StateCatchingUp:
		l.shade = yellow
	case project.StateRunning:
		if v.ParkedCount > 0 {
			l.shade = yellow
		}
	}
	return l, nil
}

func (v shownView) lag() string {
	if v.Behind == 0 || v.State == stateUnknown {
		return ""
	}
	lag := time.Duration(v.LagSeconds * float64(time.Second))
	if lag < time.Minute {
		return lag.Round(time.Millisecond).String()
	}
	return lag.Round(time.Second).String()
}

func (v shownView) rate() string {
	if v.EventsPerSecond == 0 {
		return ""
	}
	return fmt.Sprintf("%.0f/s", v.EventsPerSecond)
}

func (v shownView) copied() string {
	switch {
	case v.Copy == nil:
		return ""
	case v.Copy.Problem != "":
		return "?"
	case v.Copy.Revision < v.Position.Revision:
		return fmt.Sprintf("%d (%d behind)", v.Copy.Revision, v.Position.Revision-v.Copy.Revision)
	}
	return number(v.Copy.Revision)
}

// problem says why the copy can't be looked at.
func (v shownView) problem() string {
	if v.Copy == nil {
		return ""
	}
	return v.Copy.Problem
}

// why says in a line why the view does not go on.
func (v shownView) why() string {
	if v.Paused != nil {
		return v.Paused.Reason
	}
	return v.Reason
}

// showView shows a view with all that is listed about it.
func (a *app) showView(s *session, f format, v shownView) error {
	l, err := v.line()
	if err != nil || f != formatTable {
		return errors.CombineErrors(err, a.printOne(f, nil, l))
	}
	p := a.newPrinter(f, "VIEW", v.View)
	for _, row := range [][2]string{
		{"state", string(v.State)},
		{"reason", v.why()},
		{"stopped at event", strings.TrimSpace(number(v.At) + " " + v.Type)},
		{"since", showTime(v.Since, s.zone)},
		{"paused by", s.decided(v.Paused)},
		{"passed event", number(v.Position.Event)},
		{"bucket", v.Position.Bucket},
		{"bucket revision", number(v.Position.Revision)},
		{"copy revision", v.copied()},
		{"copy's problem", v.problem()},
		{"events behind", number(v.Behind)},
		{"lag", v.lag()},
		{"events a second", v.rate()},
		{"fold version", number(uint64(v.Fold))},
		{"generation", number(uint64(v.Generation))},
		{"what can't be folded", map[project.Policy]string{project.PolicyStop: "stops the view", project.PolicyPark: "is parked"}[v.Policy]},
	} {
		if row[1] == "" {
			continue
		}
		if err := p.add(line{cells: func() []string { return row[:] }}); err != nil {
			return err
		}
	}
	if err := p.end(); err != nil {
		return err
	}
	return a.showLists(s, v)
}

func (s *session) decided(d *project.Decision) string {
	if d == nil {
		return ""
	}
	return fmt.Sprintf("%s, %s (event %d)", s.names(d.By), showTime(d.At, s.zone), d.Order)
}

// showLists shows what a view has parked, skipped and met.
func (a *app) showLists(s *session, v shownView) error {
	var parked, skipped, unknown [][]string
	for _, p := range v.Parked {
		why := p.Why
		if p.Said != "" {
			why = p.Said
		}
		parked = append(parked, []string{p.Instance, number(p.Event), p.Type, number(p.Behind), why})
	}
	for _, k := range v.Skipped {
		skipped = append(skipped, []string{number(k.Event), k.Reason, s.names(k.By), showTime(k.At, s.zone)})
	}
	for _, u := range v.Unknown {
		unknown = append(unknown, []string{u.Type, number(u.Events), number(u.First), number(u.Last)})
	}
	for _, list := range []struct {
		columns []string
		rows    [][]string
		total   int
	}{
		{[]string{"PARKED", "AT EVENT", "TYPE", "BEHIND IT", "WHY"}, parked, v.ParkedCount},
		{[]string{"SKIPPED EVENT", "WHY", "BY", "WHEN"}, skipped, v.SkippedCount},
		{[]string{"UNKNOWN TYPE", "EVENTS", "FIRST", "LAST"}, unknown, len(unknown)},
	} {
		if len(list.rows) == 0 {
			continue
		}
		if _, err := fmt.Fprintln(a.Stdout); err != nil {
			return errors.Wrap(err, "write the output")
		}
		p := a.newPrinter(formatTable, list.columns...)
		for _, row := range list.rows {
			if err := p.add(line{cells: func() []string { return row }}); err != nil {
				return err
			}
		}
		if err := p.end(); err != nil {
			return err
		}
		if more := list.total - len(list.rows); more > 0 {
			a.sayf("and %d more", more)
		}
	}
	return nil
}

// steeredName gives the name of what people see and steer: a view, or the audit store.
func steeredName(arg string) (string, error) {
	if arg == audit.StoreView {
		return arg, nil
	}
	return viewName(arg, audit.StoreView)
}

func completeSteered(cmd *cobra.Command, args []string, toComplete string) ([]string, cobra.ShellCompDirective) {
	names, directive := completeViews(cmd, args, toComplete)
	if len(args) == 0 {
		names = append(names, audit.StoreView)
	}
	return names, directive
}

// viewName gives a view's name, which may be given without the prefix that all of them share. The error names others beside the views.
func viewName(arg string, others ...string) (string, error) {
	var short []string
	for _, name := range topology.ChainBuckets() {
		if arg == name || "chain-"+arg == name {
			return name, nil
		}
		short = append(short, strings.TrimPrefix(name, "chain-"))
	}
	return "", usagef("there is no view %q: the views are %s", arg, strings.Join(append(short, others...), ", "))
}

func completeViews(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var short []string
	for _, name := range topology.ChainBuckets() {
		short = append(short, strings.TrimPrefix(name, "chain-"))
	}
	return short, cobra.ShellCompDirectiveNoFileComp
}

// encodeJSON gives JSON without the escapes that only web pages need.
func encodeJSON(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}
