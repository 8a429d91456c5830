package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"strings"

	"github.com/cockroachdb/errors"
	"github.com/spf13/cobra"

	"catenary/agent/logs"
	"catenary/es"
)

const logsHelp = `Logs shows what was said while modules were brought to a node: by try, oldest first.

It is kept for 31 days, as long as there is room; of one try 32 MiB and its end. What is cut is marked. What happened when is in the
record, which keeps everything: see catenary log.`

// logsFlags are what logs are picked by.
type logsFlags struct {
	rollout, step string
	follow        bool
}

func (a *app) logsCommand() *cobra.Command {
	var f logsFlags
	cmd := &cobra.Command{
		Use: "logs NODE [MODULE]", Short: "Show what was said while modules were brought to a node", Long: logsHelp, GroupID: groupRead, Args: cobra.RangeArgs(1, 2),
		Example: `  catenary logs n1
  catenary logs n1 web --rollout 0199a0c0-0000-7000-8000-000000000001
  catenary logs n1 web --follow`,
	}
	output := formatFlag(cmd, formatTable, formatTable, formatJSON)
	cmd.Flags().StringVar(&f.rollout, "rollout", "", "only what a rollout did, by `id`")
	cmd.Flags().StringVar(&f.step, "step", "", "only what a step did: its `key`, as in catenary get steps -o name")
	cmd.Flags().BoolVarP(&f.follow, "follow", "f", false, "go on with what comes, until ^C")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		q, err := f.question(args)
		if err != nil {
			return err
		}
		show := func(ctx context.Context, s *session) error {
			list := s.logs.Read(ctx, q)
			if f.follow {
				list = s.logs.Follow(ctx, q)
			}
			return a.showLogs(ctx, s, *output, list)
		}
		if f.follow {
			return a.withBus(cmd.Context(), slog.New(slog.DiscardHandler), show)
		}
		return a.read(cmd.Context(), show)
	}
	return cmd
}

// question makes a question of what was given.
func (f logsFlags) question(args []string) (logs.Question, error) {
	q := logs.Question{Node: args[0], Rollout: f.rollout}
	if len(args) > 1 {
		q.Module = args[1]
	}
	if f.step == "" {
		return q, nil
	}
	names, err := es.SplitKey(f.step)
	if err != nil || len(names) != 4 {
		return q, usagef("--step is %q: it is ROLLOUT.TIER.NODE.MODULE, as in catenary get steps -o name", f.step)
	}
	for _, given := range []struct {
		what, step string
		value      *string
	}{{"rollout", names[0], &q.Rollout}, {"node", names[2], &q.Node}, {"module", names[3], &q.Module}} {
		if *given.value != "" && *given.value != given.step {
			return q, usagef("--step is of %s %s, and %s is given", given.what, given.step, *given.value)
		}
		*given.value = given.step
	}
	return q, nil
}

// showLogs writes parts as they come: as text with a line above each span, or as one JSON value a line.
func (a *app) showLogs(ctx context.Context, s *session, f format, list iter.Seq2[logs.Part, error]) error {
	shown, open := "", false
	for p, err := range list {
		if ctx.Err() != nil && errors.Is(context.Cause(ctx), context.Canceled) {
			return nil // the follower has seen enough
		}
		if err != nil {
			return errors.Wrap(err, "read logs")
		}
		var text strings.Builder
		if f == formatJSON {
			body, err := json.Marshal(p)
			if err != nil {
				return errors.Wrap(err, "encode a part of a log")
			}
			text.Write(append(body, '\n'))
		} else {
			if p.ID != shown {
				if open {
					text.WriteByte('\n')
				}
				text.WriteString(spanTitle(p, s))
				shown, open = p.ID, false
			}
			open = writeLog(&text, p, open)
		}
		if _, err := io.WriteString(a.Stdout, text.String()); err != nil {
			return errors.Wrap(err, "write the output")
		}
	}
	if open {
		_, err := io.WriteString(a.Stdout, "\n")
		return errors.Wrap(err, "write the output")
	}
	return nil
}

// spanTitle is the line above a span.
func spanTitle(p logs.Part, s *session) string {
	title := fmt.Sprintf("== %s: %s %s on %s, told by event %d, attempt %d", showTime(p.At, s.zone), p.Deed, p.Module, p.Node, p.Source, p.Attempt)
	if p.Rollout != "" {
		title += ", of rollout " + p.Rollout
	}
	return printable(title) + "\n"
}

// writeLog writes the text of a part with a mark where something is cut, and says whether a line stays open.
func writeLog(to *strings.Builder, p logs.Part, open bool) bool {
	if p.Cut > 0 {
		if open {
			to.WriteByte('\n')
		}
		fmt.Fprintf(to, "[%d bytes are cut: of one try %d bytes are kept, of what comes faster than it is stored %d, and its end]\n", p.Cut, logs.SpanBytes, logs.WaitingBytes)
		open = false
	}
	for l := range strings.Lines(strings.ToValidUTF8(p.Text, "\uFFFD")) {
		text, whole := strings.CutSuffix(l, "\n")
		to.WriteString(printable(strings.TrimSuffix(text, "\r")))
		if whole {
			to.WriteByte('\n')
		}
		open = !whole
	}
	return open
}
