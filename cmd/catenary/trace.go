package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/cockroachdb/errors"
	"github.com/spf13/cobra"

	"catenary/audit"
	"catenary/chain"
	"catenary/es"
)

const traceHelp = `Trace gives the whole way of something, in both directions: commit, build, publication, rollout, nodes.

THING is a commit or the beginning of one, a build, a digest, NAME@VERSION, or NODE/MODULE. When names have slashes themselves,
every way to part them is tried; --as says what it is when it may be several things. What the builds' manifests name (modules
and commits) came with it, and is listed too: what was merged last comes first. Of that list --cursor gives the next page.
` + questionHelp

func traceThings() []string {
	return []string{audit.TraceCommit, audit.TraceBuild, audit.TraceArtifact, audit.TracePackage, audit.TraceAssignment}
}

func (a *app) traceCommand() *cobra.Command {
	var q audit.TraceQuestion
	var at, known time.Time
	cmd := &cobra.Command{
		Use: "trace {COMMIT | BUILD | DIGEST | NAME@VERSION | NODE/MODULE}", Short: "Show where something comes from, and where it went",
		Long: traceHelp, GroupID: groupAsk, Args: takes("THING"),
		Example: `  catenary trace shop@1.20
  catenary trace 9f2c41d
  catenary trace production/shop --as-of "last tuesday 16:00"
  catenary trace web --as build -o json`,
	}
	output := formatFlag(cmd, formatTable)
	flags := cmd.Flags()
	a.timeVar(flags, &at, "as-of", "of an assignment: as it stood at this `time` (default now)")
	a.timeVar(flags, &known, "known-at", "as it was known at this `time`: what was recorded later is left out")
	flags.StringVar(&q.As, "as", "", "what it `is`: "+strings.Join(traceThings(), ", ")+" (default whatever there is)")
	flags.Var(numberFlag[int]{&q.Limit, 1, audit.MaxPageItems}, "limit", fmt.Sprintf("at most so many of each (default %d)", audit.MaxPageItems))
	flags.StringVar(&q.Cursor, "cursor", "", "go on with what came with it; the page before tells its `cursor`")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if q.As != "" && !slices.Contains(traceThings(), q.As) {
			return usagef("--as is %q: it is one of %s", q.As, strings.Join(traceThings(), ", "))
		}
		q.Of, q.Moment = args[0], audit.Moment{At: at, KnownAt: known}
		return a.read(cmd.Context(), func(ctx context.Context, s *session) error {
			answer, err := s.queries.Trace(ctx, q)
			if err != nil {
				return s.nearThing(ctx, errors.Wrapf(err, "trace %s", shellWord(q.Of)), q.Of)
			}
			sections := s.traceSections(answer)
			if err := a.showTrace(*output, answer, sections); err != nil {
				return err
			}
			a.sayCut(answer, sections, cmp.Or(q.Limit, audit.MaxPageItems))
			return s.upTo(ctx, answer.Basis, q.KnownAt)
		})
	}
	return cmd
}

// nearThing adds what may have been meant to an error that nothing is known of a thing.
func (s *session) nearThing(ctx context.Context, err error, thing string) error {
	if node, module, ok := strings.Cut(thing, "/"); ok {
		err = s.near(ctx, err, placed, node, module)
	}
	name, version, isPackage := strings.Cut(thing, "@")
	if !isPackage || !errors.Is(err, audit.ErrNotFound) {
		return err
	}
	// Stored keys escape what names may hold, so near names are looked for among the names.
	published := func(k kind) bool { return k.singular == chain.Publications.Name() }
	var found []string
	for _, key := range s.nearest(ctx, published, es.Key(name, version)) {
		if names, e := es.SplitKey(key); e == nil && len(names) == 2 {
			found = append(found, names[0]+"@"+names[1])
		}
	}
	if len(found) > 0 {
		err = errors.WithHintf(err, "did you mean %s?", orWords(found))
	}
	return err
}

// section is a part of a trace: lines of one kind.
type section struct {
	title   string
	columns []string
	lines   []line
}

func (a *app) showTrace(f format, t audit.TraceAnswer, sections []section) error {
	if f.whole() {
		return a.printWhole(f, t)
	}
	first := true
	for _, part := range sections {
		if len(part.lines) == 0 {
			continue
		}
		p := a.newPrinter(f, part.columns...)
		if f == formatTable {
			if !first {
				p.text("\n")
			}
			p.text(paintIf(p.colours, bold, part.title) + "\n")
		}
		first = false
		for _, l := range part.lines {
			if err := p.add(l); err != nil {
				return err
			}
		}
		if err := p.end(); err != nil {
			return err
		}
	}
	if f == formatTable {
		a.sayf("traced as %s (event %d)", strings.Join(t.As, ", "), t.Through)
	}
	a.sayMissing(t.Basis)
	return nil
}

// sayCut says which lists do not have all, and how to go on.
func (a *app) sayCut(t audit.TraceAnswer, sections []section, limit int) {
	if t.More {
		var full []string
		for _, part := range sections {
			if len(part.lines) >= limit && part.title != cameAlong {
				full = append(full, part.title)
			}
		}
		a.sayf("there are more %s than the limit of %d: see --limit (up to %d)", strings.Join(full, " and "), limit, audit.MaxPageItems)
	}
	if t.Next != "" {
		a.sayf("%s of the %s that came with it are shown; go on with the same question and --cursor %s", count(len(t.Carried)), count(t.CarriedCount), t.Next)
	}
}

// cameAlong is the title of what the manifests of builds name.
const cameAlong = "came with it"

func (s *session) traceSections(t audit.TraceAnswer) []section {
	commits := section{title: "commits", columns: []string{"COMMIT", "REPOSITORY", "BRANCH", "MERGED", "AUTHOR", "EVENT"}}
	for _, c := range t.Commits {
		author := ""
		if c.Author != nil {
			author = c.Author.String()
		}
		commits.lines = append(commits.lines, line{name: c.Commit, cells: func() []string {
			return []string{shortCommit(c.Commit), c.Repository, c.Branch, showTime(c.Merged, s.zone), author, number(c.Sequence)}
		}})
	}
	builds := section{title: "builds", columns: []string{"BUILD", "MODULE", "COMMIT", "OUTCOME", "AT", "EVENT"}}
	for _, b := range t.Builds {
		builds.lines = append(builds.lines, line{name: b.ID, cells: func() []string {
			return []string{b.ID, b.Module, shortCommit(b.Commit), outcomeOf(b.State, b.Failed), showTime(b.At, s.zone), number(b.Sequence)}
		}})
	}
	published := section{title: "published", columns: []string{"PUBLISHED", "MODULE", "BUILD", "AT", "VETOED", "EVENT"}}
	for _, p := range t.Published {
		published.lines = append(published.lines, line{name: p.Reference.String(), cells: func() []string {
			return []string{showReference(p.Reference), p.Module, p.Build, showTime(p.At, s.zone), map[bool]string{true: "vetoed"}[p.Vetoed], number(p.Sequence)}
		}})
	}
	nodes := section{title: "nodes", columns: []string{"NODE", "MODULE", "TOLD", "SINCE", "UNTIL", "ROLLOUT", "EVENT"}}
	for _, n := range t.Assignments {
		nodes.lines = append(nodes.lines, line{name: n.Node + "/" + n.Module, cells: func() []string {
			return []string{n.Node, n.Module, runs(&n), showTime(n.Since, s.zone), showTime(n.Until, s.zone), n.Rollout, number(n.Sequence)}
		}})
	}
	carried := section{title: cameAlong, columns: []string{"MODULE", "VERSION", "REPOSITORY", "COMMIT", "MERGED", "BUILD"}}
	for _, c := range t.Carried {
		name := c.Commit
		if name == "" {
			name = c.Module + "@" + c.Version
		}
		carried.lines = append(carried.lines, line{name: name, cells: func() []string {
			return []string{c.Module, c.Version, c.Repository, shortCommit(c.Commit), showTime(c.Merged, s.zone), c.Build}
		}})
	}
	return []section{commits, builds, published, nodes, carried}
}

// outcomeOf says what became of a build.
func outcomeOf(state, failed string) string {
	switch {
	case state != "":
		return state
	case failed != "":
		return "failed: " + failed
	}
	return "succeeded"
}
