package store

import (
	"cmp"
	"context"

	"github.com/cockroachdb/errors"

	"catenary/audit"
)

// Diff lists what differs between two states. It gives errors marked [audit.ErrInvalid] and [audit.ErrStoreBehind].
func (s *Store) Diff(ctx context.Context, q audit.DiffQuestion) (audit.DiffAnswer, error) {
	after, err := readCursor(q.Page)
	if err == nil && (q.From.Node == "") != (q.To.Node == "") {
		err = errors.Mark(errors.New("a node is given on one side only: give it on both, or on none"), audit.ErrInvalid)
	}
	if err != nil {
		return audit.DiffAnswer{}, err
	}
	answer := audit.DiffAnswer{Differences: []audit.Difference{}}
	err = s.read(ctx, func(ctx context.Context, r *reading) error {
		answer.Basis = r.basis()
		d := differ{answer: &answer, after: after, most: q.Rows(), acrossNodes: q.From.Node != q.To.Node}
		before, err := r.side(ctx, q.From, q.Module, &answer.From)
		if err != nil {
			return err
		}
		now, err := r.side(ctx, q.To, q.Module, &answer.To)
		if err != nil {
			return err
		}
		if err := d.compare(before, now); err != nil {
			return err
		}
		node := q.From.Node
		if d.acrossNodes {
			node = ""
		}
		return r.missing(ctx, &answer.Basis, bounds(node, q.Module))
	})
	return answer, err
}

// side gives one of the two states, by node and module.
func (r *reading) side(ctx context.Context, side audit.Side, module string, answered *audit.DiffSide) ([]stood, error) {
	moment, at, known := r.moment(side.Moment)
	*answered = audit.DiffSide{Shows: shows(side.Observed), Moment: moment, Node: side.Node}
	var all []stood
	err := r.standing(ctx, selection{kind: kindOf(side.Observed), node: side.Node, module: module}, at, known, func(s stood) bool {
		all = append(all, s)
		return true
	})
	return all, err
}

// differ merges two states.
type differ struct {
	answer *audit.DiffAnswer
	after  pair
	most   int
	// acrossNodes compares modules whatever the node.
	acrossNodes bool
	last        pair
}

func (d *differ) name(s stood) pair {
	if d.acrossNodes {
		return pair{module: s.module}
	}
	return s.pair
}

func (d *differ) compare(before, now []stood) error {
	for len(before) > 0 || len(now) > 0 {
		var b, n *stood
		order := 0
		switch {
		case len(before) == 0:
			order = 1
		case len(now) == 0:
			order = -1
		default:
			p, o := d.name(before[0]), d.name(now[0])
			order = cmp.Or(cmp.Compare(p.node, o.node), cmp.Compare(p.module, o.module))
		}
		if order <= 0 {
			b, before = &before[0], before[1:]
		}
		if order >= 0 {
			n, now = &now[0], now[1:]
		}
		if err := d.add(b, n); err != nil {
			return err
		}
	}
	return nil
}

func (d *differ) add(before, now *stood) error {
	var kind string
	name := pair{}
	switch {
	case before == nil:
		kind, name = audit.DiffStarted, d.name(*now)
		d.answer.Started++
	case now == nil:
		kind, name = audit.DiffEnded, d.name(*before)
		d.answer.Ended++
	case before.same(now.fact):
		d.answer.Same++
		return nil
	default:
		kind, name = audit.DiffChanged, d.name(*now)
		d.answer.Changed++
	}
	if cmp.Or(cmp.Compare(name.node, d.after.node), cmp.Compare(name.module, d.after.module)) <= 0 && d.after != (pair{}) {
		return nil
	}
	if len(d.answer.Differences) == d.most {
		d.answer.Next = cursor(d.last)
		return nil
	}
	d.last = name
	difference := audit.Difference{Node: name.node, Module: name.module, Kind: kind}
	for _, side := range []struct {
		from *stood
		to   **audit.Standing
	}{{before, &difference.Before}, {now, &difference.After}} {
		if side.from == nil {
			continue
		}
		shown, err := side.from.standing()
		if err != nil {
			return err
		}
		*side.to = &shown
	}
	d.answer.Differences = append(d.answer.Differences, difference)
	return nil
}
