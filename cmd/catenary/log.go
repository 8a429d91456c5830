package main

import (
	"cmp"
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cockroachdb/errors"
	"github.com/spf13/cobra"

	"catenary/audit"
	"catenary/chain"
	"catenary/es"
	"catenary/events"
	"catenary/internal/topology"
)

const logHelp = `Log shows what was recorded, newest first: every event, and every command that was refused.

WORDS are looked for anywhere in an event: all of them, also as beginnings. A KEY is a name, or a key as it is stored (n1.web). An
ACTOR is who did it or on whose behalf, by name or opaque id.

With --follow the last ones come oldest first, and then each new one as it is recorded, in JSON one object a line. Events come in their
order and refused commands in theirs, each once and none left out, also over a restart of the chain. Between the two there is no common
order but their times: what is there at the same time is shown in the order of these, and what comes late is shown late.
` + questionHelp

// followTail is how many events --follow begins with.
const followTail = 10

// logFlags are what a log is asked for beside the question's own fields.
type logFlags struct {
	key, actor, cursor      string
	follow, refused, events bool
}

func (a *app) logCommand() *cobra.Command {
	var q audit.LogQuestion
	var l logFlags
	cmd := &cobra.Command{
		Use: "log [WORDS...]", Short: "Show what was recorded and refused, newest first", Long: logHelp, GroupID: groupAsk,
		Example: `  catenary log --limit 20
  catenary log start page --since "last monday"
  catenary log --aggregate assignment --key n1.web
  catenary log --actor ann --node production --since 24h
  catenary log --refused
  catenary log --follow`,
	}
	output := formatFlag(cmd, formatTable)
	flags := cmd.Flags()
	flags.StringVar(&q.Aggregate, "aggregate", "", "only of this `aggregate`, such as assignment")
	flags.StringVar(&l.key, "key", "", "only of this `key`")
	flags.StringArrayVar(&q.Types, "type", nil, "only of this event `type`, such as assignment.ended; may be given again")
	flags.StringVar(&q.Node, "node", "", "only what concerns this `node`")
	flags.StringVar(&q.Module, "module", "", "only what concerns this `module`")
	flags.StringVar(&l.actor, "actor", "", "only by this `actor`, or on their behalf")
	flags.StringVar(&q.Command, "command", "", "only of this command, by `id`")
	flags.StringVar(&q.Correlation, "correlation", "", "only of this conversation, by `id`")
	a.timeVar(flags, &q.Since, "since", "only recorded at this `time` or later")
	a.timeVar(flags, &q.Until, "until", "only recorded at this `time` or before")
	flags.BoolVar(&l.refused, "refused", false, "only refused commands")
	flags.BoolVar(&l.events, "events", false, "only events")
	flags.Var(amount(&q.Limit, 1), "limit", "at most so many (default all; 10 to begin --follow with)")
	flags.StringVar(&l.cursor, "cursor", "", "go on after a page; the page before tells its `cursor`")
	flags.BoolVar(&l.follow, "follow", false, "go on with what is recorded and refused from now on")
	for _, other := range []string{"until", "cursor"} {
		cmd.MarkFlagsMutuallyExclusive("follow", other)
	}
	cmd.MarkFlagsMutuallyExclusive("events", "refused")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		q.Text = strings.Join(args, " ")
		if l.key != "" {
			q.Keys = storedKeys(l.key)
		}
		switch {
		case l.refused:
			q.Refused = audit.RefusedOnly
		case !l.events:
			q.Refused = audit.RefusedWith
		}
		// The number of an event is a cursor too: those before it.
		if before, err := strconv.ParseUint(l.cursor, 10, 64); err == nil {
			q.Before = before
		} else {
			q.Cursor = l.cursor
		}
		work := func(ctx context.Context, s *session) error {
			printer := a.newPrinter(*output, "SEQUENCE", "RECORDED", "TYPE", "OF", "BY", "ON BEHALF OF", "EFFECTIVE", "REASON")
			p := &logPrinter{app: a, s: s, printer: printer}
			var err error
			if q.Actors, err = s.actorIDs(ctx, l.actor); err != nil {
				return err
			}
			if l.follow {
				return p.follow(ctx, q)
			}
			return p.list(ctx, q)
		}
		// No bound on the whole: a long log takes its time, and each of its pages has a bound of its own.
		log := slog.New(slog.DiscardHandler)
		if l.follow {
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

// logPrinter writes events and refused commands.
type logPrinter struct {
	app     *app
	s       *session
	printer *printer
	// lacking is why refused commands are not shown, when they should be and may be later.
	lacking error
}

// list writes the pages of the log up to the limit; without one, all.
func (l *logPrinter) list(ctx context.Context, q audit.LogQuestion) error {
	limit := q.Limit
	for {
		page, err := l.page(ctx, &q)
		if err != nil {
			return err
		}
		for _, item := range page.Items {
			if err := l.add(ctx, item); err != nil {
				return err
			}
		}
		q.Cursor, q.Before = page.Cursor, 0
		if page.Cursor == "" {
			q.Before = page.Next
		}
		if q.Limit = limit - l.printer.count; !page.More || limit > 0 && q.Limit <= 0 {
			if err := l.end(ctx, q, page.More); err != nil {
				return err
			}
			return cmp.Or(l.lacking, l.s.upTo(ctx, audit.Basis{Through: page.Through, Tail: page.Tail}, time.Time{}))
		}
		q.Limit = max(q.Limit, 0)
	}
}

// page asks for a page. While there is no audit store to ask nothing is known of refused commands: the events are shown without.
func (l *logPrinter) page(ctx context.Context, q *audit.LogQuestion) (audit.LogPage, error) {
	page, err := l.s.queries.Log(ctx, *q)
	if q.Refused != audit.RefusedWith || !errors.IsAny(err, audit.ErrNoStore, audit.ErrStoreBehind, audit.ErrStoreStopped) {
		return page, err
	}
	if errors.Is(err, audit.ErrNoStore) {
		l.app.sayf("refused commands are not shown: the projector keeps no audit store")
	} else {
		l.lacking = errors.WithHint(errors.Wrapf(errStale, "refused commands are not shown: %v", err), errors.FlattenHints(err))
	}
	q.Refused = ""
	return l.s.queries.Log(ctx, *q)
}

// end completes the list, and says how to go on.
func (l logPrinter) end(ctx context.Context, q audit.LogQuestion, more bool) error {
	if err := l.printer.end(); err != nil {
		return err
	}
	if l.printer.count == 0 {
		if err := l.s.mustKnow(ctx, []string{q.Node}, q.Module); err != nil {
			return err
		}
	}
	switch {
	case l.printer.count == 0 && l.printer.format == formatTable:
		l.app.sayf("no such events%s", unknownAggregate(q.Aggregate))
	case more && q.Cursor != "":
		l.app.sayf("there may be more; go on with --cursor %s", shellWord(q.Cursor))
	case more:
		l.app.sayf("there may be more; go on with --cursor %d", q.Before)
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

// follow writes the last ones oldest first, and then new ones until it is interrupted, which is how it is meant to end.
func (l *logPrinter) follow(ctx context.Context, q audit.LogQuestion) error {
	if q.Limit == 0 {
		q.Limit = followTail
	}
	latest, onward, err := l.latest(ctx, q)
	if err != nil {
		return err
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
	for item, err := range l.s.queries.Follow(ctx, onward, l.sayWaits()) {
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

// latest gives the last ones, newest first, and the question that goes on after them: nothing that is recorded between the two is lost.
func (l *logPrinter) latest(ctx context.Context, q audit.LogQuestion) (latest []audit.Item, onward audit.LogQuestion, err error) {
	onward = q
	if q.Refused == "" {
		// Where the stream ends now is where following begins; what comes meanwhile is not among the latest.
		tail, err := l.s.queries.Log(ctx, audit.LogQuestion{Limit: 1})
		if err != nil {
			return nil, onward, err
		}
		if len(tail.Items) > 0 {
			onward.After = tail.Items[0].Sequence
			q.Before = onward.After + 1
		}
	}
	for limit := q.Limit; q.Limit > 0; q.Limit = limit - len(latest) {
		page, err := l.s.queries.Log(ctx, q)
		if errors.Is(err, audit.ErrNoStore) && q.Refused == audit.RefusedWith {
			l.app.sayf("refused commands are not shown: the projector keeps no audit store")
			onward.Refused = ""
			return l.latest(ctx, onward)
		}
		if err != nil {
			return nil, onward, err
		}
		if q.Refused != "" && onward.Cursor == "" {
			onward.Cursor = page.Onward
		}
		latest = append(latest, page.Items...)
		if !page.More {
			break
		}
		q.Cursor, q.Before = page.Cursor, 0
		if page.Cursor == "" {
			q.Before = page.Next
		}
	}
	return latest, onward, nil
}

// sayWaits says once for each reason why nothing new is shown.
func (l *logPrinter) sayWaits() func(error) {
	said := ""
	return func(err error) {
		if why := err.Error(); why != said {
			said = why
			l.app.sayf("waiting: %s", printable(why))
		}
	}
}

// live writes out what is there so far. A table is begun anew, without its header: columns can't wait for their widest cell.
func (l logPrinter) live() error {
	if l.printer.format == formatTable && l.printer.table.Length() > 0 {
		l.printer.text(render(l.printer.table))
		l.printer.table = newTable(nil)
	}
	return l.printer.flush()
}

// add writes an event or a refused command, with names in the place of opaque ids.
func (l logPrinter) add(ctx context.Context, item audit.Item) error {
	people := []*string{&item.Actor, &item.OnBehalfOf}
	if item.Refused != nil {
		people = append(people, &item.Refused.Actor, &item.Refused.OnBehalfOf)
	}
	for _, id := range people {
		var err error
		if *id, err = l.s.reader.ActorName(ctx, *id); err != nil {
			return err
		}
	}
	body, err := encodeJSON(item)
	if err != nil {
		return errors.Wrapf(err, "event %d", item.Sequence)
	}
	shown := line{name: strconv.FormatUint(item.Sequence, 10), json: body, cells: func() []string { return l.eventCells(item) }}
	switch {
	case item.Refused != nil:
		shown.name, shown.shade = item.Refused.Command, red
		shown.cells = func() []string { return l.refusedCells(*item.Refused) }
	case item.Problem != "":
		shown.shade = yellow
	}
	return l.printer.add(shown)
}

func (l logPrinter) eventCells(item audit.Item) []string {
	effective := ""
	if !item.Effective.Equal(item.Recorded) {
		effective = showTime(item.Effective, l.s.zone)
	}
	if item.Backfill {
		effective += " (backfill)"
	}
	var said struct {
		Reason string `json:"reason"`
	}
	if len(item.Data) > 0 && json.Unmarshal(item.Data, &said) != nil {
		said.Reason = "" // an event whose reason is something else has none to show in a line
	}
	kind := first(item.Type, "unreadable: "+item.Problem)
	return []string{
		strconv.FormatUint(item.Sequence, 10), showTime(item.Recorded, l.s.zone), kind, showKey(item.Key), item.Actor, item.OnBehalfOf, effective, said.Reason,
	}
}

func (l logPrinter) refusedCells(r audit.Refused) []string {
	kind := "refused: " + strings.TrimSpace(r.Aggregate+" "+r.Verb)
	reason := r.Message
	if r.Code != "" {
		reason = r.Code + ": " + reason
	}
	return []string{"", showTime(r.Recorded, l.s.zone), kind, showKey(r.Key), r.Actor, r.OnBehalfOf, "", reason}
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
