package depot

import (
	"context"
	"time"

	"github.com/cockroachdb/errors"

	"catenary/agent/artifacts"
	"catenary/chain"
	"catenary/es"
	"catenary/events"
)

// Named reads which artifact was published under the name of a package. It gives errors marked [artifacts.ErrNotFound], and those of the
// reader.
func Named(ctx context.Context, r *chain.Reader, p events.Package) (string, error) {
	published, err := chain.Get(ctx, r, chain.Publications, chain.ReferenceNames(events.Reference{Package: &p})...)
	if err != nil && !errors.Is(err, es.ErrNotFound) {
		return "", err
	}
	if digest := published.Value.Content(); err == nil && digest != "" {
		return digest, nil
	}
	return "", errors.Mark(errors.Newf("no artifact was published as %s@%s: publish one with catenary publish FILE --name %s --version %s", p.Name, p.Version, p.Name, p.Version), artifacts.ErrNotFound)
}

// ReadFacts reads what bears on which artifacts are kept, from a moment on: the window's begin. It gives the errors of the reader.
func ReadFacts(ctx context.Context, r *chain.Reader, since time.Time) (Facts, error) {
	f := Facts{Named: map[events.Package]string{}}
	published, err := chain.List(ctx, r, chain.Publications, chain.Query{All: true})
	if err != nil {
		return f, err
	}
	for _, e := range published.Entries {
		if e.Value.Package == nil {
			continue
		}
		if digest := e.Value.Content(); digest != "" {
			f.Named[*e.Value.Package] = digest
		}
	}
	if err := f.readTold(ctx, r, since); err != nil {
		return f, err
	}
	rollouts, err := chain.List(ctx, r, chain.Rollouts, chain.Query{All: true})
	if err != nil {
		return f, err
	}
	for _, e := range rollouts.Entries {
		if !e.Value.Stands() && e.Value.Times.Ended.Before(since) {
			continue
		}
		whole, err := r.Rollout(ctx, e.Value.ID)
		if err != nil {
			return f, err
		}
		f.Rollouts = append(f.Rollouts, Carried{Rollout: whole.Rollout, Steps: whole.All})
	}
	return f, nil
}

// readTold reads what nodes are told and, where that has changed since the moment, what they were told before.
func (f *Facts) readTold(ctx context.Context, r *chain.Reader, since time.Time) error {
	assignments, err := chain.List(ctx, r, chain.Assignments, chain.Query{All: true})
	if err != nil {
		return err
	}
	for _, e := range assignments.Entries {
		a := e.Value
		if a.Ended.IsZero() {
			f.Told = append(f.Told, Told{Node: a.Node, Module: a.Module, Reference: a.Reference})
		}
		if a.Ended.Before(since) && a.Since.Before(since) {
			continue
		}
		changes, err := chain.History(ctx, r, chain.Assignments, a.Node, a.Module)
		if err != nil {
			return errors.Wrap(err, "what was told before")
		}
		for i, c := range changes {
			until := c.Value.Ended
			if i+1 < len(changes) {
				next := changes[i+1]
				if next.Value.Reference.Equal(c.Value.Reference) && next.Value.Stands() == c.Value.Stands() {
					continue // it goes on
				}
				until = next.Effective
			}
			if c.Value.Ended.IsZero() && !until.IsZero() && until.After(since) {
				f.Told = append(f.Told, Told{Node: a.Node, Module: a.Module, Reference: c.Value.Reference, Until: until})
			}
		}
	}
	return nil
}
