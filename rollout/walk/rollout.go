package walk

import (
	"cmp"
	"slices"
	"time"

	"golang.org/x/time/rate"

	"catenary/events"
)

// status is how a rollout stands.
type status uint8

const (
	planning status = iota
	planned
	waitingApproval
	running
	paused
	final
)

// phase is how a step stands.
type phase uint8

const (
	waiting phase = iota
	pending
	done
	failed
	unknown
	skipped
)

func (p phase) String() string {
	return [...]string{events.StepWaiting, events.StepPending, events.StepDone, events.StepFailed, events.StepUnknown, events.StepSkipped}[p]
}

func (p phase) ended() bool { return p > pending }

// phaseOf gives the phase of an outcome.
func phaseOf(outcome string) (phase, bool) {
	for p := done; p <= skipped; p++ {
		if p.String() == outcome {
			return p, true
		}
	}
	return waiting, false
}

// rollout is one that is walked.
type rollout struct {
	id     string
	status status
	// version is how many events it has.
	version uint64
	// auto says that an engine planned it.
	auto bool
	// rollback says that it goes back by itself when it fails, reverts which rollout it takes back itself.
	rollback bool
	reverts  string
	begun    bool

	tiers   []*tier
	entered int
	steps   map[events.StepName]*step
	inOrder []*step
	// ends holds steps that may come to an end: reported ones, and those that never begin.
	ends []*step

	// pausedAt is since when it is paused, in nanoseconds since 1970, and paused how long it was before.
	pausedAt int64
	paused   time.Duration
	// ended is when it became final, in nanoseconds since 1970.
	ended int64
	// moved is when something of it last happened, said what was recorded to block it since.
	moved int64
	said  string

	asked asked
	hindrance
	// asking counts its commands under way.
	asking int
	// dirty says that it is to be looked at, wake when it is at the latest; zero for never.
	dirty bool
	wake  time.Time
}

// tier is a tier's policy, and how far it is.
type tier struct {
	events.Tier
	place    int
	steps    int
	approved bool
	// counts holds the number of its steps in each phase.
	counts [skipped + 1]int
	// asking counts the steps whose begin is under way.
	asking int
	// ready holds the steps that wait for nothing but their turn, in the order of the plan.
	ready []*step
	// queue holds the steps that are pending in the order they began; others are dropped from it when they come to its head.
	queue []attempt
	// ended is when a step of it last came to an end, in nanoseconds since 1970, pausedThen how long the rollout had been paused by then.
	ended      int64
	pausedThen time.Duration
	semaphores []semaphore
	limiter    *rate.Limiter
}

type semaphore struct {
	id    string
	count int
}

// attempt is one try of a step.
type attempt struct {
	step   *step
	number int
}

// step is a change of a rollout.
type step struct {
	name    events.StepName
	rollout *rollout
	tier    *tier
	index   int
	phase   phase

	attempt, spent int
	begun, ended   int64
	paused         time.Duration
	before, after  *events.Version
	refresh        bool
	notified       int
	// waitsFor are the steps that it waits for, left how many of them are not done; followers are those that wait for it.
	waitsFor, followers []*step
	left                int

	place       *place
	node        *node
	module      *module
	publication *publication

	asked asked
	hindrance
}

func newTier(place int, t events.Tier) *tier {
	n := &tier{Tier: t, place: place}
	for _, text := range t.Semaphores {
		if id, count, err := events.ParseSemaphore(text); err == nil {
			n.semaphores = append(n.semaphores, semaphore{id: id, count: count})
		}
	}
	// One that is named twice is held once, and the smaller count holds.
	slices.SortFunc(n.semaphores, func(a, b semaphore) int { return cmp.Or(cmp.Compare(a.id, b.id), cmp.Compare(a.count, b.count)) })
	n.semaphores = slices.CompactFunc(n.semaphores, func(a, b semaphore) bool { return a.id == b.id })
	if t.Limit != nil {
		n.limiter = rate.NewLimiter(rate.Limit(float64(t.Limit.PerMinute)/time.Minute.Seconds()), max(1, t.Limit.Burst))
	}
	return n
}

// open counts the steps without an outcome.
func (t *tier) open() int { return t.counts[waiting] + t.counts[pending] }

// bad counts the steps that failed, or of which nothing is known.
func (t *tier) bad() int { return t.counts[failed] + t.counts[unknown] }

// budget is how many may be bad.
func (t *tier) budget() int { return t.FailureBudget.Of(t.steps) }

// atOnce is how many steps may be under way.
func (t *tier) atOnce() int {
	if t.Concurrency.IsZero() {
		return t.steps
	}
	return max(1, t.Concurrency.Of(t.steps))
}

// waits says whether the tier leaves nodes that are away open.
func (t *tier) waits() bool { return t.Offline == "" || t.Offline == events.OfflineWait }

// insert puts a step among those that are ready.
func (t *tier) insert(st *step) {
	at, there := slices.BinarySearchFunc(t.ready, st.index, func(s *step, index int) int { return cmp.Compare(s.index, index) })
	if !there {
		t.ready = slices.Insert(t.ready, at, st)
	}
}

// remove takes a step from those that are ready.
func (t *tier) remove(st *step) {
	at, there := slices.BinarySearchFunc(t.ready, st.index, func(s *step, index int) int { return cmp.Compare(s.index, index) })
	if there {
		t.ready = slices.Delete(t.ready, at, at+1)
	}
}

// tier gives a tier by its name.
func (r *rollout) tier(name string) (*tier, bool) {
	for _, t := range r.tiers {
		if t.Name == name {
			return t, true
		}
	}
	return nil, false
}

// next gives the next tier that has steps.
func (r *rollout) next() (*tier, bool) {
	for _, t := range r.tiers[r.entered:] {
		if t.steps > 0 {
			return t, true
		}
	}
	return nil, false
}

// back lets a step be looked at again.
func (r *rollout) back(st *step) {
	if st.phase == waiting && st.left == 0 {
		st.tier.insert(st)
	}
	r.ends = append(r.ends, st)
	r.dirty = true
}

// pausedUntil is how long the rollout has been paused up to a moment.
func (r *rollout) pausedUntil(at time.Time) time.Duration {
	if r.pausedAt == 0 {
		return r.paused
	}
	return r.paused + max(0, at.Sub(time.Unix(0, r.pausedAt)))
}

// deadline is when a step that is pending counts as unknown, if the rollout is not paused until then. A final one is not paused any more.
func (r *rollout) deadline(st *step, now time.Time) time.Time {
	if r.status == final {
		now = time.Unix(0, r.ended)
	}
	return time.Unix(0, st.begun).UTC().Add(st.tier.StepTimeout() + max(0, r.pausedUntil(now)-st.paused))
}

// hopeless gives a step that it waits for and that has ended without being done.
func (st *step) hopeless() (*step, bool) {
	for _, w := range st.waitsFor {
		if w.phase.ended() && w.phase != done {
			return w, true
		}
	}
	return nil, false
}

// conclusion gives what the node's report says of a step that is pending.
func (st *step) conclusion() (events.StepResult, bool) {
	said := st.place.of(st.rollout.id)
	result := events.StepResult{Reason: st.place.reason, Reported: st.place.when, Driver: st.place.driver}
	switch {
	case st.after == nil && said.gone(), st.after != nil && said.here():
		result.Outcome = events.StepDone
	case said.bad():
		result.Outcome = events.StepFailed
	default:
		return result, false
	}
	return result, true
}
