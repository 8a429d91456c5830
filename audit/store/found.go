package store

import (
	"context"
	"database/sql"

	"github.com/cockroachdb/errors"

	"catenary/audit"
	"catenary/chain"
	"catenary/es"
	"catenary/events"
)

// recorded is the newest value of a record, with the event it comes from.
type recorded[T any] struct {
	key      string
	sequence uint64
	value    T
}

const newestColumns = `k."key", r.sequence, r.value FROM record r JOIN "key" k ON k.id = r."key"`

func scanRecorded[T any](scan func(...any) error) (recorded[T], error) {
	var found recorded[T]
	var value string
	if err := scan(&found.key, &found.sequence, &value); err != nil {
		return found, err
	}
	var err error
	found.value, err = chain.Decode[T]([]byte(value))
	return found, err
}

// newest gives the newest value of a record; nil when there is none.
func newest[T any](ctx context.Context, r *reading, kind, key string) (*recorded[T], error) {
	row := r.tx.QueryRowContext(ctx, "SELECT "+newestColumns+` WHERE k.kind = ? AND k."key" = ? AND r.valid_to = ?`, kind, key, int64(forever))
	found, err := scanRecorded[T](row.Scan)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	return &found, errors.Wrapf(err, "read %s %s", kind, key)
}

// having gives the newest values of a kind's records with a condition, in the order they were recorded.
func having[T any](ctx context.Context, r *reading, kind string, most int, condition string, args ...any) ([]recorded[T], error) {
	var all []recorded[T]
	args = append(append(args, int64(forever), kind), most)
	err := r.each(ctx, func(scan func(...any) error) error {
		found, err := scanRecorded[T](scan)
		all = append(all, found)
		return errors.Wrapf(err, "read a %s", kind)
	}, "SELECT "+newestColumns+" WHERE "+condition+" AND r.valid_to = ? AND k.kind = ? ORDER BY r.sequence LIMIT ?", args...)
	return all, err
}

// publication gives what is known of something published; nil when nothing is.
func (r *reading) publication(ctx context.Context, reference events.Reference) (*audit.TracedPublication, error) {
	found, err := newest[chain.Published](ctx, r, chain.Publications.Name(), es.Key(chain.ReferenceNames(reference)...))
	if err != nil || found == nil {
		return nil, err
	}
	p := tracedPublication(*found)
	return &p, nil
}

func tracedPublication(p recorded[chain.Published]) audit.TracedPublication {
	return audit.TracedPublication{
		Reference: p.value.Reference, Build: p.value.Build, Commit: p.value.Commit, Module: p.value.Module, At: p.value.At,
		Vetoed: p.value.Vetoed != nil, Sequence: p.sequence,
	}
}

// build gives what is known of a build; nil when nothing is.
func (r *reading) build(ctx context.Context, id string) (*audit.TracedBuild, error) {
	found, err := newest[chain.Build](ctx, r, chain.Builds.Name(), es.Key(id))
	if err != nil || found == nil {
		return nil, err
	}
	b := tracedBuild(*found)
	return &b, nil
}

func tracedBuild(b recorded[chain.Build]) audit.TracedBuild {
	return audit.TracedBuild{
		ID: b.value.ID, Module: b.value.Module, Repository: b.value.Repository, Commit: b.value.Commit, State: b.value.State,
		Failed: b.value.Failed, At: b.value.At, Sequence: b.sequence,
	}
}

// commits gives what is known of a commit, in one repository or in all.
func (r *reading) commits(ctx context.Context, commit, repository string, most int) ([]audit.TracedCommit, error) {
	found, err := having[chain.Commit](ctx, r, chain.Commits.Name(), most, `r."commit" = ?`, commit)
	if err != nil {
		return nil, err
	}
	var all []audit.TracedCommit
	for _, c := range found {
		if repository != "" && c.value.Repository != repository && len(found) > 1 {
			continue
		}
		traced := audit.TracedCommit{
			Repository: c.value.Repository, Commit: c.value.Commit, Branch: c.value.Branch, Merged: c.value.Merged, Sequence: c.sequence,
		}
		if c.value.Author != "" {
			author, err := r.person(ctx, c.value.Author)
			if err != nil {
				return nil, err
			}
			traced.Author = &author
		}
		all = append(all, traced)
	}
	return all, nil
}
