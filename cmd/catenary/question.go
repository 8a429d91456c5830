package main

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/cockroachdb/errors"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"catenary/audit"
	"catenary/audit/when"
	"catenary/chain"
	"catenary/es"
	"catenary/internal/spelling"
)

// questionHelp says what all questions about the past have in common.
const questionHelp = `
A TIME is ` + when.Notation + `: in the zone that --zone or
CATENARY_ZONE names, else the machine's.`

// momentFlags are the flags of questions about a moment.
type momentFlags struct {
	known    time.Time
	observed bool
}

func (a *app) momentFlags(flags *pflag.FlagSet) *momentFlags {
	m := &momentFlags{}
	a.timeVar(flags, &m.known, "known-at", "as it was known at this `time`: what was recorded later is left out")
	flags.BoolVar(&m.observed, "observed", false, "what nodes reported to run, not what they were told")
	return m
}

// pageFlags adds the flags of long answers. Without them the whole answer is shown.
func pageFlags(flags *pflag.FlagSet, p *audit.Page) {
	flags.Var(numberFlag[int]{&p.Limit, 1, audit.MaxPageItems}, "limit", "at most so many (default all)")
	flags.StringVar(&p.Cursor, "cursor", "", "go on after a page; the page before tells its `cursor`")
}

// sayMore tells how to go on after a page.
func (a *app) sayMore(next string) {
	if next != "" {
		a.sayf("there is more; go on with the same question and --cursor %s", shellWord(next))
	}
}

// whole says whether the answer goes out whole, as JSON or YAML, in the form in which it came over the bus.
func (f format) whole() bool { return f == formatJSON || f == formatYAML }

// printWhole writes an answer as it comes over the bus.
func (a *app) printWhole(f format, answer any) error {
	body, err := encodeJSON(answer)
	if err != nil {
		return errors.Wrap(err, "encode the answer")
	}
	return a.printOne(f, nil, line{name: "the answer", json: body})
}

// saidOf says in words what an answer shows: what was told or observed, when, and as known when.
func (s *session) saidOf(shows string, m audit.Moment, b audit.Basis) string {
	said := map[string]string{audit.ShowsTold: "what nodes were told", audit.ShowsObserved: "what nodes reported to run"}[shows]
	said += " at " + showTime(m.At, s.zone)
	if !m.KnownAt.IsZero() {
		said += ", as known at " + showTime(m.KnownAt, s.zone)
	}
	return said + " (event " + number(b.Through) + ")"
}

// sayMissing says what is not in an answer although it may belong there.
func (a *app) sayMissing(b audit.Basis) {
	for _, m := range b.Missing {
		a.sayf("not in it: %s", printable(m.String()))
	}
	if more := b.MissingCount - len(b.Missing); more > 0 {
		a.sayf("and %s more", count(more))
	}
}

// near adds to an error that nothing is known of names which ones may have been meant. It adds nothing when there is no
// such name, or when the names can't be read: the error itself says enough.
func (s *session) near(ctx context.Context, err error, of func(kind) bool, names ...string) error {
	if !errors.IsAny(err, audit.ErrNotFound, es.ErrNotFound) {
		return err
	}
	for _, name := range names {
		if found := s.nearest(ctx, of, name); len(found) > 0 {
			err = errors.WithHintf(err, "%q: did you mean %s?", name, orWords(found))
		}
	}
	return err
}

// orWords lists what may have been meant, as it is written on the command line.
func orWords(words []string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = shellWord(w)
	}
	return strings.Join(quoted, " or ")
}

// nearest gives the names of records that a name may have meant; none when it is one of them.
func (s *session) nearest(ctx context.Context, of func(kind) bool, name string) []string {
	var known []string
	for _, k := range kinds() {
		if name == "" || !of(k) {
			continue
		}
		lines, _, err := k.list(ctx, s, chain.Query{All: true})
		if err != nil {
			continue // it is help, and help that can't be had is none
		}
		for _, l := range lines {
			known = append(known, l.name)
		}
	}
	return spelling.Nearest(name, slices.Values(known))
}

// mustKnow gives an error marked es.ErrNotFound for a node or module that was never registered: an empty answer about it would
// look like one about a name that is not mistyped. Empty names are passed over.
func (s *session) mustKnow(ctx context.Context, nodes []string, modules ...string) error {
	for _, node := range nodes {
		if node == "" {
			continue
		}
		if _, err := chain.Get(ctx, s.reader, chain.Nodes, node); err != nil {
			return s.near(ctx, err, func(k kind) bool { return k.singular == chain.Nodes.Name() }, node)
		}
	}
	for _, module := range modules {
		if module == "" {
			continue
		}
		if _, err := chain.Get(ctx, s.reader, chain.Modules, module); err != nil {
			return s.near(ctx, err, func(k kind) bool { return k.singular == chain.Modules.Name() }, module)
		}
	}
	return nil
}

// placed picks the kinds of what assignments are between.
func placed(k kind) bool {
	return k.singular == chain.Nodes.Name() || k.singular == chain.Modules.Name()
}

// beside picks the kinds among whose names those of a record of this kind are looked for. Of commits and builds there are too
// many to be read for a hint.
func (k kind) beside(other kind) bool {
	switch k.singular {
	case chain.Assignments.Name():
		return placed(other)
	case chain.Nodes.Name(), chain.Modules.Name(), chain.Freezes.Name():
		return other.singular == k.singular
	default:
		return false
	}
}

// completePlaced offers a shell a node and then a module.
func (a *app) completePlaced(nodes, modules int) cobra.CompletionFunc {
	byName := map[string]kind{}
	for _, k := range kinds() {
		byName[k.singular] = k
	}
	names := func(l line, _ []string) []string { return []string{l.name} }
	return func(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
		switch {
		case len(args) < nodes:
			return a.complete(byName[chain.Nodes.Name()], names)(cmd, args, word)
		case len(args) < nodes+modules:
			return a.complete(byName[chain.Modules.Name()], names)(cmd, args, word)
		default:
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
	}
}

// runs is what a standing assignment runs, as it is shown in tables.
func runs(s *audit.Standing) string {
	if s == nil {
		return ""
	}
	if !s.Reference.IsZero() {
		return showReference(s.Reference)
	}
	return s.Runs()
}
