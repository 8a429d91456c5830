package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cockroachdb/errors"
	"github.com/spf13/cobra"

	"catenary/audit/when"
	"catenary/chain"
	"catenary/es"
	"catenary/es/dispatch"
	"catenary/internal/deliveries"
	"catenary/internal/lineage"
	"catenary/internal/ndjson"
)

const importHelp = `Deliveries reads a delivery history: one JSON object a line, plain or packed by gzip, from a file or from standard input (-).

Environments become nodes, apps modules, and versions packages. Deploy and add assign, remove ends, and switches that
stop deployments become freezes. Each row's time is the effective time, its author the one it is recorded on behalf of.

A row is recorded once, however often the import is run: it can be killed at any moment and run again. A line that is no
row, and a row that the chain refuses, is reported with its number, and the rest goes on. The exit code is 0 only when
all went in.`

const (
	// importWait is how long an import waits until all it recorded can be read.
	importWait = time.Minute
	// importStep is how long one question about it is kept open.
	importStep = 2 * time.Second
	// commandTimeout is how long one command waits for its answer before it is sent again: longer than the writer's patience,
	// so that the writer's own word comes first.
	commandTimeout = dispatch.DefaultTimeout
)

// importConfig is what an import is told.
type importConfig struct {
	state     string
	stateTime time.Time
	source    string
	dryRun    bool
	strict    bool
	confirmed *int
	inFlight  int
	wait      time.Duration
	output    *format
}

func (a *app) importCommand() *cobra.Command {
	return group(&cobra.Command{Use: "import", Short: "Bring in a history from elsewhere", GroupID: groupWrite}, a.importDeliveriesCommand(), a.importLineageCommand())
}

func (a *app) importDeliveriesCommand() *cobra.Command {
	c := importConfig{inFlight: deliveries.DefaultInFlight}
	var confirmed int
	cmd := &cobra.Command{
		Use: "deliveries FILE|-", Short: "Bring in a history of deliveries", Long: importHelp, Args: takes("FILE"),
		Example: `  catenary import deliveries history.ndjson.gz --dry-run
  catenary import deliveries history.ndjson.gz --state before.json --state-time 2026-05-01T00:00:00Z
  my-exporter | catenary import deliveries - --source my-exporter`,
	}
	flags := cmd.Flags()
	flags.StringVar(&c.state, "state", "", "JSON `file` of what ran before the first row: {environment: {app: version}}")
	a.timeVar(flags, &c.stateTime, "state-time", "`time` that --state is true for: "+when.Notation)
	flags.StringVar(&c.source, "source", "", "`name` of the history; rows are told apart within it (default the file's name)")
	flags.BoolVar(&c.dryRun, "dry-run", false, "say what would be done, and do nothing")
	flags.BoolVar(&c.strict, "strict", false, "record nothing when a line is no row, and stop at the first row that is refused")
	flags.Var(amount(&confirmed, 0), "confirm-ended", "the exact `number` of assignments that an import ends, when it ends more than it begins")
	flags.Var(numberFlag[int]{&c.inFlight, 1, deliveries.MaxInFlight}, "in-flight", "how many commands may wait for an answer")
	addWait(flags, &c.wait, importWait, "`span` of time to wait until all of it can be read, such as 10m; false for none")
	c.output = formatFlag(cmd, "")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if flags.Changed("confirm-ended") {
			c.confirmed = &confirmed
		}
		if (c.state == "") != c.stateTime.IsZero() {
			return usagef("--state and --state-time go together: what ran, and when")
		}
		return a.importDeliveries(cmd.Context(), c, args[0])
	}
	return cmd
}

// importReport is an import's outcome as it is printed.
type importReport struct {
	deliveries.Summary
	// Seconds is how long the commands took.
	Seconds  float64              `json:"seconds"`
	Problems []deliveries.Problem `json:"problems"`
}

// importPlan is what an import would do, as it is printed.
type importPlan struct {
	deliveries.Plan
	Problems []deliveries.Problem `json:"problems"`
}

func (a *app) importDeliveries(ctx context.Context, c importConfig, file string) (err error) {
	source, err := ndjson.Open(file, a.Stdin)
	if err != nil {
		return err
	}
	defer func() { err = errors.CombineErrors(err, source.Close()) }()
	in := deliveries.Input{Name: c.source, Source: source}
	if c.state != "" {
		if in.State, err = readState(c); err != nil {
			return err
		}
	}
	bar := a.newProgressBar()
	defer bar.end()
	report := newProblemList(bar, deliveryProblem)
	plan, err := deliveries.Examine(in, c.strict, report.add)
	if err != nil {
		return err
	}
	unconfirmed := plan.Confirm(c.confirmed)
	if c.dryRun || unconfirmed != nil {
		if err := a.showPlan(*c.output, importPlan{Plan: plan, Problems: report.all()}); err != nil {
			return err
		}
	}
	switch {
	case unconfirmed != nil:
		return es.Refuse("confirm-ended", unconfirmed.Error(), fmt.Sprintf("if that is meant, add --confirm-ended %d", plan.Ends))
	case c.dryRun:
		return importEnd(nil, 0, plan.Broken)
	}
	return a.withBus(ctx, slog.New(slog.DiscardHandler), func(ctx context.Context, s *session) error {
		return a.runImport(ctx, s, c, in, plan, report)
	})
}

// readState reads the state file.
func readState(c importConfig) (*deliveries.State, error) {
	f, err := os.Open(c.state)
	if err != nil {
		return nil, errors.Wrap(err, "open the state file")
	}
	state, err := deliveries.ReadState(f, c.stateTime)
	return &state, errors.CombineErrors(err, f.Close())
}

// runImport sends what was planned, and says what became of it, however it ended.
func (a *app) runImport(ctx context.Context, s *session, c importConfig, in deliveries.Input, plan deliveries.Plan, report *problemList[deliveries.Problem]) error {
	pipeline, err := dispatch.NewPipeline(s.conn.Conn, commandTimeout)
	if err != nil {
		return err
	}
	begun := time.Now()
	summary, err := deliveries.Run(ctx, in, plan, deliveries.Config{
		Poster: pipeline, InFlight: c.inFlight, Strict: c.strict, Report: report.add, Progress: report.bar.show,
	})
	took := time.Since(begun)
	err = errors.CombineErrors(err, pipeline.Close())
	report.bar.end()
	if err == nil {
		a.awaitImported(ctx, s, summary.Sequence, c.wait)
	}
	if shown := a.showImport(*c.output, importReport{Summary: summary, Seconds: took.Seconds(), Problems: report.all()}, err == nil); shown != nil {
		return errors.CombineErrors(err, shown)
	}
	return importEnd(err, summary.Refused, summary.Broken)
}

// importEnd gives what an import ends with: why it was stopped, or that not all went in, if so.
func importEnd(err error, refused, broken int) error {
	switch {
	case errors.IsAny(err, deliveries.ErrStopped, lineage.ErrStopped):
		return errors.Mark(err, dispatch.ErrTimeout)
	case errors.Is(err, context.Canceled):
		return errors.WithHint(err, "run the same import again: it goes on where it was stopped")
	case err == nil && refused+broken > 0:
		return errors.Newf("not all went in: %s refused, %s broken", count(refused), count(broken))
	}
	return err
}

// awaitImported waits until what was recorded can be read, as [app.awaitShown] does for a single command.
func (a *app) awaitImported(ctx context.Context, s *session, sequence uint64, wait time.Duration) {
	if wait == 0 || sequence == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	for {
		err := s.shown(ctx, sequence, min(wait, importStep))
		switch {
		case err == nil:
			return
		case !errors.Is(err, chain.ErrBehind), ctx.Err() != nil:
			a.sayf("recorded up to event %d, but not all to be read yet: %s", sequence, printable(err.Error()))
			return
		}
	}
}

func (a *app) showPlan(f format, p importPlan) error {
	a.sayf("%s: %s rows%s%s", printable(p.Source), count(p.Rows), ofState(p.Pairs), between(p.From, p.To))
	var parts []string
	for _, c := range slices.Sorted(maps.Keys(p.Commands)) {
		parts = append(parts, c+" "+count(p.Commands[c]))
	}
	a.sayf("would send: %s", strings.Join(parts, ", "))
	a.sayf("would begin %s assignments and end %s; %s rows are broken, %s unclear", count(p.Begins), count(p.Ends), count(p.Broken), count(p.Unclear))
	return a.showData(f, p, []string{"SOURCE", "ROWS", "NODES", "MODULES", "BEGINS", "ENDS", "BROKEN", "UNCLEAR"}, p.Source,
		p.Rows, p.Nodes, p.Modules, p.Begins, p.Ends, p.Broken, p.Unclear)
}

func (a *app) showImport(f format, r importReport, whole bool) error {
	a.sayf("%s: %s rows%s%s in %.1f s", printable(r.Source), count(r.Rows), ofState(r.Pairs), between(r.From, r.To), r.Seconds)
	a.sayf("accepted %s, repeated %s, unchanged %s, refused %s, broken %s, unclear %s; %s nodes and modules registered",
		count(r.Accepted), count(r.Repeated), count(r.Unchanged), count(r.Refused), count(r.Broken), count(r.Unclear), count(r.Registered))
	switch {
	case !whole:
		a.sayf("it was not finished; what was accepted stays")
	case r.Fresh():
	case r.Rows+r.Pairs == 0:
		a.sayf("nothing has changed: there is no row in it")
	case r.Repeated+r.Unchanged == r.Rows+r.Pairs:
		a.sayf("nothing has changed: all of it was there before")
	default:
		a.sayf("nothing has changed")
	}
	return a.showData(f, r, []string{"SOURCE", "ROWS", "ACCEPTED", "REPEATED", "UNCHANGED", "REFUSED", "BROKEN", "UNCLEAR"}, r.Source,
		r.Rows, r.Accepted, r.Repeated, r.Unchanged, r.Refused, r.Broken, r.Unclear)
}

// showData prints what was asked for with -o, and nothing without it.
func (a *app) showData(f format, v any, columns []string, name string, numbers ...int) error {
	if f == "" {
		return nil
	}
	body, err := json.Marshal(v)
	if err != nil {
		return errors.Wrap(err, "encode the outcome")
	}
	return a.printOne(f, columns, line{name: name, json: body, cells: func() []string {
		cells := []string{name}
		for _, n := range numbers {
			cells = append(cells, strconv.Itoa(n))
		}
		return cells
	}})
}

func ofState(pairs int) string {
	if pairs == 0 {
		return ""
	}
	return " and " + count(pairs) + " of the state file"
}

func between(from, to time.Time) string {
	if from.IsZero() {
		return ""
	}
	return ", " + from.Format(time.DateOnly) + " to " + to.Format(time.DateOnly)
}

// count writes a number for people: 96,271.
func count(n int) string {
	digits := strconv.Itoa(n)
	var b strings.Builder
	for i, d := range digits {
		if i > 0 && (len(digits)-i)%3 == 0 {
			b.WriteByte(',')
		}
		b.WriteRune(d)
	}
	return b.String()
}
