package store

import (
	"cmp"
	"context"
	"database/sql"

	"github.com/cockroachdb/errors"

	"catenary/audit"
	"catenary/es"
)

// Blame says where what a node runs comes from. It gives errors marked [audit.ErrInvalid], [audit.ErrNotFound] and
// [audit.ErrStoreBehind].
func (s *Store) Blame(ctx context.Context, q audit.BlameQuestion) (audit.BlameAnswer, error) {
	for what, name := range map[string]string{"node": q.Node, "module": q.Module} {
		if err := es.CheckName(what, name); err != nil {
			return audit.BlameAnswer{}, errors.Mark(err, audit.ErrInvalid)
		}
	}
	answer := audit.BlameAnswer{Shows: shows(q.Observed), Node: q.Node, Module: q.Module}
	err := s.read(ctx, func(ctx context.Context, r *reading) error {
		answer.Basis = r.basis()
		var at, known instant
		answer.Moment, at, known = r.moment(q.Moment)
		b := blamed{reading: r, known: known, pair: pair{q.Node, q.Module}}
		key, err := r.keyOf(ctx, kindOf(q.Observed), es.Key(q.Node, q.Module))
		if err != nil {
			return err
		}
		f, err := r.factOf(ctx, key, at, known)
		if err != nil {
			return err
		}
		if f == nil {
			return r.neverThere(ctx, q, answer.Moment)
		}
		if err := b.answer(ctx, f, &answer); err != nil {
			return err
		}
		return r.missing(ctx, &answer.Basis, bounds(q.Node, q.Module, origins(answer)...))
	})
	return answer, err
}

// neverThere is the error for an assignment of which nothing was known.
func (r *reading) neverThere(ctx context.Context, q audit.BlameQuestion, m audit.Moment) error {
	what := "told to run"
	if q.Observed {
		what = "reported to run"
	}
	err := errors.Newf("node %s was never %s %s up to %s", q.Node, what, q.Module, m.At.Format(timeLayout))
	var known bool
	if e := r.tx.QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM "key" WHERE kind = ? AND node = ?)`, kindTold, q.Node).Scan(&known); e != nil {
		return errors.Wrapf(e, "look for node %s", q.Node)
	}
	hint := "as-of --node lists what it was told to run"
	if !known {
		hint = "nothing is known of a node of this name"
	}
	var basis audit.Basis
	if e := r.missing(ctx, &basis, bounds(q.Node, q.Module)); e != nil {
		return e
	}
	for _, m := range basis.Missing {
		hint = m.String()
	}
	return errors.Mark(errors.WithHint(err, hint), audit.ErrNotFound)
}

// timeLayout is how messages write times.
const timeLayout = "2006-01-02T15:04:05Z07:00"

// blamed is an assignment that is asked about, as it was known at a moment.
type blamed struct {
	*reading
	pair
	known instant
}

func (b blamed) answer(ctx context.Context, f *fact, answer *audit.BlameAnswer) error {
	// What was first said is what made it so; what came later said the same again.
	first, err := b.first(ctx, f)
	if err != nil {
		return err
	}
	if answer.Change, err = b.deed(ctx, first.sequence); err != nil {
		return err
	}
	if first.sequence != f.sequence {
		touched, err := b.deed(ctx, f.sequence)
		if err != nil {
			return err
		}
		answer.Touched = &touched
	}
	answer.Stands = f.stands
	if answer.Now, err = b.shown(f); err != nil {
		return err
	}
	before, err := b.factOf(ctx, f.key, first.from-1, b.known)
	if err != nil {
		return err
	}
	if answer.Before, err = b.shown(before); err != nil {
		return err
	}
	if !f.stands {
		return nil
	}
	return b.origin(ctx, f, answer)
}

// first gives the fact from which on the same was so.
func (b blamed) first(ctx context.Context, f *fact) (*fact, error) {
	if f.since >= f.from {
		return f, nil
	}
	first, err := b.factOf(ctx, f.key, f.since, b.known)
	if err != nil || first == nil {
		return f, err
	}
	return first, nil
}

func (b blamed) shown(f *fact) (*audit.Standing, error) {
	if f == nil || !f.stands {
		return nil, nil
	}
	shown, err := stood{pair: b.pair, fact: f}.standing()
	return &shown, err
}

// origin adds the publication, build and commit that a fact comes from.
func (b blamed) origin(ctx context.Context, f *fact, answer *audit.BlameAnswer) error {
	build, commit := f.build, f.commit
	if !f.reference.IsZero() {
		p, err := b.publication(ctx, f.reference)
		if err != nil {
			return err
		}
		if p != nil {
			answer.Published = p
			build, commit = cmp.Or(build, p.Build), cmp.Or(commit, p.Commit)
		}
	}
	if build != "" {
		found, err := b.build(ctx, build)
		if err != nil {
			return err
		}
		if found != nil {
			answer.Build = found
			commit = cmp.Or(commit, found.Commit)
		}
	}
	if commit == "" {
		return nil
	}
	repository := ""
	if answer.Build != nil {
		repository = answer.Build.Repository
	}
	found, err := b.commits(ctx, commit, repository, 1)
	if len(found) > 0 {
		answer.Commit = &found[0]
	}
	return err
}

// deed gives an event with who is behind it.
func (r *reading) deed(ctx context.Context, sequence uint64) (audit.Deed, error) {
	d := audit.Deed{Sequence: sequence}
	var effective, recorded instant
	var actor, onBehalfOf, command, causation, correlation, reason, rollout sql.NullString
	err := r.tx.QueryRowContext(ctx, `SELECT id, type, effective, recorded, backfill, actor, on_behalf_of, command, causation, correlation,
 data ->> '$.reason', data ->> '$.rollout' FROM event WHERE sequence = ?`, int64(sequence)).
		Scan(&d.Event, &d.Type, &effective, &recorded, &d.Backfill, &actor, &onBehalfOf, &command, &causation, &correlation, &reason, &rollout)
	if err != nil {
		return d, errors.Wrapf(err, "read event %d", sequence)
	}
	d.Effective, d.Recorded = effective.time(), recorded.time()
	d.Command, d.Causation, d.Correlation = command.String, causation.String, correlation.String
	d.Reason, d.Rollout = reason.String, rollout.String
	if d.Actor, err = r.person(ctx, actor.String); err != nil {
		return d, err
	}
	if onBehalfOf.Valid {
		p, err := r.person(ctx, onBehalfOf.String)
		if err != nil {
			return d, err
		}
		d.OnBehalfOf = &p
	}
	return d, nil
}
