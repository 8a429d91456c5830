package main

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/cockroachdb/errors"
	"github.com/spf13/cobra"

	"catenary/audit/when"
	"catenary/chain"
	"catenary/es"
)

const getHelp = `Get shows the records as they stand.

With a plural it lists them: those that stand, and with --all those that ended too. A KEY is a name, NAME@VERSION for what
was published, or a key as it is stored (n1.web). With a singular it shows one record, also one that ended, and with --as-of
as it was at that time.

When what is shown, or not found, may be out of date, because a view has stopped or is behind, a message on standard error says so,
and the exit code is 7. --at-least EVENT waits first until the event can be read.`

func (a *app) getCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "get", Short: "Show records as they stand, or as they stood", Long: getHelp, GroupID: groupRead,
		Example: `  catenary get assignments --node n1
  catenary get assignment n1 web --as-of 2026-05-01T12:00:00Z
  catenary get published shop@1.20 -o yaml`,
	}
	var subs []*cobra.Command
	for _, k := range kinds() {
		subs = append(subs, a.listCommand(k), a.getOneCommand(k))
	}
	return group(cmd, subs...)
}

func (a *app) listCommand(k kind) *cobra.Command {
	var q chain.Query
	cmd := &cobra.Command{
		Use: k.plural + " [KEY...]", Short: "List " + k.plural + ": " + k.about, ValidArgsFunction: a.completeKeys(k),
	}
	output := formatFlag(cmd, formatTable)
	atLeast := atLeastFlag(cmd)
	flags := cmd.Flags()
	flags.StringVar(&q.Node, "node", "", "only those of this `node`")
	flags.StringVar(&q.Module, "module", "", "only those of this `module`")
	flags.BoolVar(&q.All, "all", false, "also those that ended")
	flags.Var(amount(&q.Limit, 1), "limit", "at most so many (default all)")
	flags.StringVar(&q.Cursor, "cursor", "", "go on after a page; the page before tells its `cursor`")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) > 0 && q != (chain.Query{}) && q != (chain.Query{All: true}) {
			return usagef("KEYs are given, and filters too: one or the other")
		}
		return a.readRecords(cmd.Context(), k, nil, *atLeast, func(ctx context.Context, s *session) error {
			if len(args) > 0 {
				return a.getKeys(ctx, s, k, *output, args)
			}
			return a.getPage(ctx, s, k, *output, q)
		})
	}
	return cmd
}

func (a *app) getPage(ctx context.Context, s *session, k kind, f format, q chain.Query) error {
	lines, cursor, err := k.list(ctx, s, q)
	if errors.Is(err, chain.ErrQuery) {
		return errors.Mark(err, errUsage)
	}
	if err != nil {
		return err
	}
	p := a.newPrinter(f, k.columns...)
	for _, l := range lines {
		if err := p.add(l); err != nil {
			return err
		}
	}
	if err := p.end(); err != nil {
		return err
	}
	switch {
	case cursor != "":
		a.sayf("there is more; go on with --cursor %s", shellWord(cursor))
	case len(lines) == 0 && f == formatTable:
		a.sayf("no %s%s", k.plural, map[bool]string{false: " stand (--all shows those that ended too)"}[q.All])
	}
	return nil
}

// getKeys shows the records of the keys that are there, and then says which are not.
func (a *app) getKeys(ctx context.Context, s *session, k kind, f format, args []string) error {
	p := a.newPrinter(f, k.columns...)
	var missing []string
	var hint error
	for _, arg := range args {
		l, err := k.find(ctx, s, arg)
		switch {
		case errors.Is(err, es.ErrNotFound):
			missing, hint = append(missing, err.Error()), err
		case err != nil:
			return err
		default:
			if err := p.add(l); err != nil {
				return err
			}
		}
	}
	if err := p.end(); err != nil || len(missing) == 0 {
		return err
	}
	err := errors.New(strings.Join(missing, "; "))
	return errors.Mark(errors.WithHint(err, errors.FlattenHints(hint)), es.ErrNotFound)
}

// find gets the record an argument means. The plain name goes before the stored key.
func (k kind) find(ctx context.Context, s *session, arg string) (line, error) {
	candidates := k.candidates(arg)
	if len(candidates) == 0 {
		return line{}, usagef("%q is no key in the list of %s: give it as it is stored (-o name shows it)", arg, k.plural)
	}
	var missing error
	for _, names := range candidates {
		l, err := k.get(ctx, s, names)
		if !errors.Is(err, es.ErrNotFound) {
			return l, err
		}
		if missing == nil {
			missing = err
		}
	}
	return line{}, missing
}

func (a *app) getOneCommand(k kind) *cobra.Command {
	var at time.Time
	cmd := &cobra.Command{
		Use: k.singular + " " + k.names, Short: "Show one " + k.singular, ValidArgsFunction: a.completeNames(k),
		Args: func(_ *cobra.Command, args []string) error {
			_, err := k.parse(args)
			return err
		},
	}
	output := formatFlag(cmd, formatTable)
	atLeast := atLeastFlag(cmd)
	a.timeVar(cmd.Flags(), &at, "as-of", "as it was at this `time`: "+when.Notation)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		names, err := k.parse(args)
		if err != nil {
			return err
		}
		return a.readRecords(cmd.Context(), k, names, *atLeast, func(ctx context.Context, s *session) error {
			var l line
			var err error
			if at.IsZero() {
				l, err = k.get(ctx, s, names)
			} else {
				l, err = k.asOf(ctx, s, at, names)
			}
			if err != nil {
				return s.near(ctx, err, k.beside, names...)
			}
			return a.printOne(*output, k.columns, l)
		})
	}
	return cmd
}

// completeNames offers a shell the names that identify one record, one after another.
func (a *app) completeNames(k kind) cobra.CompletionFunc {
	return a.complete(k, func(l line, args []string) []string {
		if len(args) < len(l.names) && slices.Equal(l.names[:len(args)], args) {
			return l.names[len(args) : len(args)+1]
		}
		return nil
	})
}

// completeKeys offers a shell the keys of any number of records.
func (a *app) completeKeys(k kind) cobra.CompletionFunc {
	return a.complete(k, func(l line, args []string) []string {
		if slices.Contains(args, l.name) {
			return nil
		}
		return []string{l.name}
	})
}

// completionPatience is how long a person at a prompt waits for Tab.
const completionPatience = time.Second

// complete offers what each of the records that stand suggests. It never fails: a shell that can't be helped is left alone.
func (a *app) complete(k kind, suggest func(l line, args []string) []string) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		ctx, cancel := context.WithTimeout(cmd.Context(), completionPatience)
		defer cancel()
		var found []string
		err := a.read(ctx, func(ctx context.Context, s *session) error {
			lines, _, err := k.list(ctx, s, chain.Query{})
			for _, l := range lines {
				found = append(found, suggest(l, args)...)
			}
			return err
		})
		if err != nil {
			cobra.CompDebugln(err.Error(), false)
			found = nil
		}
		return slices.Compact(found), cobra.ShellCompDirectiveNoFileComp
	}
}
