package hammer

import (
	"catenary/commands"
	"catenary/es"
	"catenary/events"
)

// Planned gives the commands that write a plan of just these steps down, whoever has thought it out. It gives errors for a strategy that is none.
func Planned(id string, strategy events.Raw, steps ...events.PlannedStep) ([]es.Payload, error) {
	parsed, err := events.ParseStrategy(strategy)
	if err != nil {
		return nil, err
	}
	head := &events.PlanHead{Reason: "because"}
	if head.Strategy, head.StrategyDigest, err = parsed.Canonical(); err != nil {
		return nil, err
	}
	digest, err := events.PlanDigest{}.With(steps...)
	if err != nil {
		return nil, err
	}
	seen, ends, count := map[string]bool{}, 0, len(steps)
	for _, s := range steps {
		switch {
		case s.After == nil:
			ends++
		case !seen[s.Module]:
			seen[s.Module] = true
			head.Targets = append(head.Targets, events.Target{Module: s.Module, Version: *s.After})
		}
	}
	var list []es.Payload
	for part := 1; len(steps) > 0; part++ {
		n := min(len(steps), commands.MaxPartSteps)
		c := commands.PlanRollout{ID: id, Part: part, Head: head, Steps: steps[:n]}
		head, steps = nil, steps[n:]
		if len(steps) == 0 {
			c.Digest, c.Count, c.Confirm = digest.String(), count, &ends
		}
		list = append(list, c)
	}
	return list, nil
}
