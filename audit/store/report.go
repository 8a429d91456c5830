package store

import (
	"context"
	"database/sql"
	"hash/maphash"
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

// told calls take for every delivery, those of one key in the order they became true, also for those before the span. Only those
// from the span on are read when earlier ones make no difference.
//
// Rows are read in the order they were recorded, which is that of the file: read by key, a million of them would each be on another
// page. Where a history was added to, that is not the order they became true in, so such keys are read each on its own.
func (c *counter) told(ctx context.Context, earlier bool, take func(delivery)) error {
	addedTo, err := c.addedTo(ctx)
	if err != nil {
		return err
	}
	var w where
	w.and("k.kind = ?", kindTold)
	anyOf(&w, "k.node", c.q.Nodes)
	if c.q.Module != "" {
		w.and("k.module = ?", c.q.Module)
	}
	if !earlier && !c.q.Since.IsZero() {
		w.and("r.valid_to >= ?", int64(instantOf(c.q.Since)))
	}
	const columns = "SELECT k.node, k.module, " + toldColumns
	last := map[int64]*fact{}
	err = c.each(ctx, func(scan func(...any) error) error {
		var d delivery
		if err := scanTold(scan, &d); err != nil || addedTo[d.now.key] {
			return err
		}
		d.after(last[d.now.key], take)
		last[d.now.key] = d.now
		return nil
	}, columns+` FROM record r NOT INDEXED CROSS JOIN "key" k ON k.id = r."key" WHERE `+w.String()+" ORDER BY r.id", w.args...)
	if err != nil {
		return err
	}
	for key := range addedTo {
		var before *fact
		seen := map[uint64]bool{}
		err := c.each(ctx, func(scan func(...any) error) error {
			var d delivery
			if err := scanTold(scan, &d); err != nil {
				return err
			}
			if !seen[d.now.sequence] { // else it is what stood before something was added, and goes on
				d.after(before, take)
			}
			seen[d.now.sequence], before = true, d.now
			return nil
		}, columns+` FROM record r JOIN "key" k ON k.id = r."key" WHERE r."key" = ? AND `+w.String()+" ORDER BY r.valid_from, r.id", append([]any{key}, w.args...)...)
		if err != nil {
			return err
		}
	}
	return nil
}

// addedTo gives the keys whose history was added to.
func (c *counter) addedTo(ctx context.Context) (map[int64]bool, error) {
	keys := map[int64]bool{}
	err := c.each(ctx, func(scan func(...any) error) error {
		var key int64
		err := scan(&key)
		keys[key] = true
		return errors.Wrap(err, "read a key")
	}, `SELECT DISTINCT k.id FROM event e JOIN "key" k ON k.kind = ? AND k."key" = e."key" WHERE e.backfill AND e.aggregate = ?`, kindTold, events.AggregateAssignment)
	return keys, err
}

// after hands a delivery over if what was told is something else than before.
func (d delivery) after(before *fact, take func(delivery)) {
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
		return // told the same again
	}
	take(d)
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
	// What each key was told before, as hashes: a million names would fill the memory.
	had := map[int64]map[uint64]bool{}
	seed := maphash.MakeSeed()
	err := c.told(ctx, true, func(d delivery) {
		of := had[d.now.key]
		if of == nil {
			of = map[uint64]bool{}
			had[d.now.key] = of
		}
		name := maphash.String(seed, d.now.name())
		returned := of[name]
		if d.now.stands {
			of[name] = true
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
