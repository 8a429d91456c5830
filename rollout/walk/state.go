package walk

import (
	"maps"
	"slices"
	"time"

	"catenary/commands"
	"catenary/es"
	"catenary/events"
)

// DefaultWindow is how many commands are under way at once: enough for the writer to share a sync of the disk among them, and a part of its
// queue that leaves room for everybody else.
const DefaultWindow = 512

// Lease says who walks.
type Lease struct {
	Holder string
	// Fence is the sequence of the event by which the lease was taken; zero when nobody holds it.
	Fence uint64
}

// State is all that the engine knows. Make it with [New]; one goroutine uses it at a time.
type State struct {
	registry *es.Registry
	zones    events.Zones
	window   int
	draining bool

	position uint64
	lease    Lease
	// engines holds the actors that have held the lease: what they plan is started without anybody's word.
	engines map[string]bool

	// rollouts holds those that are not final and those with pending steps, order the same in the order they were planned.
	rollouts map[string]*rollout
	order    []*rollout
	// The others are by the keys of their instances.
	places       map[string]*place
	nodes        map[string]*node
	modules      map[string]*module
	publications map[string]*publication
	freezes      map[string]*freeze
	merges       map[string]*merge
	// placed holds the keys of the merges that wait although their rollout has finished.
	placed map[string]bool
	// tracks holds the tracks that plan by themselves.
	tracks map[string]bool
	// semaphores counts the steps under way that hold each.
	semaphores map[string]int
	// failed holds the rollouts that are to be taken back automatically, and are not yet.
	failed map[string]bool
	// versions holds each version once: a rollout's steps have few.
	versions map[versionKey]*events.Version

	// away counts the nodes that are away.
	away     int
	actions  uint64
	inFlight int
	pending  int
	// planning says that something has happened that a track may plan for.
	planning bool
}

// node is what is known of a node.
type node struct {
	name                     string
	labels                   map[string]string
	known, retired, external bool
	// away is since when it has not been heard of, in nanoseconds since 1970; zero when it is there.
	away int64
}

type module struct{ labels map[string]string }

type publication struct{ vetoed bool }

// merge is one that waits.
type merge struct {
	commands.ReleaseMerge
	rollout string
	version uint64
	asked   asked
	hindrance
}

type versionKey struct{ artifact, name, version, build, commit string }

// Config is what a state needs besides events.
type Config struct {
	Registry *es.Registry
	// Zones gives time zones by their names. Default: time.LoadLocation.
	Zones events.Zones
	// Window bounds the commands under way. Default: [DefaultWindow].
	Window int
}

// New returns the state before the first event.
func New(c Config) *State {
	if c.Zones == nil {
		c.Zones = time.LoadLocation
	}
	if c.Window <= 0 {
		c.Window = DefaultWindow
	}
	return &State{
		registry: c.Registry, zones: remembered(c.Zones), window: c.Window,
		engines: map[string]bool{}, rollouts: map[string]*rollout{}, places: map[string]*place{}, nodes: map[string]*node{},
		modules: map[string]*module{}, publications: map[string]*publication{}, freezes: map[string]*freeze{}, merges: map[string]*merge{}, placed: map[string]bool{},
		tracks: map[string]bool{}, semaphores: map[string]int{}, failed: map[string]bool{}, versions: map[versionKey]*events.Version{},
	}
}

// remembered keeps the zones that were looked up: reading one again and again is slow.
func remembered(zones events.Zones) events.Zones {
	known := map[string]*time.Location{}
	return func(name string) (*time.Location, error) {
		if z, ok := known[name]; ok {
			return z, nil
		}
		z, err := zones(name)
		if err == nil {
			known[name] = z
		}
		return z, err
	}
}

// Position is the sequence of the last event.
func (s *State) Position() uint64 { return s.position }

// Lease says who walks.
func (s *State) Lease() Lease { return s.lease }

// InFlight counts the actions under way.
func (s *State) InFlight() int { return s.inFlight }

// Drain lets nothing begin any more: what runs is ended when its report comes.
func (s *State) Drain() {
	s.draining = true
	s.touchAll()
}

// Forget takes what is under way as not asked: whoever walks from now on asks anew. Of the events nothing is forgotten.
func (s *State) Forget() {
	for _, r := range s.order {
		for _, st := range r.steps {
			if st.asked.number != 0 {
				s.free(r, st)
				r.back(st)
			}
			st.hindrance = hindrance{}
		}
		r.asked, r.hindrance = asked{}, hindrance{}
	}
	for _, m := range s.merges {
		m.asked, m.hindrance = asked{}, hindrance{}
	}
	s.inFlight = 0
	s.touchAll()
}

// SetAway says that a node has not been heard of since a moment, or, with the zero time, that it is there. A node of which nobody says
// anything counts as there.
func (s *State) SetAway(name string, since time.Time) {
	n := s.node(es.Key(name))
	n.name = name
	at := int64(0)
	if !since.IsZero() {
		at = since.UnixNano()
	}
	if (n.away != 0) == (at != 0) {
		return // that it is away is known: since when it has been is what was said first
	}
	if n.away = at; at != 0 {
		s.away++
	} else {
		s.away--
	}
	s.touchAll()
}

// Pending lists the steps that have begun and have no outcome, with their rollouts.
func (s *State) Pending() []Step {
	var list []Step
	for _, r := range s.order {
		for _, st := range r.inOrder {
			if st.phase == pending {
				list = append(list, Step{Rollout: r.id, StepName: st.name, Begun: time.Unix(0, st.begun).UTC()})
			}
		}
	}
	return list
}

// PendingCount counts them.
func (s *State) PendingCount() int { return s.pending }

// Step is a step that is under way.
type Step struct {
	Rollout string `json:"rollout"`
	events.StepName
	Begun time.Time `json:"begun"`
}

// ToTakeBack lists the rollouts that have failed and are to be taken back automatically, unless a plan for that is under way.
func (s *State) ToTakeBack() []string {
	return slices.Sorted(maps.Keys(s.failed))
}

// HalfPlan is a plan that an engine has begun to write down, and not closed.
type HalfPlan struct {
	Rollout string
	// Version is how many events the rollout has. Whoever gives it up MUST do so at that version: the rest of the plan may be under way.
	Version uint64
}

// HalfPlanned lists the plans that an engine has begun to write down, and not closed.
func (s *State) HalfPlanned() []HalfPlan {
	var list []HalfPlan
	for _, r := range s.order {
		if r.status == planning && r.auto {
			list = append(list, HalfPlan{Rollout: r.id, Version: r.version})
		}
	}
	return list
}

// PlansByItself says whether some track plans without being asked.
func (s *State) PlansByItself() bool { return len(s.tracks) > 0 }

// ToPlan says whether something has happened since the last call that a track may plan for.
func (s *State) ToPlan() bool {
	due := s.planning && len(s.tracks) > 0
	s.planning = false
	return due
}

// Knows says whether a rollout is walked: it is not final, or has pending steps.
func (s *State) Knows(id string) bool {
	_, ok := s.rollouts[id]
	return ok
}

// touchAll lets every rollout be looked at again.
func (s *State) touchAll() {
	for _, r := range s.order {
		r.dirty = true
	}
}

// version gives the one copy of a version.
func (s *State) version(v *events.Version) *events.Version {
	if v == nil {
		return nil
	}
	key := versionKey{artifact: v.Artifact, build: v.Build, commit: v.Commit}
	if v.Package != nil {
		key.name, key.version = v.Package.Name, v.Package.Version
	}
	if known, ok := s.versions[key]; ok {
		return known
	}
	s.versions[key] = v
	return v
}

func at[T any](m map[string]*T, key string) *T {
	v, ok := m[key]
	if !ok {
		v = new(T)
		m[key] = v
	}
	return v
}

func (s *State) node(key string) *node               { return at(s.nodes, key) }
func (s *State) module(key string) *module           { return at(s.modules, key) }
func (s *State) place(key string) *place             { return at(s.places, key) }
func (s *State) publication(key string) *publication { return at(s.publications, key) }

// Idle says whether there is nothing that anybody has to walk or to plan.
func (s *State) Idle() bool {
	return len(s.order) == 0 && len(s.failed) == 0 && len(s.placed) == 0 && len(s.tracks) == 0
}

// Count counts the rollouts that are walked.
func (s *State) Count() int { return len(s.order) }
