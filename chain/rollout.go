package chain

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/cockroachdb/errors"

	"catenary/es"
	"catenary/es/project"
	"catenary/events"
)

// WholeRollout is a rollout with all its steps.
type WholeRollout struct {
	Rollout
	// Tiers are those of the rollout, with their nodes.
	Tiers []TierNodes `json:"tiers"`
	Steps []StepTimes `json:"steps"`
	// Changed is what changes where, in the place of the count.
	Changed []Changed `json:"changed"`
	// All is every step's record, by tier, node and module.
	All []Step `json:"-"`
}

// TierNodes is a tier with the list of its nodes.
type TierNodes struct {
	Tier
	Nodes []string `json:"nodes"`
}

// StepTimes says when a node of a tier was told, when it reported, and what became of the step.
type StepTimes struct {
	Tier     string    `json:"tier"`
	Node     string    `json:"node"`
	Module   string    `json:"module"`
	Sent     time.Time `json:"sent,omitzero"`
	Reported time.Time `json:"reported,omitzero"`
	State    string    `json:"state"`
	// Attempt, By, Reason and Ended are those of the step's record.
	Attempt int       `json:"attempt,omitempty"`
	By      string    `json:"by,omitempty"`
	Reason  string    `json:"reason,omitempty"`
	Ended   time.Time `json:"ended,omitzero"`
	// Driver, Inputs and Outputs are those of the step's record too.
	Driver  *events.Driver    `json:"driver,omitempty"`
	Inputs  []events.Handed   `json:"inputs,omitempty"`
	Outputs map[string]string `json:"outputs,omitempty"`
}

// Changed says what a module on a node changes from and to; nothing where nothing stands.
type Changed struct {
	Node   string          `json:"node"`
	Module string          `json:"module"`
	Before *events.Version `json:"before,omitempty"`
	After  *events.Version `json:"after,omitempty"`
}

// Rollout gives a rollout with all its steps, in the order of the tiers and within one by node and module. The two are read one after
// another: a step may be further than the counts say.
func (r *Reader) Rollout(ctx context.Context, id string) (WholeRollout, error) {
	head, err := Get(ctx, r, Rollouts, id)
	if err != nil {
		return WholeRollout{}, err
	}
	steps, err := r.stepsOf(ctx, id)
	if err != nil {
		return WholeRollout{}, errors.Wrapf(err, "steps of rollout %s", id)
	}
	return join(head.Value, steps), nil
}

func (r *Reader) stepsOf(ctx context.Context, id string) ([]Step, error) {
	b, err := r.bucket(ctx, Steps.bucket)
	if err != nil {
		return nil, err
	}
	newest := map[string]project.Entry{}
	for e, err := range b.Entries(ctx, es.Key(id)+".*.*.*") {
		if err != nil {
			return nil, err
		}
		if e.Revision > newest[e.Key].Revision {
			newest[e.Key] = e
		}
	}
	steps := make([]Step, 0, len(newest))
	for _, key := range slices.Sorted(maps.Keys(newest)) {
		entry, err := entryOf(Steps, newest[key])
		if err != nil {
			return nil, err
		}
		steps = append(steps, entry.Value)
	}
	return steps, nil
}

// join puts steps behind their rollout.
func join(head Rollout, steps []Step) WholeRollout {
	place := make(map[string]int, len(head.Tiers))
	whole := WholeRollout{Rollout: head, Tiers: make([]TierNodes, len(head.Tiers)), Steps: []StepTimes{}, Changed: []Changed{}, All: steps}
	for i, t := range head.Tiers {
		place[t.Name], whole.Tiers[i] = i, TierNodes{Tier: t, Nodes: []string{}}
	}
	slices.SortStableFunc(steps, func(a, b Step) int { return place[a.Tier] - place[b.Tier] })
	for _, s := range steps {
		if i, ok := place[s.Tier]; ok {
			if nodes := &whole.Tiers[i].Nodes; len(*nodes) == 0 || (*nodes)[len(*nodes)-1] != s.Node {
				*nodes = append(*nodes, s.Node)
			}
		}
		whole.Steps = append(whole.Steps, StepTimes{
			Tier: s.Tier, Node: s.Node, Module: s.Module, Sent: s.Sent, Reported: s.Reported, State: s.State(),
			Attempt: s.Attempt, By: s.By, Reason: s.Reason, Ended: s.Ended,
			Driver: s.Driver, Inputs: s.Inputs, Outputs: s.Outputs,
		})
		whole.Changed = append(whole.Changed, Changed{Node: s.Node, Module: s.Module, Before: s.Before, After: s.After})
	}
	return whole
}
