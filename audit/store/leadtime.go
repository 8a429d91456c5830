package store

import (
	"cmp"
	"context"
	"slices"
	"time"

	"catenary/audit"
)

// leadTimes measures how long deliveries took: from the merge of the commit where that is known, or else from when the same was first
// published or told to any node.
func (c *counter) leadTimes(ctx context.Context, answer *audit.ReportAnswer) error {
	began := map[string]*beginning{}
	var all []measured
	err := c.told(ctx, true, func(d delivery) {
		if !d.now.stands {
			return
		}
		name := d.now.name()
		b := began[name]
		if b == nil {
			b = &beginning{fact: d.now, first: d.at}
			began[name] = b
		}
		b.first = min(b.first, d.at)
		if c.spans(d.at) {
			all = append(all, measured{of: c.of(d), at: d.at, from: b})
		}
	})
	if err != nil {
		return err
	}
	for _, b := range began {
		if err := c.begin(ctx, b); err != nil {
			return err
		}
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

// beginning is when something that was told came to be.
type beginning struct {
	fact       *fact
	first      instant
	fromCommit bool
}

// measured is a delivery whose time is measured.
type measured struct {
	of   string
	at   instant
	from *beginning
}

// begin finds when something came to be: the merge of its commit, or else its publication.
func (c *counter) begin(ctx context.Context, b *beginning) error {
	build, commit, repository := b.fact.build, b.fact.commit, ""
	if !b.fact.reference.IsZero() {
		p, err := c.publication(ctx, b.fact.reference)
		if err != nil {
			return err
		}
		if p != nil {
			if !p.At.IsZero() {
				b.first = min(b.first, instantOf(p.At))
			}
			build, commit = cmp.Or(build, p.Build), cmp.Or(commit, p.Commit)
		}
	}
	if build != "" {
		found, err := c.build(ctx, build)
		if err != nil {
			return err
		}
		if found != nil {
			commit, repository = cmp.Or(commit, found.Commit), found.Repository
		}
	}
	if commit == "" {
		return nil
	}
	found, err := c.commits(ctx, commit, repository, 1)
	if err == nil && len(found) > 0 && !found[0].Merged.IsZero() {
		b.first, b.fromCommit = instantOf(found[0].Merged), true
	}
	return err
}

// quantile gives the span that so many of a hundred are not above. Spans are sorted.
func quantile(spans []time.Duration, percent int) audit.Duration {
	if len(spans) == 0 {
		return 0
	}
	at := (len(spans)*percent + 99) / 100
	return audit.Duration(spans[max(at, 1)-1])
}
