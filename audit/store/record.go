package store

import (
	"encoding/json"

	"github.com/cockroachdb/errors"

	"catenary/chain"
	"catenary/es"
	"catenary/es/project"
	"catenary/events"
	"catenary/projections"
)

// kinds are the kinds of records in the file, folded by the views that fill their buckets. A further kind is a line here.
func kinds() ([]kind, error) {
	all := []kind{toldKind{}, ranKind{}}
	for _, records := range []func() (kind, error){
		recordsOf(chain.Modules), recordsOf(chain.Nodes), recordsOf(chain.Commits), recordsOf(chain.Builds),
		recordsOf(chain.Publications), recordsOf(chain.Freezes),
	} {
		k, err := records()
		if err != nil {
			return nil, err
		}
		all = append(all, k)
	}
	return all, nil
}

// recordKind folds the records of a kind of the chain with the view that fills its bucket.
type recordKind struct {
	kindName string
	reads    []string
	// fresh makes the view without records.
	fresh func() project.Keyed
	// stands says of a record's JSON whether it holds.
	stands func(value []byte) (bool, error)
}

func recordsOf[T chain.Record](k chain.Kind[T]) func() (kind, error) {
	return func() (kind, error) {
		for i, v := range projections.All() {
			if v.Name() != k.Bucket() {
				continue
			}
			keyed, ok := v.(project.Keyed)
			if !ok {
				return nil, errors.AssertionFailedf("the view %s does not say which values a fold reads", v.Name())
			}
			return recordKind{
				kindName: k.Name(), reads: keyed.Aggregates(),
				fresh: func() project.Keyed { return projections.All()[i].(project.Keyed) },
				stands: func(value []byte) (bool, error) {
					record, err := chain.Decode[T](value)
					return err == nil && k.Stands(record), err
				},
			}, nil
		}
		return nil, errors.AssertionFailedf("no view fills %s", k.Bucket())
	}
}

func (k recordKind) name() string { return k.kindName }

func (k recordKind) aggregates() []string { return k.reads }

// fold lets a view without any state fold the event over the values it reads: so the store holds none.
func (k recordKind) fold(e es.Event, before func(string) (*fact, error)) ([]change, error) {
	if e.Backfill {
		return nil, errors.Newf("event %d (%s of %s) adds to a history that can't be added to", e.Sequence, e.Type, e.Ref)
	}
	view := k.fresh()
	for _, key := range view.Reads(e) {
		stood, err := before(key)
		if err != nil {
			return nil, err
		}
		if stood == nil {
			continue
		}
		if err := view.Load(key, stood.value); err != nil {
			return nil, err
		}
	}
	values, err := view.Fold(e)
	if err != nil {
		return nil, err
	}
	changes := make([]change, 0, len(values))
	for _, v := range values {
		c, err := k.change(v)
		if err != nil {
			return nil, errors.Wrapf(err, "value of key %s", v.Key)
		}
		c.fact.since = instantOf(e.Effective)
		changes = append(changes, c)
	}
	return changes, nil
}

// names are what a record says of others. They are called the same in the records of every kind.
type names struct {
	Node   string `json:"node"`
	Module string `json:"module"`
	Name   string `json:"name"`
	events.Reference
	Build     string            `json:"build"`
	Commit    string            `json:"commit"`
	Rollout   string            `json:"rollout"`
	State     string            `json:"state"`
	Published *events.Reference `json:"published"`
	Manifest  json.RawMessage   `json:"manifest"`
}

func (k recordKind) change(v project.Value) (change, error) {
	stands, err := k.stands(v.Data)
	if err != nil {
		return change{}, err
	}
	var n names
	if err := json.Unmarshal(v.Data, &n); err != nil {
		return change{}, err
	}
	f := &fact{
		stands: stands, state: n.State, reference: n.Reference, build: n.Build, commit: n.Commit, rollout: n.Rollout, value: v.Data,
	}
	if n.Published != nil {
		f.reference = *n.Published
	}
	c := change{kind: k.kindName, key: v.Key, node: n.Node, module: n.Module, fact: f}
	if k.kindName == chain.Modules.Name() {
		c.module = n.Name
	}
	c.carried = manifest(n.Manifest)
	return c, nil
}
