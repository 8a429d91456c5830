package main

import (
	"context"
	"log/slog"
	"time"

	"github.com/cockroachdb/errors"
	"github.com/spf13/cobra"

	"catenary/commands"
	"catenary/es/dispatch"
	"catenary/internal/lineage"
)

const importLineageHelp = `Lineage reads where versions come from: which modules each commit of a repository touches, and at which commit each version
was released. PATH is a folder of files called REPOSITORY-commits.ndjson and REPOSITORY-releases.ndjson, or one of them; they
may be packed by gzip.

Commits become commits, and each version a build that published a package. The build's manifest names the versions that were
released with it and the commits that came with it: catenary trace REPOSITORY/MODULE@VERSION lists them.

A row is recorded once, however often the import is run. The exit code is 0 only when all went in.`

// lineageConfig is what an import of lineage is told.
type lineageConfig struct {
	dryRun   bool
	inFlight int
	wait     time.Duration
	output   *format
}

func (a *app) importLineageCommand() *cobra.Command {
	c := lineageConfig{inFlight: commands.DefaultInFlight}
	cmd := &cobra.Command{
		Use: "lineage PATH", Short: "Bring in the commits and versions of repositories", Long: importLineageHelp, Args: takes("PATH"),
		Example: `  catenary import lineage ./lineage --dry-run
  catenary import lineage ./lineage
  catenary trace shop/web@v1.20.0`,
	}
	flags := cmd.Flags()
	flags.BoolVar(&c.dryRun, "dry-run", false, "say what would be done, and do nothing")
	flags.Var(numberFlag[int]{&c.inFlight, 1, mostInFlight}, "in-flight", "how many commands may wait for an answer")
	addWait(flags, &c.wait, importWait, "`span` of time to wait until all of it can be read, such as 10m; false for none")
	c.output = formatFlag(cmd, "")
	cmd.RunE = func(cmd *cobra.Command, args []string) error { return a.importLineage(cmd.Context(), c, args[0]) }
	return cmd
}

// mostInFlight bounds the commands that wait: each has a goroutine here, and a place in the writer's queue.
const mostInFlight = 4096

// lineageReport is an import's outcome as it is printed.
type lineageReport struct {
	lineage.Summary
	// Seconds is how long the commands took.
	Seconds  float64           `json:"seconds"`
	Problems []lineage.Problem `json:"problems"`
}

func (a *app) importLineage(ctx context.Context, c lineageConfig, path string) error {
	repositories, err := lineage.Open(path)
	if err != nil {
		return err
	}
	bar := a.newProgressBar()
	defer bar.end()
	report := newProblemList(bar, lineageProblem)
	plan, err := lineage.Examine(repositories, report.add)
	if err != nil {
		return err
	}
	a.sayf("%s repositories with %s commits and %s versions of %s modules%s", count(plan.Repositories), count(plan.Commits),
		count(plan.Releases), count(plan.Modules), between(plan.From, plan.To))
	if c.dryRun {
		a.sayf("would send %s commands; %s rows are broken", count(plan.Commands), count(plan.Broken))
		if err := a.showLineage(*c.output, lineageReport{Summary: lineage.Summary{Plan: plan}, Problems: report.all()}); err != nil {
			return err
		}
		return importEnd(nil, 0, plan.Broken)
	}
	return a.withBus(ctx, slog.New(slog.DiscardHandler), func(ctx context.Context, s *session) error {
		return a.runLineage(ctx, s, c, repositories, plan, report)
	})
}

// lineagePatience is how long a command is sent again when it is not answered: long enough for a server to be restarted.
const lineagePatience = 2 * time.Minute

// runLineage sends what was planned, and says what became of it, however it ended.
func (a *app) runLineage(ctx context.Context, s *session, c lineageConfig, repositories []lineage.Repository, plan lineage.Plan, report *problemList[lineage.Problem]) error {
	pipeline, err := dispatch.NewPipeline(s.conn.Conn, commandTimeout)
	if err != nil {
		return err
	}
	begun := time.Now()
	summary, err := lineage.Run(ctx, repositories, plan, lineage.Config{
		Sender: commands.NewClient(pipeline).Within(lineagePatience), InFlight: c.inFlight, Report: report.add, Progress: report.bar.show,
	})
	took := time.Since(begun)
	err = errors.CombineErrors(err, pipeline.Close())
	report.bar.end()
	if err == nil {
		a.awaitImported(ctx, s, summary.Sequence, c.wait)
	}
	a.sayf("accepted %s, repeated %s, unchanged %s, refused %s commands, and %s rows are broken; it took %.1f s",
		count(summary.Accepted), count(summary.Repeated), count(summary.Unchanged), count(summary.Refused), count(summary.Broken), took.Seconds())
	if err == nil && summary.Accepted == 0 && summary.Whole() {
		a.sayf("nothing has changed: all of it was there before")
	}
	if shown := a.showLineage(*c.output, lineageReport{Summary: summary, Seconds: took.Seconds(), Problems: report.all()}); shown != nil {
		return errors.CombineErrors(err, shown)
	}
	return importEnd(err, summary.Refused, summary.Broken)
}

func (a *app) showLineage(f format, r lineageReport) error {
	return a.showData(f, r, []string{"IMPORT", "COMMITS", "RELEASES", "MODULES", "ACCEPTED", "REPEATED", "UNCHANGED", "REFUSED", "BROKEN"}, "lineage",
		r.Commits, r.Releases, r.Modules, r.Accepted, r.Repeated, r.Unchanged, r.Refused, r.Broken)
}
