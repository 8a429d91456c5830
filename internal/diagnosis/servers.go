package diagnosis

import (
	"cmp"
	"slices"

	"catenary/internal/cluster"
	"catenary/internal/health"
)

// Cluster says what is wrong with the servers and their streams, and what is as it should be: the worst first.
func Cluster(v cluster.View) []Problem {
	var all []Problem
	for _, c := range cluster.Judge(v) {
		all = append(all, Problem{About: c.Name, State: c.State, Code: c.Code, What: c.Reason, Next: c.Next})
	}
	slices.SortStableFunc(all, func(a, b Problem) int { return cmp.Compare(rank(a.State), rank(b.State)) })
	return all
}

// Unreached says that no server could be reached, and what to do.
func Unreached(err error) []Problem {
	return []Problem{{
		About: "server", State: health.Fail, Code: health.Away, What: err.Error(),
		Next: "start the server (catenary server --config deploy/nats-server.conf, or all in one with catenary up), or name it with --server",
	}}
}
