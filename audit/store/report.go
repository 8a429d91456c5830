package store

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/cockroachdb/errors"

	"catenary/audit"
)

// Report counts over a span of time. It gives errors marked [audit.ErrInvalid] and [audit.ErrStoreBehind].
func (s *Store) Report(ctx context.Context, q audit.ReportQuestion) (audit.ReportAnswer, error) {
	if q.By == "" {
		q.By = audit.ByNode
	}
	answer := audit.ReportAnswer{Report: q.Report, By: q.By, Since: q.Since, Until: q.Until}
	c := counter{q: q, zone: time.UTC}
	report, err := c.check()
	if err != nil {
		return answer, err
	}
	err = s.read(ctx, func(ctx context.Context, r *reading) error {
		answer.Basis = r.basis()
		c.reading = r
		if err := report(ctx, &answer); err != nil {
			return err
		}
		told := bounds("", q.Module)
		if q.Report == audit.ReportLeadTime {
			told = scope{}
		}
		return r.missing(ctx, &answer.Basis, told)
	})
	return answer, err
}

// counter counts for one report.
type counter struct {
	*reading
	q    audit.ReportQuestion
	zone *time.Location
}

// check looks at the question and gives what answers it.
func (c *counter) check() (func(context.Context, *audit.ReportAnswer) error, error) {
	fail := func(format string, args ...any) error {
		return errors.Mark(errors.Newf(format, args...), audit.ErrInvalid)
	}
	if by := []string{audit.ByNode, audit.ByModule, audit.ByWeek}; !slices.Contains(by, c.q.By) {
		return nil, fail("by is %q: it is one of %s", c.q.By, strings.Join(by, ", "))
	}
	if !c.q.Since.IsZero() && !c.q.Until.IsZero() && !c.q.Since.Before(c.q.Until) {
		return nil, fail("since %s is not before until %s", c.q.Since.Format(timeLayout), c.q.Until.Format(timeLayout))
	}
	if c.q.Zone != "" {
		zone, err := time.LoadLocation(c.q.Zone)
		if err != nil {
			return nil, fail("zone %q is not known: give one such as Europe/Berlin", c.q.Zone)
		}
		c.zone = zone
	}
	reports := map[string]func(context.Context, *audit.ReportAnswer) error{
		audit.ReportDeliveries: c.deliveries, audit.ReportRollbacks: c.rollbacks, audit.ReportDrift: c.drift, audit.ReportLeadTime: c.leadTimes,
	}
	report, ok := reports[c.q.Report]
	if !ok {
		return nil, fail("report is %q: it is one of %s, %s, %s, %s", c.q.Report, audit.ReportDeliveries, audit.ReportRollbacks, audit.ReportDrift, audit.ReportLeadTime)
	}
	return report, nil
}

// turned are the turns of one assignment, or so many of them: as many as a report needs to know apart.
type turned struct {
	pair
	turn  turn
	count int
	// at is when it was, where the report asks.
	at instant
}

// of gives what turns are counted by.
func (c *counter) of(t turned) string {
	switch c.q.By {
	case audit.ByModule:
		return t.module
	case audit.ByWeek:
		return c.week(t.at)
	}
	return t.node
}

// week gives the Monday a moment's week begins with.
func (c *counter) week(at instant) string {
	local := at.time().In(c.zone)
	return local.AddDate(0, 0, -(int(local.Weekday())+6)%7).Format(time.DateOnly)
}

// during asks for what was in the span, of the nodes and the module that are asked for.
func (c *counter) during(w *where, turns ...turn) {
	anyOf(w, "r.turn", turns)
	if !c.q.Since.IsZero() {
		w.and("r.valid_from >= ?", int64(instantOf(c.q.Since)))
	}
	if !c.q.Until.IsZero() {
		w.and("r.valid_from < ?", int64(instantOf(c.q.Until)))
	}
}

// about asks for the nodes and the module.
func (c *counter) about(w *where) {
	w.and("TRUE")
	anyOf(w, "k.node", c.q.Nodes)
	if c.q.Module != "" {
		w.and("k.module = ?", c.q.Module)
	}
}

// turns calls take for every turn in the span, or for so many alike. All are read from one index.
func (c *counter) turns(ctx context.Context, take func(turned), turns ...turn) error {
	var during, about where
	c.during(&during, turns...)
	c.about(&about)
	at, apart := "0", ""
	if c.q.By == audit.ByWeek {
		at, apart = "r.valid_from", ", r.valid_from"
	}
	return c.each(ctx, func(scan func(...any) error) error {
		var t turned
		if err := scan(&t.node, &t.module, &t.turn, &t.at, &t.count); err != nil {
			return errors.Wrap(err, "read what was told")
		}
		take(t)
		return nil
	}, `SELECT k.node, k.module, t.turn, t.at, t.n FROM (
  SELECT r.turn, r."key", `+at+` AS at, count(*) AS n FROM record r WHERE `+during.String()+` GROUP BY r.turn, r."key"`+apart+`
) t CROSS JOIN "key" k ON k.id = t."key" WHERE `+about.String(), append(during.args, about.args...)...)
}

// tally counts by name, in order.
type tally[T any] struct {
	rows  map[string]*T
	blank func(name string) *T
}

func newTally[T any](blank func(string) *T) tally[T] {
	return tally[T]{rows: map[string]*T{}, blank: blank}
}

func (t tally[T]) of(name string) *T {
	row, ok := t.rows[name]
	if !ok {
		row = t.blank(name)
		t.rows[name] = row
	}
	return row
}

func (t tally[T]) sorted() []T {
	names := make([]string, 0, len(t.rows))
	for name := range t.rows {
		names = append(names, name)
	}
	slices.Sort(names)
	rows := make([]T, 0, len(names))
	for _, name := range names {
		rows = append(rows, *t.rows[name])
	}
	return rows
}

func (c *counter) deliveries(ctx context.Context, answer *audit.ReportAnswer) error {
	counts := newTally(func(name string) *audit.DeliveryCount { return &audit.DeliveryCount{Of: name} })
	err := c.turns(ctx, func(t turned) {
		row := counts.of(c.of(t))
		switch t.turn {
		case turnStarted:
			row.Started += t.count
		case turnChanged, turnLowered, turnReturned:
			row.Changed += t.count
		case turnEnded:
			row.Ended += t.count
		}
	}, turnStarted, turnChanged, turnLowered, turnReturned, turnEnded)
	answer.Deliveries = counts.sorted()
	return err
}

func (c *counter) rollbacks(ctx context.Context, answer *audit.ReportAnswer) error {
	counts := newTally(func(name string) *audit.RollbackCount { return &audit.RollbackCount{Of: name} })
	err := c.turns(ctx, func(t turned) {
		row := counts.of(c.of(t))
		if t.turn == turnLowered {
			row.Lower += t.count
		} else {
			row.Returned += t.count
		}
	}, turnLowered, turnReturned)
	answer.Rollbacks = counts.sorted()
	return err
}
