package projections

import (
	"catenary/es/project"
	"catenary/projections/assignments"
	"catenary/projections/backfill"
	"catenary/projections/builds"
	"catenary/projections/commits"
	"catenary/projections/freezes"
	"catenary/projections/modules"
	"catenary/projections/nodes"
	"catenary/projections/published"
)

// All gives every view, new and without records. A further view is a package of its own and a line here.
func All() []project.View {
	return []project.View{
		modules.New(),
		nodes.New(),
		commits.New(),
		builds.New(),
		published.New(),
		assignments.New(),
		freezes.New(),
		backfill.New(),
	}
}
