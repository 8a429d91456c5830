package store

import (
	"context"
	"database/sql"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/cockroachdb/errors"

	"catenary/audit"
	"catenary/es"
)

// maxLogBytes bounds the bodies of a page of the log.
const maxLogBytes = 8 << 20

// Log gives the events asked for, and refused commands where they are. It gives errors marked [audit.ErrInvalid] and
// [audit.ErrStoreBehind], and those of the stream, which long bodies are read from.
func (s *Store) Log(ctx context.Context, q audit.LogQuestion) (audit.LogPage, error) {
	l, err := newLogged(s, q)
	if err != nil {
		return audit.LogPage{}, err
	}
	page := audit.LogPage{Items: []audit.Item{}}
	err = s.read(ctx, func(ctx context.Context, r *reading) error {
		var events, refused []audit.Item
		if q.Refused != audit.RefusedOnly {
			if events, err = l.events(ctx, r); err != nil {
				return err
			}
		}
		if q.Refused != "" && len(q.Types) == 0 {
			if refused, err = l.refused(ctx, r); err != nil {
				return err
			}
		}
		l.merge(&page, events, refused, audit.LogPlace{Event: r.place.head.Sequence, Refused: r.place.refused})
		page.Through = r.place.head.Sequence
		return nil
	})
	return page, err
}

// logged is a question about the log.
type logged struct {
	store   *Store
	q       audit.LogQuestion
	most    int
	forward bool
	// from is where the question begins: only what stands after it is asked for, oldest first, or before it, newest first. There zero
	// means all.
	from audit.LogPlace
	// cut says that there are more events than were read.
	cut bool
}

func newLogged(s *Store, q audit.LogQuestion) (*logged, error) {
	if err := q.Validate(); err != nil {
		return nil, err
	}
	l := &logged{store: s, q: q, most: audit.Page{Limit: q.Limit}.Rows(), forward: q.Oldest || q.After > 0, from: audit.LogPlace{Event: max(q.Before, q.After)}}
	if q.Text != "" && len(textWords(q.Text)) == 0 {
		return nil, errors.Mark(errors.Newf("text %q has no word in it: give letters or digits", q.Text), audit.ErrInvalid)
	}
	if q.Cursor == "" {
		return l, nil
	}
	var err error
	l.from, err = audit.ParseLogPlace(q.Cursor)
	return l, err
}

// typeVersion ends the stored name of an event type.
var typeVersion = regexp.MustCompile(`\.v[0-9]+$`)

// conditions are what events and refused commands have in common.
func (l *logged) conditions(w *where) {
	q := l.q
	if q.Aggregate != "" {
		w.and("t.aggregate = ?", q.Aggregate)
	}
	anyOf(w, `t."key"`, q.Keys)
	if len(q.Actors) > 0 {
		var either where
		anyOf(&either, "t.actor", q.Actors)
		anyOf(&either, "t.on_behalf_of", q.Actors)
		w.and("("+strings.Join(either.terms, " OR ")+")", either.args...)
	}
	if q.Command != "" {
		w.and("t.command = ?", q.Command)
	}
	if q.Correlation != "" {
		w.and("t.correlation = ?", q.Correlation)
	}
	if !q.Since.IsZero() {
		w.and("t.recorded >= ?", int64(instantOf(q.Since)))
	}
	if !q.Until.IsZero() {
		w.and("t.recorded <= ?", int64(instantOf(q.Until)))
	}
}

// beginAt asks for what stands behind a place in the direction asked for, and gives that direction.
func (l *logged) beginAt(w *where, column string, place uint64) (order string) {
	switch {
	case l.forward:
		w.and(column+" > ?", int64(place))
		return "ASC"
	case place > 0:
		w.and(column+" < ?", int64(place))
	}
	return "DESC"
}

func (l *logged) events(ctx context.Context, r *reading) ([]audit.Item, error) {
	q := l.q
	var w where
	w.and("TRUE")
	from := "event t"
	if terms := matching(q.Text); terms != "" {
		// The index of words is read in the order that is asked for, so no more of it than fills a page.
		from = "word CROSS JOIN event t ON t.sequence = word.rowid"
		w.and("word MATCH ?", terms)
	}
	l.conditions(&w)
	if q.Node != "" {
		w.and("t.node = ?", q.Node)
	}
	if q.Module != "" {
		w.and("t.module = ?", q.Module)
	}
	if len(q.Types) > 0 {
		var either where
		for _, name := range q.Types {
			if typeVersion.MatchString(name) {
				either.and("t.type = ?", name)
			} else {
				either.and("t.type >= ? AND t.type < ?", name+".v", name+".w")
			}
		}
		w.and("("+strings.Join(either.terms, " OR ")+")", either.args...)
	}
	column := "t.sequence"
	if from != "event t" {
		column = "word.rowid"
	}
	order := l.beginAt(&w, column, l.from.Event)
	var items []audit.Item
	bytes := 0
	full := errors.New("the page is full")
	err := r.each(ctx, func(scan func(...any) error) error {
		if bytes > maxLogBytes {
			l.cut = true
			return full
		}
		item, err := scanItem(scan)
		bytes += len(item.Data)
		items = append(items, item)
		return err
	}, "SELECT "+itemColumns+" FROM "+from+" WHERE "+w.String()+" ORDER BY "+column+" "+order+" LIMIT ?", append(w.args, l.most+1)...)
	if err != nil && !errors.Is(err, full) {
		return nil, err
	}
	for i := range items {
		if items[i].Data != nil {
			continue
		}
		// It is too long to be kept here, or can't be read: the stream has it.
		m, err := l.store.cfg.Events.Get(ctx, items[i].Sequence)
		if err != nil {
			return nil, errors.Wrapf(err, "read event %d", items[i].Sequence)
		}
		items[i] = audit.NewItem(l.store.cfg.Registry, m)
	}
	return items, nil
}

const itemColumns = `t.sequence, t.id, t.type, t.aggregate, t."key", t.version, t.recorded, t.effective, t.backfill, t.command, t.actor,
 t.on_behalf_of, t.causation, t.correlation, t.data`

func scanItem(scan func(...any) error) (audit.Item, error) {
	var item audit.Item
	var recorded, effective instant
	var command, actor, onBehalfOf, causation, correlation, data sql.NullString
	err := scan(&item.Sequence, &item.ID, &item.Type, &item.Aggregate, &item.Key, &item.Version, &recorded, &effective, &item.Backfill,
		&command, &actor, &onBehalfOf, &causation, &correlation, &data)
	item.Recorded, item.Effective = recorded.time(), effective.time()
	item.Command, item.Actor, item.OnBehalfOf = command.String, actor.String, onBehalfOf.String
	item.Causation, item.Correlation = causation.String, correlation.String
	if data.Valid {
		item.Data = []byte(data.String)
	}
	return item, errors.Wrap(err, "read an event")
}

// textWords gives the words of a text as the index has them.
func textWords(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsNumber(r) && !unicode.IsMark(r) && !unicode.Is(unicode.Co, r)
	})
}

// matching gives the expression that finds what holds all words of a text, or words that begin like them.
func matching(text string) string {
	terms := textWords(text)
	for i, term := range terms {
		terms[i] = `"` + term + `"*`
	}
	return strings.Join(terms, " AND ")
}

func (l *logged) refused(ctx context.Context, r *reading) ([]audit.Item, error) {
	q := l.q
	var w where
	w.and("TRUE")
	l.conditions(&w)
	switch {
	case q.Node != "" && q.Module != "":
		w.and(`t.aggregate = ? AND t."key" = ?`, "assignment", es.Key(q.Node, q.Module))
	case q.Node != "":
		w.and(`(t."key" = ? AND t.aggregate = 'node' OR t.aggregate = 'assignment' AND t."key" >= ? AND t."key" < ?)`, es.Key(q.Node), es.Key(q.Node)+".", es.Key(q.Node)+"/")
	case q.Module != "":
		w.and(`(t."key" = ? AND t.aggregate = 'module' OR t.aggregate = 'assignment' AND t."key" LIKE ? ESCAPE '\')`, es.Key(q.Module), "%."+likely(es.Key(q.Module)))
	}
	for _, word := range textWords(q.Text) {
		w.and(`concat_ws(' ', t."key", t.verb, t.code, t.message, t.hint) LIKE ? ESCAPE '\'`, "%"+likely(word)+"%")
	}
	order := l.beginAt(&w, "t.sequence", l.from.Refused)
	var items []audit.Item
	err := r.each(ctx, func(scan func(...any) error) error {
		refused, err := scanRefused(scan)
		items = append(items, audit.Item{
			Aggregate: refused.Aggregate, Key: refused.Key, Recorded: refused.Recorded, Command: refused.Command, Actor: refused.Actor,
			OnBehalfOf: refused.OnBehalfOf, Causation: refused.Causation, Correlation: refused.Correlation, Refused: &refused,
		})
		return err
	}, "SELECT "+refusedColumns+" FROM refusal t WHERE "+w.String()+" ORDER BY t.sequence "+order+" LIMIT ?", append(w.args, l.most+1)...)
	return items, err
}

// likely escapes text for LIKE.
func likely(text string) string {
	return strings.NewReplacer(`\`, `\\`, "%", `\%`, "_", `\_`).Replace(text)
}

// merge fills a page from events and refused commands, each in the order asked for. Among the two the one that was recorded later comes
// first, or last when the oldest come first. End is how far the file has come.
func (l *logged) merge(page *audit.LogPage, events, refused []audit.Item, end audit.LogPlace) {
	at := l.from
	for len(page.Items) < l.most && len(events)+len(refused) > 0 {
		from := &events
		if len(events) == 0 && l.cut {
			break // what comes next is not known
		}
		if len(events) == 0 || len(refused) > 0 && refused[0].Recorded.After(events[0].Recorded) != l.forward {
			from = &refused
		}
		item := (*from)[0]
		*from = (*from)[1:]
		page.Items = append(page.Items, item)
		if item.Refused != nil {
			at.Refused = item.Refused.Sequence
		} else {
			at.Event = item.Sequence
		}
	}
	page.More = l.cut || len(events)+len(refused) > 0
	if l.forward && !page.More {
		at = at.After(end)
	}
	page.Next = at.Event
	if l.forward && l.q.Refused != "" || page.More && !l.forward {
		page.Cursor = at.String()
	}
	if !l.forward && l.q.Refused != "" {
		page.Onward = end.String()
	}
	page.Items = slices.Clip(page.Items)
}
