package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/cockroachdb/errors"

	"catenary/chain"
	"catenary/es"
	"catenary/es/project"
	"catenary/events"
)

// kind is what the tool knows of one kind of records, whatever their type.
type kind struct {
	// singular and plural are the words of the command line, names what identifies a record there.
	singular, plural, names string
	// about is a sentence for the help.
	about   string
	columns []string
	// views are what its records and their history come from.
	views []string
	// parse gives the names that identify a record from arguments. It gives usage errors.
	parse func(args []string) ([]string, error)

	list    func(ctx context.Context, s *session, q chain.Query) (lines []line, cursor string, err error)
	get     func(ctx context.Context, s *session, names []string) (line, error)
	asOf    func(ctx context.Context, s *session, at time.Time, names []string) (line, error)
	history func(ctx context.Context, s *session, names []string) ([]change, error)
	parked  func(ctx context.Context, s *session, names []string) (project.Parked, error)
}

// change is one value of a record's history, with people's names in the place of opaque ids.
type change struct {
	sequence            uint64
	recorded, effective time.Time
	actor, onBehalfOf   string
	json                []byte
	record              line
}

// newKind binds the reader's generic functions to one kind.
func newKind[T chain.Record](k chain.Kind[T], names string, about string, columns []string, cells func(T, cell) []string) kind {
	show := func(s *session, key string, c chain.Change[T]) line {
		l := line{name: key, json: c.Raw, cells: func() []string { return cells(c.Value, s.cell()) }}
		if names, err := es.SplitKey(key); err == nil {
			l.names = names
		}
		// The key is unambiguous whatever the names are; where there is but one name, that is so too.
		if len(l.names) == 1 {
			l.name = l.names[0]
		}
		if !k.Stands(c.Value) {
			l.shade = dim
		}
		return l
	}
	return kind{
		singular: k.Name(), plural: k.Plural(), names: names, about: about, columns: columns,
		views: []string{k.Bucket(), chain.BackfillBucket},
		parse: func(args []string) ([]string, error) {
			if want := len(strings.Fields(names)); len(args) != want {
				return nil, usagef("%d given: one %s is known by %s", len(args), k.Name(), names)
			}
			return args, nil
		},
		list: func(ctx context.Context, s *session, q chain.Query) ([]line, string, error) {
			page, err := chain.List(ctx, s.reader, k, q)
			lines := make([]line, len(page.Entries))
			for i, e := range page.Entries {
				lines[i] = show(s, e.Key, e.Change)
			}
			return lines, page.Cursor, err
		},
		get: func(ctx context.Context, s *session, names []string) (line, error) {
			e, err := chain.Get(ctx, s.reader, k, names...)
			return show(s, e.Key, e.Change), err
		},
		parked: func(ctx context.Context, s *session, names []string) (project.Parked, error) {
			return chain.Parked(ctx, s.reader, k, names...)
		},
		asOf: func(ctx context.Context, s *session, at time.Time, names []string) (line, error) {
			c, err := chain.AsOf(ctx, s.reader, k, at, names...)
			return show(s, es.Key(names...), c), err
		},
		history: func(ctx context.Context, s *session, names []string) ([]change, error) {
			found, err := chain.History(ctx, s.reader, k, names...)
			if err != nil {
				return nil, err
			}
			changes := make([]change, len(found))
			for i, c := range found {
				if c.Actor, err = s.reader.ActorName(ctx, c.Actor); err != nil {
					return nil, err
				}
				if c.OnBehalfOf, err = s.reader.ActorName(ctx, c.OnBehalfOf); err != nil {
					return nil, err
				}
				body, err := c.JSON()
				if err != nil {
					return nil, errors.Wrapf(err, "history of %s %s at event %d", k.Name(), es.Key(names...), c.Sequence)
				}
				changes[i] = change{
					sequence: c.Sequence, recorded: c.Recorded, effective: c.Effective,
					actor: c.Actor, onBehalfOf: c.OnBehalfOf, json: body, record: show(s, es.Key(names...), c),
				}
			}
			return changes, nil
		},
	}
}

// candidates are the names an argument of a list may mean: the plain name, or the key as it is stored.
func (k kind) candidates(arg string) [][]string {
	var found [][]string
	if names, err := k.parse([]string{arg}); err == nil {
		found = append(found, names)
	}
	if names, err := es.SplitKey(arg); err == nil && len(names) > 1 || err == nil && names[0] != arg {
		found = append(found, names)
	}
	return found
}

// kinds lists every kind of records, in the order a thing goes through them.
func kinds() []kind {
	published := newKind(chain.Publications, "REFERENCE", "artifacts and packages",
		[]string{"PUBLISHED", "MODULE", "BUILD", "COMMIT", "AT", "VETOED"}, publishedCells)
	published.parse = func(args []string) ([]string, error) {
		switch len(args) {
		case 1:
			r, err := parseReference(args[0])
			if err != nil {
				return nil, err
			}
			return chain.ReferenceNames(r), nil
		case 2:
			return args, nil
		default:
			return nil, usagef("%d given: one publication is known by NAME@VERSION, DIGEST, or NAME VERSION", len(args))
		}
	}
	return []kind{
		newKind(chain.Modules, "MODULE", "what is built and run",
			[]string{"MODULE", "KIND", "REPOSITORY", "PATH", "REQUIRES", "REGISTERED", "ENDED"}, moduleCells),
		newKind(chain.Nodes, "NODE", "where modules run",
			[]string{"NODE", "MANAGED BY", "LABELS", "REGISTERED", "RETIRED"}, nodeCells),
		newKind(chain.Commits, "REPOSITORY COMMIT", "what stands on the branches of repositories",
			[]string{"REPOSITORY", "COMMIT", "BRANCH", "MERGED", "AUTHOR"}, commitCells),
		newKind(chain.Builds, "BUILD", "what was made of commits",
			[]string{"BUILD", "MODULE", "COMMIT", "OUTCOME", "PUBLISHED", "AT"}, buildCells),
		published,
		newKind(chain.Assignments, "NODE MODULE", "what nodes were told to run, and what they reported",
			[]string{"NODE", "MODULE", "TOLD", "SINCE", "ENDED", "REQUIRED BY", "OBSERVED"}, assignmentCells),
		newKind(chain.Merges, "REPOSITORY BRANCH COMMIT", "what came onto branches and waits to be carried",
			[]string{"REPOSITORY", "BRANCH", "COMMIT", "WAITING", "ROLLOUT", "PLACED"}, mergeCells),
		newKind(chain.Tracks, "TRACK", "which modules are carried by which strategy",
			[]string{"TRACK", "MODULES", "STRATEGY", "ON", "DECLARED", "ENDED"}, trackCells),
		newKind(chain.Strategies, "STRATEGY", "how rollouts walk over the nodes",
			[]string{"STRATEGY", "DIGEST", "DECLARED", "ENDED"}, strategyCells),
		newKind(chain.Rollouts, "ROLLOUT", "what is carried to nodes, and how far it is",
			[]string{"ROLLOUT", "STATE", "CARRIES", "STEPS", "PENDING", "DONE", "FAILED", "PLANNED", "REASON"}, rolloutCells),
		newKind(chain.Steps, "ROLLOUT TIER NODE MODULE", "what rollouts change, and what became of it",
			[]string{"ROLLOUT", "TIER", "NODE", "MODULE", "CHANGE", "STATE", "SENT", "REPORTED"}, stepCells),
		newKind(chain.Freezes, "FREEZE", "times in which nothing shall change",
			[]string{"FREEZE", "MODULES", "NODES", "WINDOW", "REASON", "DECLARED", "ENDED"}, freezeCells),
	}
}

// cell makes text for columns.
type cell struct {
	zone *time.Location
	// actor gives the name behind an id.
	actor func(id string) string
}

func (c cell) time(t time.Time) string { return showTime(t, c.zone) }

func moduleCells(m chain.Module, c cell) []string {
	return []string{m.Name, m.Kind, m.Repository, m.Path, strings.Join(m.Requires, ", "), c.time(m.Registered), c.time(m.Ended)}
}

func nodeCells(n chain.Node, c cell) []string {
	return []string{n.Node, n.ManagedBy, showLabels(n.Labels), c.time(n.Registered), c.time(n.Retired)}
}

func commitCells(r chain.Commit, c cell) []string {
	return []string{r.Repository, shortCommit(r.Commit), r.Branch, c.time(r.Merged), c.actor(r.Author)}
}

func buildCells(b chain.Build, c cell) []string {
	published := ""
	if b.Published != nil {
		published = showReference(*b.Published)
	}
	at := b.At
	if at.IsZero() {
		at = b.Asked
	}
	return []string{b.ID, b.Module, shortCommit(b.Commit), outcomeOf(b.State, b.Failed), published, c.time(at)}
}

func publishedCells(p chain.Published, c cell) []string {
	vetoed := ""
	if p.Vetoed != nil {
		vetoed = p.Vetoed.Reason + " (" + c.actor(p.Vetoed.By) + ")"
	}
	return []string{showReference(p.Reference), p.Module, p.Build, shortCommit(p.Commit), c.time(p.At), vetoed}
}

func assignmentCells(a chain.Assignment, c cell) []string {
	told := showReference(a.Reference)
	if a.State != "" {
		told = strings.TrimSpace(told + " (" + a.State + ")")
	}
	return []string{a.Node, a.Module, told, c.time(a.Since), c.time(a.Ended), strings.Join(a.RequiredBy, ", "), showObserved(a)}
}

func showObserved(a chain.Assignment) string {
	o := a.Observed
	if o == nil {
		return ""
	}
	var words []string
	switch {
	case o.IsZero():
	case o.Reference.Equal(a.Reference):
		words = append(words, "as told")
	default:
		words = append(words, showReference(o.Reference))
	}
	if o.Healthy != nil {
		words = append(words, map[bool]string{true: "healthy", false: "unhealthy"}[*o.Healthy])
	}
	if o.Drift != "" {
		words = append(words, "drift: "+o.Drift)
	}
	return strings.Join(words, ", ")
}

func freezeCells(f chain.Freeze, c cell) []string {
	return []string{
		f.Name, orAll(f.Selector.Modules), orAll(append(f.Selector.Nodes, labelList(f.Selector.Labels)...)),
		showWindow(f.Window), f.Reason, c.time(f.Declared), c.time(f.Ended),
	}
}

func mergeCells(m chain.Merge, c cell) []string {
	return []string{m.Repository, m.Branch, shortCommit(m.Commit), m.Waiting, m.Rollout, c.time(m.Placed)}
}

func trackCells(t chain.Track, c cell) []string {
	return []string{t.Track, strings.Join(t.Modules, ", "), t.Strategy, t.On, c.time(t.Declared), c.time(t.Ended)}
}

func strategyCells(s chain.Strategy, c cell) []string {
	return []string{s.Name, s.Digest[:min(len(s.Digest), 12)], c.time(s.Declared), c.time(s.Ended)}
}

func rolloutCells(r chain.Rollout, c cell) []string {
	var carries []string
	for _, b := range r.Builds {
		carries = append(carries, showVersion(&b.Version))
	}
	const most = 3
	if n := len(carries); n > most {
		carries = append(carries[:most], fmt.Sprintf("%d more", n-most))
	}
	var sum chain.Counts
	for _, t := range r.Tiers {
		sum.Pending += t.Counts.Pending
		sum.Done += t.Counts.Done
		sum.Failed += t.Counts.Failed + t.Counts.Unknown
	}
	return []string{
		r.ID, r.State, strings.Join(carries, ", "), strconv.Itoa(r.Changed), strconv.Itoa(sum.Pending), strconv.Itoa(sum.Done), strconv.Itoa(sum.Failed),
		c.time(r.Times.Planned), r.Reason,
	}
}

func stepCells(s chain.Step, c cell) []string {
	return []string{s.Rollout, s.Tier, s.Node, s.Module, fromTo(s.Before, s.After, s.Refresh), s.State(), c.time(s.Sent), c.time(s.Reported)}
}

func showWindow(w *events.Window) string {
	switch {
	case w == nil:
		return "until lifted"
	case w.Recurring != nil:
		days := "every day"
		if len(w.Recurring.Days) > 0 {
			days = strings.Join(w.Recurring.Days, " ")
		}
		return days + " " + w.Recurring.From + "-" + w.Recurring.To + " " + w.Recurring.Zone
	default:
		return strings.TrimSpace(w.Start + " to " + w.End)
	}
}
