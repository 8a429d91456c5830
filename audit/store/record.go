package store

import (
	"encoding/json"
	"slices"

	"github.com/cockroachdb/errors"

	"catenary/chain"
	"catenary/es"
	"catenary/es/project"
	"catenary/events"
	"catenary/projections"
)

// kinds gives the kinds of records in the file, for one writer of it. A further kind is a line here.
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
	// fresh makes the view without records.
	fresh func() project.Keyed
	// stands says of a record's JSON whether it holds.
	stands func(value []byte) (bool, error)

	// view holds the values of the keys that were read, taken from the file when they are first asked for.
	view project.Keyed
	read map[string]bool
}

// mostRead bounds the keys whose values a view holds. It starts anew rather than choose what to forget.
const mostRead = 10_000

func recordsOf[T chain.Record](k chain.Kind[T]) func() (kind, error) {
	return func() (kind, error) {
		all := projections.All()
		i := slices.IndexFunc(all, func(v project.View) bool { return v.Name() == k.Bucket() })
		if i < 0 {
			return nil, errors.AssertionFailedf("no view fills %s", k.Bucket())
		}
		if _, ok := project.WithoutPolicy(all[i]).(project.Keyed); !ok {
			return nil, errors.AssertionFailedf("the view %s does not say which values a fold reads", k.Bucket())
		}
		fresh := func() project.Keyed { return project.WithoutPolicy(projections.All()[i]).(project.Keyed) }
		return &recordKind{
			kindName: k.Name(), fresh: fresh, view: fresh(), read: map[string]bool{},
			stands: func(value []byte) (bool, error) {
				record, err := chain.Decode[T](value)
				return err == nil && k.Stands(record), err
			},
		}, nil
	}
}

func (k *recordKind) name() string { return k.kindName }

func (k *recordKind) aggregates() []string { return k.view.Aggregates() }

// fold lets the view fold the event over the values it reads.
func (k *recordKind) fold(e es.Event, before func(string) (*fact, error)) ([]change, error) {
	if e.Backfill {
		return nil, errors.Newf("event %d (%s of %s) adds to a history that can't be added to", e.Sequence, e.Type, e.Ref)
	}
	if len(k.read) >= mostRead {
		k.view = k.fresh()
		clear(k.read)
	}
	for _, key := range k.view.Reads(e) {
		if k.read[key] {
			continue
		}
		stood, err := before(key)
		if err != nil {
			return nil, err
		}
		if stood != nil {
			if err := k.view.Load(key, stood.value); err != nil {
				return nil, err
			}
		}
		k.read[key] = true
	}
	values, err := k.view.Fold(e)
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

func (k *recordKind) change(v project.Value) (change, error) {
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
