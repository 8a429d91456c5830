package plan

import (
	"catenary/commands"
	"catenary/events"
)

// maxPartBytes bounds a part by what its steps take, about: a command's body, and the event it leads to, stay well below their limits.
const maxPartBytes = 96 << 10

// Commands gives the commands that write the plan down, in order; none for a plan without steps. confirm is the number of steps that end
// what stands, as the one who plans knows it; nil where nobody confirmed any.
func (p Plan) Commands(confirm *int) ([]commands.PlanRollout, error) {
	if len(p.Steps) == 0 {
		return nil, nil
	}
	var parts []commands.PlanRollout
	var digest events.PlanDigest
	rest := p.Steps
	for len(rest) > 0 {
		n, size := 0, 0
		for n < len(rest) && n < commands.MaxPartSteps && (n == 0 || size+bytesOf(rest[n]) <= maxPartBytes) {
			size += bytesOf(rest[n])
			n++
		}
		part := commands.PlanRollout{ID: p.ID, Part: len(parts) + 1, Steps: rest[:n]}
		var err error
		if digest, err = digest.With(part.Steps...); err != nil {
			return nil, err
		}
		parts, rest = append(parts, part), rest[n:]
	}
	head := p.Head
	parts[0].Head = &head
	last := &parts[len(parts)-1]
	last.Count, last.Digest, last.Confirm = len(p.Steps), digest.String(), confirm
	return parts, nil
}

// bytesOf is about what a step takes as JSON.
func bytesOf(s events.PlannedStep) int {
	const frame, eachWait = 120, 48
	n := frame + len(s.Tier) + len(s.Node) + len(s.Module) + versionBytes(s.Before) + versionBytes(s.After)
	for _, w := range s.WaitsFor {
		n += eachWait + len(w.Node) + len(w.Module)
	}
	return n
}

func versionBytes(v *events.Version) int {
	if v == nil {
		return 0
	}
	const frame = 80
	return frame + len(v.Reference.String()) + len(v.Build) + len(v.Commit)
}
