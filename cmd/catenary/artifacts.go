package main

import (
	"cmp"
	"context"
	"encoding/json"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"github.com/cockroachdb/errors"
	"github.com/spf13/cobra"

	"catenary/agent/artifacts"
	"catenary/agent/depot"
	"catenary/es"
)

const artifactsHelp = `Artifacts shows what is stored for agents to get, and removes what nothing needs any more.

An artifact is kept as long as a node is told to run it or a rollout that is not over names it, and for the window after a node was last
told to run it, after the end of a rollout that could be taken back to it, and after it was last published.`

func (a *app) artifactsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "artifacts", Short: "See and remove stored artifacts", Long: artifactsHelp, GroupID: groupRead,
		Example: `  catenary artifacts ls
  catenary artifacts show sha256:4f1c…
  catenary artifacts prune --dry-run`,
	}
	return group(cmd, a.artifactsListCommand(), a.artifactsShowCommand(), a.artifactsPruneCommand())
}

func storedLine(s depot.Stored, zone *time.Location) (line, error) {
	body, err := json.Marshal(s)
	return line{name: s.Digest, json: body, cells: func() []string {
		return []string{s.Digest, strconv.FormatInt(s.Bytes, 10), s.File, showTime(s.Stored, zone), showTime(s.Used, zone)}
	}}, errors.Wrap(err, "encode an artifact")
}

func (a *app) artifactsListCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "ls", Short: "List what is stored", Args: cobra.NoArgs}
	output := formatFlag(cmd, formatTable)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return a.read(cmd.Context(), func(ctx context.Context, s *session) error {
			p := a.newPrinter(*output, "ARTIFACT", "BYTES", "FILE", "STORED", "PUBLISHED")
			for stored, err := range s.depot.List(ctx) {
				if err != nil {
					return errors.Wrap(err, "list artifacts")
				}
				l, err := storedLine(stored, s.zone)
				if err == nil {
					err = p.add(l)
				}
				if err != nil {
					return err
				}
			}
			return p.end()
		})
	}
	return cmd
}

// windowFlag adds the window of verdicts.
func windowFlag(cmd *cobra.Command, window *time.Duration) {
	cmd.Flags().DurationVar(window, "window", depot.DefaultWindow, "`span` for which what nothing names any more is kept")
}

func checkWindow(window time.Duration) error {
	if window <= 0 {
		return usagef("--window is %s: give a span above zero", window)
	}
	return nil
}

func verdictColumns() []string { return []string{"ARTIFACT", "BYTES", "FILE", "KEPT", "WHY", "UNTIL"} }

func verdictLine(v depot.Verdict, zone *time.Location) (line, error) {
	body, err := json.Marshal(v)
	return line{name: v.Digest, json: body, cells: func() []string {
		why := v.Why
		if v.More > 0 {
			why += ", and " + strconv.Itoa(v.More) + " more"
		}
		until := ""
		if !v.Until.IsZero() {
			until = showTime(v.Until, zone)
		}
		return []string{v.Digest, strconv.FormatInt(v.Bytes, 10), v.File, map[bool]string{true: "yes", false: "no"}[v.Keep], why, until}
	}}, errors.Wrap(err, "encode a verdict")
}

func (a *app) artifactsShowCommand() *cobra.Command {
	var window time.Duration
	cmd := &cobra.Command{Use: "show DIGEST", Short: "Say what keeps an artifact", Args: takes("DIGEST")}
	output := formatFlag(cmd, formatTable)
	windowFlag(cmd, &window)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := checkWindow(window); err != nil {
			return err
		}
		return a.read(cmd.Context(), func(ctx context.Context, s *session) error {
			for v, err := range s.depot.Judge(ctx, args[0], window) {
				if err != nil {
					return errors.Wrapf(err, "artifact %s", args[0])
				}
				l, err := verdictLine(v, s.zone)
				if err != nil {
					return err
				}
				return a.printOne(*output, verdictColumns(), l)
			}
			return errors.Mark(errors.Newf("artifact %s: there is no verdict on it", args[0]), es.ErrNotFound)
		})
	}
	return cmd
}

func (a *app) artifactsPruneCommand() *cobra.Command {
	var window time.Duration
	var dryRun bool
	cmd := &cobra.Command{
		Use: "prune", Short: "Remove what nothing needs any more", Args: cobra.NoArgs,
		Long: "Prune removes the artifacts that are not kept, and uploads that nobody has gone on with for a day, and shows them. With --dry-run it\nonly shows the artifacts.",
	}
	output := formatFlag(cmd, formatTable)
	windowFlag(cmd, &window)
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "only show what would be removed")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := checkWindow(window); err != nil {
			return err
		}
		// No bound on the whole: each sign of life has a bound of its own.
		return a.withBus(cmd.Context(), slog.New(slog.DiscardHandler), func(ctx context.Context, s *session) error {
			p := a.newPrinter(*output, verdictColumns()...)
			add := func(v depot.Verdict) error {
				l, err := verdictLine(v, s.zone)
				if err != nil {
					return err
				}
				return p.add(l)
			}
			if dryRun {
				return prunable(ctx, s, window, add, p.end)
			}
			for gone, err := range s.depot.Prune(ctx, window) {
				if err != nil {
					return errors.CombineErrors(errors.Wrap(err, "remove artifacts"), p.end())
				}
				if gone.Upload != nil {
					a.sayf("removed the upload of %s that nobody has gone on with since %s", artifacts.Algorithm+uploadDigits(gone.Upload.Name), showTime(gone.Upload.Since, s.zone))
					continue
				}
				if err := add(*gone.Verdict); err != nil {
					return err
				}
			}
			return p.end()
		})
	}
	return cmd
}

// prunable shows what would be removed.
func prunable(ctx context.Context, s *session, window time.Duration, add func(depot.Verdict) error, end func() error) error {
	for v, err := range s.depot.Judge(ctx, "", window) {
		if err != nil {
			return errors.Wrap(err, "judge artifacts")
		}
		if v.Keep {
			continue
		}
		if err := add(v); err != nil {
			return err
		}
	}
	return end()
}

// uploadDigits are the digits of the digest that an upload is for.
func uploadDigits(name string) string {
	digits, _, _ := strings.Cut(name, "-")
	return cmp.Or(digits, name)
}
