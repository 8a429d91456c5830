package projections

import (
	"catenary/es/project"
	"catenary/projections/assignments"
	"catenary/projections/backfill"
	"catenary/projections/builds"
	"catenary/projections/commits"
	"catenary/projections/freezes"
	"catenary/projections/merges"
	"catenary/projections/modules"
	"catenary/projections/nodes"
	"catenary/projections/published"
	"catenary/projections/rollouts"
	"catenary/projections/steps"
	"catenary/projections/strategies"
	"catenary/projections/tracks"
)

// All gives every view, new and without records. A further view is a package of its own and a line here.
//
// What nodes act on stops at an event that can't be folded: to go on without it is for a person to decide. Commits, builds and
// publications come in great numbers from many pipelines and nothing acts on them by itself, so one that can't be folded is
// parked and does not hold up the others.
func All() []project.View {
	return []project.View{
		modules.New(),
		nodes.New(),
		project.Park(commits.New()),
		project.Park(builds.New()),
		project.Park(published.New()),
		assignments.New(),
		freezes.New(),
		merges.New(),
		tracks.New(),
		strategies.New(),
		rollouts.New(),
		steps.New(),
		backfill.New(),
	}
}
