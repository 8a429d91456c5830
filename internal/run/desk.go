package run

import (
	"context"
	"time"

	"catenary/agent/desk"
	"catenary/es/natskv"
	"catenary/internal/topology"
)

// serveDesk answers agents, from when it has read what they are told until the context ends.
func (p *projectorPart) serveDesk(ctx context.Context, serves func()) error {
	log := p.log.With("component", "desk")
	views, err := natskv.OpenKeyValue(ctx, p.nc, topology.BucketViews)
	if err != nil {
		return stoppedBy(ctx, err)
	}
	index := desk.NewIndex()
	tasks := map[string]func(context.Context) error{}
	var all followedViews
	for _, f := range []*followed{
		{view: topology.BucketAssignments, take: index.TakeAssignment, replace: index.ReplaceAssignments},
		{view: topology.BucketNodes, take: index.TakeNode, replace: index.ReplaceNodes},
		{view: topology.BucketModules, take: index.TakeModule, replace: index.ReplaceModules},
	} {
		f.nc, f.generations, f.views, f.log, f.moved = p.nc, p.generations, views, log, make(chan struct{})
		all = append(all, f)
		tasks[f.view] = f.run
	}
	tasks[""] = func(ctx context.Context) error {
		for _, f := range all {
			if f.await(ctx, func(followedPlace) bool { return true }) != nil {
				return nil
			}
		}
		d := desk.Desk{Index: index, Presence: desk.NewPresence(time.Now)}
		service, err := desk.Serve(ctx, desk.Config{
			Conn: p.nc, Desk: d, Version: Version(), Trace: p.watch.traceOf(p.store), Logger: log,
			Current: func(ctx context.Context) error { return all.current(ctx, p.runner, p.store) },
		})
		p.watch.desk.Store(&d)
		return untilStopped(ctx, service, err, serves)
	}
	return Together(ctx, tasks)
}
