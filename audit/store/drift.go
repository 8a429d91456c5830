package store

import (
	"context"
	"slices"

	"github.com/cockroachdb/errors"

	"catenary/audit"
)

// drift compares every two nodes, and what each was told with what it reported.
func (c *counter) drift(ctx context.Context, answer *audit.ReportAnswer) error {
	moment, at, known := c.moment(audit.Moment{At: c.q.Until})
	answer.Until = moment.At
	told, err := c.byNode(ctx, kindTold, at, known)
	if err != nil {
		return err
	}
	ran, err := c.byNode(ctx, kindRan, at, known)
	if err != nil {
		return err
	}
	nodes := c.q.Nodes
	if len(nodes) == 0 {
		for node := range told {
			nodes = append(nodes, node)
		}
		slices.Sort(nodes)
	}
	if len(nodes) > audit.MaxDriftNodes {
		err := errors.Newf("%d nodes would be compared, every two of them: the limit is %d", len(nodes), audit.MaxDriftNodes)
		return errors.Mark(errors.WithHint(err, "name the nodes, or diff two of them"), audit.ErrInvalid)
	}
	answer.Drift = []audit.DriftCount{}
	for i, from := range nodes {
		for _, to := range nodes[i+1:] {
			answer.Drift = append(answer.Drift, compared(from, to, told[from], told[to]))
		}
	}
	for _, node := range nodes {
		if len(ran[node]) > 0 {
			row := compared(node, node, told[node], ran[node])
			row.Observed = true
			answer.Drift = append(answer.Drift, row)
		}
	}
	return nil
}

// byNode gives what stood on each node, by module.
func (c *counter) byNode(ctx context.Context, kind string, at, known instant) (map[string]map[string]*fact, error) {
	found := map[string]map[string]*fact{}
	err := c.standing(ctx, selection{kind: kind, module: c.q.Module}, at, known, func(s stood) bool {
		if found[s.node] == nil {
			found[s.node] = map[string]*fact{}
		}
		found[s.node][s.module] = s.fact
		return true
	})
	return found, err
}

func compared(from, to string, a, b map[string]*fact) audit.DriftCount {
	row := audit.DriftCount{From: from, To: to, Modules: []string{}, Single: len(b)}
	for module, f := range a {
		o, both := b[module]
		if !both {
			row.Single++
			continue
		}
		row.Single--
		// Who does not name what runs can't be said to run something else.
		if f.same(o) || from == to && o.nameless() {
			row.Alike++
		} else {
			row.Modules = append(row.Modules, module)
		}
	}
	slices.Sort(row.Modules)
	return row
}
