package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/cockroachdb/errors"

	"catenary/audit"
	"catenary/chain"
	"catenary/es/natskv"
	"catenary/es/project"
	"catenary/events"
)

const (
	// mostEnded is how many rollouts that have ended are shown beside those that have not.
	mostEnded = 3
	// mostTrouble bounds the places that need a look and are named; all are counted.
	mostTrouble = 100
	// watchCaughtUp is how long the views may take to pass what is newest before they count as behind. Usually it takes milliseconds.
	watchCaughtUp = time.Second
)

// eye looks at the chain, and remembers what it has seen: a look reads what has changed since the one before.
type eye struct {
	s   *session
	now func() time.Time
	// withSteps reads which steps have changed, which only those need to know who write changes down.
	withSteps bool

	nodes, assignments, rollouts, steps *glance

	managed map[string]string // by node that is not retired
	places  map[string]place  // by key, those that stand
	going   map[string]chain.Rollout
	ended   []chain.Rollout // newest first
}

// place is what is shown of an assignment that stands.
type place struct {
	state string
	line  trouble
}

// How an assignment that stands is.
const (
	placeAsTold     = "as-told"
	placeUnhealthy  = "unhealthy"
	placeDrifted    = "drifted"
	placeElse       = "running-something-else"
	placeUnreported = "not-reported"
)

func newEye(now func() time.Time, s *session) *eye {
	return &eye{
		s: s, now: now,
		nodes: &glance{view: chain.Nodes.Bucket()}, assignments: &glance{view: chain.Assignments.Bucket()},
		rollouts: &glance{view: chain.Rollouts.Bucket()}, steps: &glance{view: chain.Steps.Bucket(), onlyNew: true},
	}
}

// look sees what is there now. After an error it sees all anew: the server may be another one.
func (e *eye) look(ctx context.Context) (sight, error) {
	ctx, cancel := context.WithTimeout(ctx, watchPatience)
	defer cancel()
	seen := sight{Rollouts: []rolloutSight{}, At: e.now().UTC(), Server: e.s.conn.ConnectedUrlRedacted()}
	seen.Event, seen.Behind = e.behind(ctx)
	steps, err := e.read(ctx)
	if err != nil {
		for _, g := range []*glance{e.nodes, e.assignments, e.rollouts, e.steps} {
			g.bucket = nil
		}
		return sight{}, err
	}
	seen.Steps = steps
	e.count(&seen)
	e.judge(ctx, &seen)
	return seen, nil
}

// behind gives the newest event, and why it may be that not everything up to it is shown.
func (e *eye) behind(ctx context.Context) (uint64, string) {
	p, err := e.s.queries.Position(ctx, audit.PositionQuestion{})
	if err != nil {
		return 0, "nobody says how far the views are: " + err.Error()
	}
	waiting, cancel := context.WithTimeout(ctx, watchCaughtUp)
	defer cancel()
	views := []string{e.nodes.view, e.assignments.view, e.rollouts.view, e.steps.view}
	if err := e.s.reader.WaitFor(waiting, p.Tail, views...); err != nil {
		return p.Tail, strings.TrimSuffix(err.Error(), ": "+context.DeadlineExceeded.Error())
	}
	return p.Tail, ""
}

// read takes in what has changed, and gives the steps among it.
func (e *eye) read(ctx context.Context) ([]chain.Step, error) {
	err := e.nodes.news(ctx, e.s, func() { e.managed = map[string]string{} }, func(entry project.Entry) error {
		n, err := chain.Decode[chain.Node](entry.Value)
		if err == nil && n.Retired.IsZero() {
			e.managed[n.Node] = n.ManagedBy
		} else {
			delete(e.managed, n.Node)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	err = e.assignments.news(ctx, e.s, func() { e.places = map[string]place{} }, func(entry project.Entry) error {
		a, err := chain.Decode[chain.Assignment](entry.Value)
		if err == nil && a.Stands() {
			e.places[entry.Key] = placeOf(a)
		} else {
			delete(e.places, entry.Key)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	err = e.rollouts.news(ctx, e.s, func() { e.going, e.ended = map[string]chain.Rollout{}, nil }, func(entry project.Entry) error {
		r, err := chain.Decode[chain.Rollout](entry.Value)
		if err == nil {
			e.take(r)
		}
		return err
	})
	if err != nil || !e.withSteps {
		return nil, err
	}
	var steps []chain.Step
	err = e.steps.news(ctx, e.s, func() {}, func(entry project.Entry) error {
		s, err := chain.Decode[chain.Step](entry.Value)
		if err == nil && (!s.Sent.IsZero() || !s.Stands()) {
			steps = append(steps, s)
		}
		return err
	})
	return steps, err
}

// take takes in how a rollout is.
func (e *eye) take(r chain.Rollout) {
	e.ended = slices.DeleteFunc(e.ended, func(o chain.Rollout) bool { return o.ID == r.ID })
	if r.Stands() {
		e.going[r.ID] = r
		return
	}
	delete(e.going, r.ID)
	e.ended = append(e.ended, r)
	slices.SortStableFunc(e.ended, func(a, b chain.Rollout) int { return b.Times.Ended.Compare(a.Times.Ended) })
	e.ended = e.ended[:min(len(e.ended), mostEnded)]
}

// placeOf judges an assignment that stands by what its node last reported.
func placeOf(a chain.Assignment) place {
	p := place{state: placeAsTold, line: trouble{Node: a.Node, Module: a.Module, Told: runsReference(a.Reference, a.Build)}}
	o := a.Observed
	switch {
	case o == nil || o.IsZero() && o.Build == "":
		p.state = placeUnreported
	case o.Drift != "":
		p.state, p.line.Says = placeDrifted, o.Drift
	case o.Healthy != nil && !*o.Healthy:
		p.state = placeUnhealthy
	case !o.Reference.Equal(a.Reference):
		p.state = placeElse
	}
	if o != nil {
		p.line.Runs, p.line.At = runsReference(o.Reference, o.Build), o.At
	}
	p.line.State = p.state
	return p
}

func runsReference(r events.Reference, build string) string {
	return showVersion(&events.Version{Reference: r, Build: build})
}

// count counts what was taken in.
func (e *eye) count(seen *sight) {
	for _, by := range e.managed {
		seen.Nodes.All++
		if by == events.ManagedByExternal {
			seen.Nodes.External++
		}
	}
	seen.Assignments = map[string]int{}
	for _, key := range slices.Sorted(maps.Keys(e.places)) {
		p := e.places[key]
		seen.Assignments[p.state]++
		if p.state == placeAsTold || p.state == placeUnreported {
			continue
		}
		if seen.TroubleCount++; seen.TroubleCount <= mostTrouble {
			seen.Trouble = append(seen.Trouble, p.line)
		}
	}
}

// judge lists the rollouts, and asks the engine what those that have not ended wait for.
func (e *eye) judge(ctx context.Context, seen *sight) {
	going := slices.SortedFunc(maps.Values(e.going), func(a, b chain.Rollout) int {
		return cmp.Or(a.Times.Planned.Compare(b.Times.Planned), cmp.Compare(a.ID, b.ID))
	})
	ids := make([]string, len(going))
	for i, r := range going {
		ids[i] = r.ID
	}
	live, err := e.s.waits(ctx, ids)
	if err != nil {
		seen.NoEngine = err.Error()
	}
	for _, r := range going {
		g := sightOf(r)
		if g.Waits = live[r.ID]; g.Waits == nil {
			g.Waits = waitsOf(ofTheWhole(chain.WholeRollout{Rollout: r}))
		}
		seen.Rollouts = append(seen.Rollouts, g)
	}
	for _, r := range e.ended {
		seen.Rollouts = append(seen.Rollouts, sightOf(r))
	}
}

// glance reads one view's bucket, each time what has come since.
type glance struct {
	view string
	// onlyNew leaves out what was there when it was read first.
	onlyNew  bool
	bucket   *natskv.Bucket
	revision uint64
}

// news gives what has come since it was asked last. When there is no telling, as at first and when another generation is read, it calls anew
// and gives every key's newest value.
func (g *glance) news(ctx context.Context, s *session, anew func(), take func(project.Entry) error) error {
	name, err := s.reader.Bucket(ctx, g.view)
	if err != nil {
		return errors.Wrapf(err, "read %s", g.view)
	}
	fresh := g.bucket == nil || g.bucket.Name() != name
	if fresh {
		if g.bucket, err = s.open(ctx, name); err != nil {
			g.bucket = nil
			return errors.Wrapf(err, "read %s", g.view)
		}
	}
	state, err := g.bucket.State(ctx)
	if err != nil {
		return err
	}
	switch {
	case g.onlyNew && (g.revision == 0 || state.Last < g.revision):
		g.revision = state.Last
		return nil
	case !g.onlyNew && (fresh || state.Last < g.revision):
		g.revision = 0
		anew()
	case state.Last == g.revision:
		return nil
	}
	entries := g.bucket.All(ctx, g.revision)
	if g.revision == 0 {
		entries = g.bucket.Entries(ctx)
	}
	for entry, err := range entries {
		if err != nil {
			return errors.Wrapf(err, "read %s", g.view)
		}
		g.revision = max(g.revision, entry.Revision)
		if project.IsParkedKey(entry.Key) {
			continue
		}
		if err := take(entry); err != nil {
			return errors.Wrapf(err, "%s: key %s at revision %d", g.view, entry.Key, entry.Revision)
		}
	}
	return nil
}

// waits is a reason for which steps of a rollout do not move: how many of them, and the first as an example.
type waits struct {
	standstill
	Count int `json:"count"`
}

// waitsOf gathers reasons, in the order in which they first come.
func waitsOf(list []standstill) []waits {
	var found []waits
	for _, w := range list {
		at := slices.IndexFunc(found, func(o waits) bool { return o.Reason == w.Reason })
		if at < 0 {
			found = append(found, waits{standstill: w})
			at = len(found) - 1
		}
		found[at].Count++
	}
	return found
}

// String says it in a few words.
func (w waits) String() string {
	text := fmt.Sprintf("%d %s", w.Count, w.Reason)
	if w.Node == "" && w.Count == 1 {
		text = w.Reason
	}
	if place := strings.TrimSpace(w.Node + " " + w.Module); place != "" {
		text += ": " + place
	}
	if w.WaitsFor != "" {
		text += " waits for " + w.WaitsFor
	}
	return text
}
