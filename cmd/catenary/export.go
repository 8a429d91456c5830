package main

import (
	"context"
	"io"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/cockroachdb/errors"
	"github.com/spf13/cobra"

	"catenary/audit"
	"catenary/audit/export"
	"catenary/es"
)

const exportHelp = `Export writes all there is, oldest first, for other programs.

  events       every event; in ndjson with all that its hash covers, so that whoever has the lines can check the chain
  assignments  what each event said of an assignment, and from when to when that was so as far as is known now

Rows go out as they come, so that an export of any length needs little memory. With -o the file is there whole or not at all: what
stood under its name stands until then. People stand in an export as opaque ids.
` + questionHelp

// exportFlags are what an export is told.
type exportFlags struct {
	format       string
	since, until time.Time
	file         string
}

func (a *app) exportCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "export", Short: "Write all there is, for other programs", Long: exportHelp, GroupID: groupAsk,
		Example: `  catenary export events -o events.ndjson
  catenary export events --since yesterday | jq .type
  catenary export assignments --format parquet -o assignments.parquet`,
	}
	return group(cmd, a.exportOfCommand(audit.ExportEvents, "Write every event", writeEvents),
		a.exportOfCommand(audit.ExportAssignments, "Write what was said of assignments", writeAssignments))
}

func (a *app) exportOfCommand(what, short string, write exporter) *cobra.Command {
	var e exportFlags
	cmd := &cobra.Command{Use: what, Short: short, Args: cobra.NoArgs}
	flags := cmd.Flags()
	flags.StringVar(&e.format, "format", string(export.NDJSON), "how it is written: "+strings.Join(export.Formats(), ", "))
	a.timeVar(flags, &e.since, "since", "only recorded at this `time` or later")
	a.timeVar(flags, &e.until, "until", "only recorded before this `time`")
	flags.StringVarP(&e.file, "output", "o", "", "`file` to write (default standard output)")
	if err := cmd.RegisterFlagCompletionFunc("format", cobra.FixedCompletions(export.Formats(), cobra.ShellCompDirectiveNoFileComp)); err != nil {
		panic(err) // the flag stands a few lines above
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		switch {
		case !slices.Contains(export.Formats(), e.format):
			return usagef("--format is %q: it is one of %s", e.format, strings.Join(export.Formats(), ", "))
		case e.format == string(export.Parquet) && e.file == "" && isTerminal(a.Stdout):
			return usagef("parquet is not for reading: give a file with -o, or send it on to another program")
		}
		// No bound on the whole: a long export takes its time, and each of its pieces has a bound of its own.
		return a.withBus(cmd.Context(), slog.New(slog.DiscardHandler), func(ctx context.Context, s *session) error {
			return a.exportTo(e.file, func(out io.Writer) error {
				rows, err := write(ctx, s, out, e, what)
				if err == nil {
					a.sayf("%s %s", count(rows), what)
				}
				return err
			})
		})
	}
	return cmd
}

// exportTo lets a file be written, whole or not at all; without one standard output.
func (a *app) exportTo(path string, write func(io.Writer) error) (err error) {
	if path == "" {
		return write(a.Stdout)
	}
	f, err := export.Create(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.CombineErrors(err, f.Discard()) }()
	if err := write(f); err != nil {
		return err
	}
	return f.Commit()
}

// exporter writes an export, and gives the number of its rows.
type exporter func(ctx context.Context, s *session, out io.Writer, e exportFlags, what string) (rows int, err error)

func writeEvents(ctx context.Context, s *session, out io.Writer, e exportFlags, what string) (int, error) {
	w, err := export.Events(out, export.Format(e.format))
	if err != nil {
		return 0, err
	}
	var last es.Head
	return writePages(ctx, s, w, e, what, func(page audit.ExportPage) ([]export.Event, error) {
		rows := make([]export.Event, len(page.Events))
		for i, event := range page.Events {
			if event.Sequence != last.Sequence+1 {
				if last.Hash, err = s.hashBefore(ctx, event.Sequence); err != nil {
					return nil, errors.Wrapf(err, "the hash before event %d", event.Sequence)
				}
			}
			rows[i] = export.Event{ExportedEvent: event, Previous: last.Hash}
			last.Sequence = event.Sequence
			if last.Hash, err = es.ParseHash(event.Hash); err != nil {
				return nil, errors.Wrapf(err, "event %d", event.Sequence)
			}
		}
		return rows, nil
	})
}

func writeAssignments(ctx context.Context, s *session, out io.Writer, e exportFlags, what string) (int, error) {
	w, err := export.Assignments(out, export.Format(e.format))
	if err != nil {
		return 0, err
	}
	return writePages(ctx, s, w, e, what, func(page audit.ExportPage) ([]audit.ExportedAssignment, error) { return page.Assignments, nil })
}

// writePages asks for one piece after another and writes it.
func writePages[T any](ctx context.Context, s *session, w export.Writer[T], e exportFlags, what string, rows func(audit.ExportPage) ([]T, error)) (int, error) {
	q := audit.ExportQuestion{What: what, Since: e.since, Until: e.until}
	written := 0
	for {
		page, err := s.queries.Export(ctx, q)
		if err != nil {
			return written, err
		}
		list, err := rows(page)
		if err != nil {
			return written, err
		}
		if err := w.Write(list); err != nil {
			return written, err
		}
		written += len(list)
		if q.Cursor = page.Next; q.Cursor == "" {
			return written, w.Close()
		}
	}
}

// hashBefore gives the hash of the event before one: zeros for the first. An export that begins in the middle needs it.
func (s *session) hashBefore(ctx context.Context, sequence uint64) (es.Hash, error) {
	if sequence <= 1 {
		return es.Hash{}, nil
	}
	before, err := s.queries.Log(ctx, audit.LogQuestion{Before: sequence, Limit: 1})
	if err != nil {
		return es.Hash{}, err
	}
	if len(before.Items) == 0 {
		return es.Hash{}, errors.Mark(errors.New("there is none"), es.ErrNotFound)
	}
	// Clocks may have been set back, so it is looked for among those that were recorded from its time on.
	q := audit.ExportQuestion{What: audit.ExportEvents, Since: before.Items[0].Recorded}
	for {
		page, err := s.queries.Export(ctx, q)
		if err != nil {
			return es.Hash{}, err
		}
		for _, event := range page.Events {
			if event.Sequence == before.Items[0].Sequence {
				return es.ParseHash(event.Hash)
			}
		}
		if q.Cursor = page.Next; q.Cursor == "" {
			return es.Hash{}, errors.Mark(errors.Newf("event %d is not to be had", before.Items[0].Sequence), es.ErrNotFound)
		}
	}
}
