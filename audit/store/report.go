package store

import (
	"context"
	"database/sql"
	"slices"
	"strings"
	"time"

	"github.com/cockroachdb/errors"

	"catenary/audit"
	"catenary/events"
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
		return report(ctx, &answer)
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

// spans says whether a moment lies in the span that is asked for.
func (c *counter) spans(at instant) bool {
	return (c.q.Since.IsZero() || at >= instantOf(c.q.Since)) && (c.q.Until.IsZero() || at < instantOf(c.q.Until))
}

// of gives what a delivery is counted by.
func (c *counter) of(d delivery) string {
	switch c.q.By {
	case audit.ByModule:
		return d.module
	case audit.ByWeek:
		at := d.at.time().In(c.zone)
		return at.AddDate(0, 0, -(int(at.Weekday())+6)%7).Format(time.DateOnly)
	}
	return d.node
}

// delivery is something a node was told that it had not been told before.
type delivery struct {
	pair
	at   instant
	kind string // one of the Diff constants
	now  *fact
	// before is what the node was told until then; nil when it was told nothing.
	before *fact
}

// toldColumns are what a delivery is made of: far less than a row has, since reports read all rows.
const toldColumns = `r."key", r.sequence, r.valid_from, r.stands, r.artifact, r.package, r.version, r.build, r."commit"`

// toldInOrder lets keys and, for each, its rows be read in the order of their indexes: to sort a million rows takes longer than to read
// them.
const toldInOrder = ` FROM "key" k NOT INDEXED CROSS JOIN record r INDEXED BY record_of ON r."key" = k.id WHERE `

func scanTold(scan func(...any) error, d *delivery) error {
	f := &fact{}
	var artifact, pkg, version, build, commit sql.NullString
	if err := scan(&d.node, &d.module, &f.key, &f.sequence, &f.from, &f.stands, &artifact, &pkg, &version, &build, &commit); err != nil {
		return errors.Wrap(err, "read what was told")
	}
	f.reference.Artifact, f.build, f.commit = artifact.String, build.String, commit.String
	if pkg.Valid {
		f.reference.Package = &events.Package{Name: pkg.String, Version: version.String}
	}
	d.now = f
	return nil
}

// told calls take for every delivery, by node and module and in the order they became true, also for those before the span. Only
// those from the span on are read when earlier ones make no difference.
func (c *counter) told(ctx context.Context, earlier bool, take func(delivery)) error {
	var w where
	w.and("k.kind = ?", kindTold)
	anyOf(&w, "k.node", c.q.Nodes)
	if c.q.Module != "" {
		w.and("k.module = ?", c.q.Module)
	}
	if !earlier && !c.q.Since.IsZero() {
		w.and("r.valid_to >= ?", int64(instantOf(c.q.Since)))
	}
	var last *fact
	seen := map[uint64]bool{}
	return c.each(ctx, func(scan func(...any) error) error {
		d := delivery{}
		if err := scanTold(scan, &d); err != nil {
			return err
		}
		if last == nil || last.key != d.now.key {
			last = nil
			clear(seen)
		}
		before := last
		last = d.now
		if seen[d.now.sequence] {
			return nil // what stood before a backfill goes on after it
		}
		seen[d.now.sequence] = true
		d.at = d.now.from
		stood := before != nil && before.stands
		switch {
		case !stood && d.now.stands:
			d.kind = audit.DiffStarted
		case stood && !d.now.stands:
			d.kind, d.before = audit.DiffEnded, before
		case stood && !before.same(d.now):
			d.kind, d.before = audit.DiffChanged, before
		default:
			return nil // told the same again
		}
		take(d)
		return nil
	}, "SELECT k.node, k.module, "+toldColumns+toldInOrder+w.String()+" ORDER BY k.id, r.valid_from, r.id", w.args...)
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
	err := c.told(ctx, false, func(d delivery) {
		if !c.spans(d.at) {
			return
		}
		row := counts.of(c.of(d))
		switch d.kind {
		case audit.DiffStarted:
			row.Started++
		case audit.DiffChanged:
			row.Changed++
		case audit.DiffEnded:
			row.Ended++
		}
	})
	answer.Deliveries = counts.sorted()
	return err
}

func (c *counter) rollbacks(ctx context.Context, answer *audit.ReportAnswer) error {
	counts := newTally(func(name string) *audit.RollbackCount { return &audit.RollbackCount{Of: name} })
	var at pair
	had := map[string]bool{}
	err := c.told(ctx, true, func(d delivery) {
		if d.pair != at {
			at = d.pair
			clear(had)
		}
		returned := had[d.now.name()]
		if d.now.stands {
			had[d.now.name()] = true
		}
		if d.kind != audit.DiffChanged || !c.spans(d.at) {
			return
		}
		switch {
		case lower(d.now.reference, d.before.reference):
			counts.of(c.of(d)).Lower++
		case returned:
			counts.of(c.of(d)).Returned++
		}
	})
	answer.Rollbacks = counts.sorted()
	return err
}

// name is what a fact tells to run.
func (f *fact) name() string {
	return f.reference.String() + "\x00" + f.build + "\x00" + f.commit
}
