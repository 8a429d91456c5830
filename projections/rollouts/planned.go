package rollouts

import (
	"time"

	"github.com/cockroachdb/errors"

	"catenary/chain"
	"catenary/events"
)

// planned gives the record of a plan that is being written down.
func planned(e events.RolloutPlanning, at time.Time) (chain.Rollout, error) {
	r := chain.Rollout{
		ID: e.ID, State: chain.RolloutPlanning, Reason: e.Reason, Builds: e.Targets, Reverts: e.Reverts, Supersedes: e.Supersedes, Track: e.Track,
		Strategy: e.StrategyName, StrategyDigest: e.StrategyDigest, Times: chain.Times{Planned: at, Restores: e.Restores},
	}
	for _, c := range e.Commits {
		r.Commits = append(r.Commits, chain.FixedCommit{Repository: c.Repository, Branch: c.Branch, Commit: c.Commit, Merged: c.Merged})
	}
	strategy, err := events.ParseStrategy(e.Strategy)
	if err != nil {
		return r, err
	}
	r.Rollback = strategy.Rollback
	ordered, err := strategy.Ordered()
	if err != nil {
		return r, errors.Wrap(err, "its strategy")
	}
	for _, t := range ordered {
		r.Tiers = append(r.Tiers, chain.Tier{Name: t.Name, Selector: t.Selector, Policy: policy(t)})
	}
	return r, nil
}

func policy(t events.Tier) chain.Policy {
	p := chain.Policy{
		Bake: t.Bake, Gate: t.Gate, Approval: t.Approval, Offline: t.Offline, Retry: t.Retry, Delay: t.Delay, Timeout: t.Timeout, Semaphores: t.Semaphores,
	}
	if !t.Concurrency.IsZero() {
		p.Concurrency = t.Concurrency.String()
	}
	if !t.FailureBudget.IsZero() {
		p.FailureBudget = t.FailureBudget.String()
	}
	if t.Limit != nil {
		p.PerMinute, p.Burst = t.Limit.PerMinute, t.Limit.Burst
	}
	return p
}

func holds(list []events.Hold) []chain.Hold {
	out := make([]chain.Hold, len(list))
	for i, h := range list {
		out[i] = chain.Hold{Reason: h.Reason, Tier: h.Tier, Steps: h.Steps, Count: h.Count, WaitsFor: h.WaitsFor, Until: h.Until}
	}
	return out
}
