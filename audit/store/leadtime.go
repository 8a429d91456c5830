package store

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"slices"
	"time"

	"github.com/cockroachdb/errors"

	"catenary/audit"
	"catenary/chain"
	"catenary/es"
	"catenary/events"
)

// leadTimes measures how long deliveries took: from the merge of the commit where that is known, or else from when the same was first
// published or told to any node.
func (c *counter) leadTimes(ctx context.Context, answer *audit.ReportAnswer) error {
	began := map[named]*beginning{}
	var all []measured
	err := c.delivered(ctx, func(d delivered) {
		b := began[d.named]
		if b == nil {
			b = &beginning{first: d.at, build: d.build, commit: d.commit}
			began[d.named] = b
		}
		b.first = min(b.first, d.at)
		if c.spans(d.at) {
			all = append(all, measured{of: c.of(turned{pair: d.pair, at: d.at}), at: d.at, from: b})
		}
	})
	if err == nil {
		err = c.begin(ctx, began)
	}
	if err != nil {
		return err
	}
	times := map[string][]time.Duration{}
	counts := newTally(func(name string) *audit.LeadTime { return &audit.LeadTime{Of: name} })
	for _, m := range all {
		if !m.from.fromCommit && m.at == m.from.first {
			continue // this is where it began
		}
		row := counts.of(m.of)
		row.Deliveries++
		if m.from.fromCommit {
			row.FromCommit++
		}
		times[m.of] = append(times[m.of], max(0, time.Duration(m.at-m.from.first)))
	}
	answer.LeadTimes = counts.sorted()
	for i := range answer.LeadTimes {
		row := &answer.LeadTimes[i]
		spans := times[row.Of]
		slices.Sort(spans)
		row.Median, row.P90, row.Longest = quantile(spans, 50), quantile(spans, 90), quantile(spans, 100)
	}
	return nil
}

// spans says whether a moment lies in the span that is asked for.
func (c *counter) spans(at instant) bool {
	return (c.q.Since.IsZero() || at >= instantOf(c.q.Since)) && (c.q.Until.IsZero() || at < instantOf(c.q.Until))
}

// named is what a node was told to run, by all that names it.
type named struct{ artifact, pkg, version, build, commit string }

func (n named) reference() events.Reference {
	r := events.Reference{Artifact: n.artifact}
	if n.pkg != "" {
		r.Package = &events.Package{Name: n.pkg, Version: n.version}
	}
	return r
}

// delivered is something that a node was told to run.
type delivered struct {
	pair
	named
	at instant
}

// delivered calls take for everything that a node was told and had not been told just before, also for what was before the span.
func (c *counter) delivered(ctx context.Context, take func(delivered)) error {
	pairs, err := c.pairs(ctx)
	if err != nil {
		return err
	}
	return c.each(ctx, func(scan func(...any) error) error {
		var d delivered
		var key int64
		if err := scan(&key, &d.at, &d.artifact, &d.pkg, &d.version, &d.build, &d.commit); err != nil {
			return errors.Wrap(err, "read what was told")
		}
		var asked bool
		if d.pair, asked = pairs[key]; asked {
			take(d)
		}
		return nil
	}, `SELECT r."key", r.valid_from, ifnull(r.artifact, ''), ifnull(r.package, ''), ifnull(r.version, ''), ifnull(r.build, ''), ifnull(r."commit", '')
 FROM record r NOT INDEXED WHERE r.turn BETWEEN ? AND ?`, turnStarted, turnReturned)
}

// pairs gives the assignments of the nodes and the module that are asked for, by their keys.
func (c *counter) pairs(ctx context.Context) (map[int64]pair, error) {
	var w where
	w.and("k.kind = ?", kindTold)
	c.about(&w)
	pairs := map[int64]pair{}
	err := c.each(ctx, func(scan func(...any) error) error {
		var key int64
		var p pair
		err := scan(&key, &p.node, &p.module)
		pairs[key] = p
		return errors.Wrap(err, "read an assignment")
	}, `SELECT k.id, k.node, k.module FROM "key" k WHERE `+w.String(), w.args...)
	return pairs, err
}

// beginning is when something that was told came to be.
type beginning struct {
	build, commit, repository string
	first                     instant
	fromCommit                bool
}

// measured is a delivery whose time is measured.
type measured struct {
	of   string
	at   instant
	from *beginning
}

// begin finds when each thing came to be: the merge of its commit, or else its publication. Whatever is looked for is asked for at
// once, for thousands of things.
func (c *counter) begin(ctx context.Context, began map[named]*beginning) error {
	published, built, committed := map[string][]*beginning{}, map[string][]*beginning{}, map[string][]*beginning{}
	for n, b := range began {
		if reference := n.reference(); !reference.IsZero() {
			key := es.Key(chain.ReferenceNames(reference)...)
			published[key] = append(published[key], b)
		}
	}
	err := c.lookFor(ctx, published, func(scan func(...any) error) (string, func(*beginning) error, error) {
		var key string
		var build, commit, at sql.NullString
		err := scan(&key, &build, &commit, &at)
		return key, func(b *beginning) error {
			b.build, b.commit = cmp.Or(b.build, build.String), cmp.Or(b.commit, commit.String)
			return b.earlier(at.String)
		}, err
	}, `SELECT k."key", r.build, r."commit", r.value ->> '$.at' FROM json_each(?) n CROSS JOIN "key" k ON k.kind = 'publication' AND k."key" = n.value
 CROSS JOIN record r ON r."key" = k.id AND r.valid_to = ?`)
	if err != nil {
		return err
	}
	for _, b := range began {
		if b.build != "" {
			key := es.Key(b.build)
			built[key] = append(built[key], b)
		}
	}
	err = c.lookFor(ctx, built, func(scan func(...any) error) (string, func(*beginning) error, error) {
		var key string
		var commit, repository sql.NullString
		err := scan(&key, &commit, &repository)
		return key, func(b *beginning) error {
			b.commit, b.repository = cmp.Or(b.commit, commit.String), repository.String
			return nil
		}, err
	}, `SELECT k."key", r."commit", r.value ->> '$.repository' FROM json_each(?) n CROSS JOIN "key" k ON k.kind = 'build' AND k."key" = n.value
 CROSS JOIN record r ON r."key" = k.id AND r.valid_to = ?`)
	if err != nil {
		return err
	}
	for _, b := range began {
		if b.commit != "" {
			committed[b.commit] = append(committed[b.commit], b)
		}
	}
	return c.lookFor(ctx, committed, func(scan func(...any) error) (string, func(*beginning) error, error) {
		var commit string
		var repository, merged sql.NullString
		err := scan(&commit, &repository, &merged)
		return commit, func(b *beginning) error { return b.mergedAt(repository.String, merged.String) }, err
	}, `SELECT r."commit", r.value ->> '$.repository', r.value ->> '$.merged' FROM json_each(?) n CROSS JOIN record r ON r."commit" = n.value AND r.valid_to = ?
 CROSS JOIN "key" k ON k.id = r."key" AND k.kind = 'commit' ORDER BY r.sequence`)
}

// askedAtOnce bounds the names in one statement: a value that it is given has a few megabytes at most.
const askedAtOnce = 10_000

// lookFor reads the newest records of what is looked for by a statement that takes a JSON list of names, and tells each row to those
// who look for its name.
func (c *counter) lookFor(ctx context.Context, wanted map[string][]*beginning, read func(scan func(...any) error) (string, func(*beginning) error, error), query string) error {
	names := make([]string, 0, len(wanted))
	for name := range wanted {
		names = append(names, name)
	}
	for some := range slices.Chunk(names, askedAtOnce) {
		list, err := json.Marshal(some)
		if err != nil {
			return errors.Wrap(err, "list what is looked for")
		}
		err = c.each(ctx, func(scan func(...any) error) error {
			name, tell, err := read(scan)
			if err != nil {
				return errors.Wrap(err, "read where something comes from")
			}
			for _, b := range wanted[name] {
				if err := tell(b); err != nil {
					return err
				}
			}
			return nil
		}, query, string(list), int64(forever))
		if err != nil {
			return err
		}
	}
	return nil
}

// earlier takes in when it was published, as records write times.
func (b *beginning) earlier(at string) error {
	if at == "" {
		return nil
	}
	when, err := time.Parse(time.RFC3339Nano, at)
	b.first = min(b.first, instantOf(when))
	return errors.Wrap(err, "time of a publication")
}

// mergedAt takes in when a commit of this name was merged. Of several repositories that have one of the same name it is the one the build
// names, or else the first that was recorded.
func (b *beginning) mergedAt(repository, at string) error {
	if at == "" || b.fromCommit && repository != b.repository {
		return nil
	}
	when, err := time.Parse(time.RFC3339Nano, at)
	if err != nil {
		return errors.Wrap(err, "time of a merge")
	}
	b.first, b.fromCommit = instantOf(when), true
	return nil
}

// quantile gives the span that so many of a hundred are not above. Spans are sorted.
func quantile(spans []time.Duration, percent int) audit.Duration {
	if len(spans) == 0 {
		return 0
	}
	at := (len(spans)*percent + 99) / 100
	return audit.Duration(spans[max(at, 1)-1])
}
