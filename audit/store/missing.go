package store

import (
	"context"
	"slices"

	"github.com/cockroachdb/errors"

	"catenary/audit"
	"catenary/chain"
	"catenary/es"
	"catenary/events"
)

// scope says of what an answer tells.
type scope struct {
	// assignments says that it tells of assignments, of this node and module where they are given, and else only of others. The zero
	// value tells of anything.
	assignments  bool
	node, module string
	others       []es.Ref
}

// bounds gives the scope of an answer about assignments.
func bounds(node, module string, others ...es.Ref) scope {
	return scope{node: node, module: module, assignments: true, others: others}
}

// takes says whether an instance is in the scope. Whose event it is that nobody can say, may be anybody's.
func (s scope) takes(ref es.Ref) bool {
	switch {
	case !s.assignments || ref.IsZero() || slices.Contains(s.others, ref):
		return true
	case ref.Aggregate != events.AggregateAssignment:
		return false
	}
	node, module := placeOf(ref)
	return (s.node == "" || s.node == node) && (s.module == "" || s.module == module)
}

// placeOf gives the node and the module of an assignment; nothing for other instances.
func placeOf(ref es.Ref) (node, module string) {
	names, err := es.SplitKey(ref.Key)
	if err != nil || ref.Aggregate != events.AggregateAssignment || len(names) != 2 {
		return "", ""
	}
	return names[0], names[1]
}

// missing adds to an answer what is not in it although it may belong there.
func (r *reading) missing(ctx context.Context, basis *audit.Basis, s scope) error {
	if r.place.missing == 0 {
		return nil
	}
	return r.each(ctx, func(scan func(...any) error) error {
		var ref es.Ref
		var m audit.Missing
		if err := scan(&ref.Aggregate, &ref.Key, &m.Event, &m.Type, &m.Why, &m.Behind, &m.Reason); err != nil {
			return errors.Wrap(err, "read what is missing")
		}
		if !s.takes(ref) {
			return nil
		}
		if basis.MissingCount++; len(basis.Missing) == audit.MaxMissing {
			return nil
		}
		if !ref.IsZero() {
			m.Instance = instanceOf(ref)
		}
		basis.Missing = append(basis.Missing, m)
		return nil
	}, `SELECT aggregate, "key", event, type, why, behind, ifnull(said, '') FROM park
 UNION ALL SELECT ifnull(aggregate, ''), ifnull("key", ''), event, ifnull(type, ''), ?, 0, reason FROM skip ORDER BY event`, audit.WhySkipped)
}

// origins are the instances that an answer about an assignment tells of beside it.
func origins(a audit.BlameAnswer) []es.Ref {
	var others []es.Ref
	if a.Now != nil && !a.Now.Reference.IsZero() {
		others = append(others, es.Ref{Aggregate: events.AggregatePublication, Key: es.Key(chain.ReferenceNames(a.Now.Reference)...)})
	}
	if a.Build != nil {
		others = append(others, es.Ref{Aggregate: events.AggregateBuild, Key: es.Key(a.Build.ID)})
	}
	if a.Commit != nil {
		others = append(others, es.Ref{Aggregate: events.AggregateCommit, Key: es.Key(a.Commit.Repository, a.Commit.Commit)})
	}
	return others
}
