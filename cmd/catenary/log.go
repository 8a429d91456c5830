package main

import (
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"strconv"
	"strings"

	"github.com/cockroachdb/errors"
	"github.com/spf13/cobra"

	"catenary/audit"
	"catenary/audit/when"
	"catenary/chain"
	"catenary/es"
	"catenary/events"
	"catenary/internal/topology"
)

const logHelp = `Log shows what was recorded: every event, newest first.

A KEY is a name, or a key as it is stored (n1.web). An ACTOR is who did it or on whose behalf, by name or opaque id. With --follow
the last events come oldest first, and then each new one as it is recorded, in JSON one object a line.`

// followTail is how many events --follow begins with.
const followTail = 10

func (a *app) logCommand() *cobra.Command {
	var q audit.LogQuestion
	var key, actor string
	var follow bool
	cmd := &cobra.Command{
		Use: "log", Short: "Show what was recorded, newest first", Long: logHelp, GroupID: groupRead, Args: cobra.NoArgs,
		Example: `  catenary log --limit 20
  catenary log --aggregate assignment --key n1.web
  catenary log --actor ann --since 24h
  catenary log --follow`,
	}
	output := formatFlag(cmd, formatTable)
	flags := cmd.Flags()
	flags.StringVar(&q.Aggregate, "aggregate", "", "only of this `aggregate`, such as assignment")
	flags.StringVar(&key, "key", "", "only of this `key`")
	flags.StringVar(&actor, "actor", "", "only by this `actor`, or on their behalf")
	a.timeVar(flags, &q.Since, "since", "only recorded at this `time` or later: "+when.Notation)
	a.timeVar(flags, &q.Until, "until", "only recorded at this `time` or before")
	flags.Var(amount(&q.Limit, 1), "limit", "at most so many (default all; 10 to begin --follow with)")
	flags.Var(version(&q.Before), "cursor", "go on after a page; the page before tells its `cursor`")
	flags.BoolVar(&follow, "follow", false, "go on with new events as they are recorded")
	cmd.MarkFlagsMutuallyExclusive("follow", "until")
	cmd.MarkFlagsMutuallyExclusive("follow", "cursor")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if key != "" {
			q.Keys = storedKeys(key)
		}
		work := func(ctx context.Context, s *session) error {
			l := logPrinter{app: a, s: s, printer: a.newPrinter(*output, "SEQUENCE", "RECORDED", "TYPE", "OF", "BY", "ON BEHALF OF", "EFFECTIVE")}
			var err error
			if q.Actors, err = s.actorIDs(ctx, actor); err != nil {
				return err
			}
			if follow {
				return l.follow(ctx, q)
			}
			return l.list(ctx, q)
		}
		// No bound on the whole: a long log takes its time, and each of its pages has a bound of its own.
		log := slog.New(slog.DiscardHandler)
		if follow {
			log = a.logger(slog.LevelWarn)
		}
		return a.withBus(cmd.Context(), log, work)
	}
	return cmd
}

// storedKeys gives the stored keys that an argument may mean: it is a name, or a key already.
func storedKeys(arg string) []string {
	keys := []string{es.Key(arg)}
	if _, err := es.SplitKey(arg); err == nil && arg != keys[0] {
		keys = append(keys, arg)
	}
	return keys
}

// logPrinter writes events.
type logPrinter struct {
	app     *app
	s       *session
	printer *printer
}

func (l logPrinter) list(ctx context.Context, q audit.LogQuestion) error {
	var last audit.Item
	for item, err := range l.s.queries.Events(ctx, q) {
		if err != nil {
			return err
		}
		if err := l.add(ctx, item); err != nil {
			return err
		}
		last = item
	}
	if err := l.printer.end(); err != nil {
		return err
	}
	switch {
	case l.printer.count == 0 && l.printer.format == formatTable:
		l.app.sayf("no such events%s", unknownAggregate(q.Aggregate))
	case q.Limit > 0 && l.printer.count == q.Limit && last.Sequence > 1:
		l.app.sayf("there may be more; go on with --cursor %d", last.Sequence)
	}
	return nil
}

// unknownAggregate says of a word that no aggregate is called by what there is. It is no error: a newer program may have
// recorded such events.
func unknownAggregate(aggregate string) string {
	var known []string
	for _, name := range events.Registry().Names() {
		of, _, _ := strings.Cut(name, ".")
		known = append(known, of)
	}
	slices.Sort(known)
	known = slices.Compact(known)
	if aggregate == "" || slices.Contains(known, aggregate) {
		return ""
	}
	return ": the aggregates are " + strings.Join(known, ", ")
}

// follow writes the last events oldest first, and then new ones until it is interrupted, which is how it is meant to end.
func (l logPrinter) follow(ctx context.Context, q audit.LogQuestion) error {
	if q.Limit == 0 {
		q.Limit = followTail
	}
	// What is recorded between the two questions must not be lost: following begins at what the tail was before the first.
	tail, err := l.s.queries.Log(ctx, audit.LogQuestion{Limit: 1})
	if err != nil {
		return err
	}
	var after uint64
	if len(tail.Items) > 0 {
		after = tail.Items[0].Sequence
		q.Before = after + 1
	}
	var latest []audit.Item
	for item, err := range l.s.queries.Events(ctx, q) {
		if err != nil {
			return err
		}
		latest = append(latest, item)
	}
	l.printer.bare = true
	for _, item := range slices.Backward(latest) {
		if err := l.add(ctx, item); err != nil {
			return err
		}
	}
	if err := l.live(); err != nil {
		return err
	}
	q.Before, q.After = 0, after
	for item, err := range l.s.queries.Follow(ctx, q) {
		if ctx.Err() != nil && errors.Is(context.Cause(ctx), context.Canceled) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := l.add(ctx, item); err != nil {
			return err
		}
		if err := l.live(); err != nil {
			return err
		}
	}
	return nil
}

// live writes out what is there so far. A table is begun anew, without its header: columns can't wait for their widest cell.
func (l logPrinter) live() error {
	if l.printer.format == formatTable && l.printer.table.Length() > 0 {
		l.printer.text(render(l.printer.table))
		l.printer.table = newTable(nil)
	}
	return l.printer.flush()
}

// add writes an event, with names in the place of opaque ids.
func (l logPrinter) add(ctx context.Context, item audit.Item) error {
	var err error
	if item.Actor, err = l.s.reader.ActorName(ctx, item.Actor); err != nil {
		return err
	}
	if item.OnBehalfOf, err = l.s.reader.ActorName(ctx, item.OnBehalfOf); err != nil {
		return err
	}
	body, err := encodeJSON(item)
	if err != nil {
		return errors.Wrapf(err, "encode event %d", item.Sequence)
	}
	sequence := strconv.FormatUint(item.Sequence, 10)
	shown := line{name: sequence, json: body, cells: func() []string {
		effective := ""
		if !item.Effective.Equal(item.Recorded) {
			effective = showTime(item.Effective, l.s.zone)
		}
		if item.Backfill {
			effective += " (backfill)"
		}
		kind := first(item.Type, "unreadable: "+item.Problem)
		return []string{sequence, showTime(item.Recorded, l.s.zone), kind, showKey(item.Key), item.Actor, item.OnBehalfOf, effective}
	}}
	if item.Problem != "" {
		shown.shade = yellow
	}
	return l.printer.add(shown)
}

// actorIDs gives the opaque ids behind a name; the name may be an id itself.
func (s *session) actorIDs(ctx context.Context, name string) ([]string, error) {
	if name == "" {
		return nil, nil
	}
	ids := []string{name}
	bucket, err := s.open(ctx, topology.BucketActors)
	if err != nil {
		return nil, err
	}
	for e, err := range bucket.Entries(ctx, ">") {
		if err != nil {
			return nil, errors.Wrap(err, "read the actor directory")
		}
		var entry chain.Actor
		if len(e.Value) == 0 {
			continue
		}
		if err := json.Unmarshal(e.Value, &entry); err != nil {
			return nil, errors.Wrapf(err, "entry %s of the actor directory", e.Key)
		}
		if entry.Name != name {
			continue
		}
		id, err := es.UnescapeToken(e.Key)
		if err != nil {
			return nil, errors.Wrapf(err, "entry %s of the actor directory", e.Key)
		}
		ids = append(ids, id)
	}
	return ids, nil
}
