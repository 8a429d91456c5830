package walk

import (
	"fmt"
	"math"
	"slices"
	"time"

	"catenary/commands"
	"catenary/es"
	"catenary/events"
)

// verdict is what comes of looking at a step that waits for its turn, or at a tier: a command, or what it waits for.
type verdict struct {
	payload es.Payload
	begins  bool
	// reason is why it does not move, one of the Hold constants of events or the code of the writer's refusal.
	reason string
	// words says what it waits for. It is made only for whoever asks: a look that leads to nothing is looked at again and again.
	words func() string
	// until is when that ends, if it is known; due when to look again.
	until, due time.Time
	// wholeTier says that it holds for all steps of the tier behind it.
	wholeTier bool
}

func (l *look) consider(st *step) verdict {
	r, t := st.rollout, st.tier
	if st.hindrance.holds(l.now) {
		// When to ask again is no end of it: told as one, it would be a new reason each time.
		return verdict{reason: st.code, words: func() string { return st.message }, due: st.hindrance.ends()}
	}
	for _, o := range st.place.steps {
		if o != st && o.asked.begins {
			return verdict{reason: events.HoldStale, words: func() string { return "rollout " + o.rollout.id + " to have begun there" }}
		}
	}
	n := st.node
	ours := st.place.rollout == r.id
	right := same(st.place.at, st.after)
	switch {
	case n.known && !n.retired && !n.external && right && !st.refresh && !ours:
		// The writer sees that it is right already, and tells nobody. But what stands may have changed when it decides: then the step begins
		// like any other, and nobody else counts semaphores.
		if v, held := l.full(t); held && len(t.semaphores) > 0 {
			return v
		}
		return verdict{payload: beginStep(r, st), begins: true}
	case st.refresh && st.notified == 0:
		return verdict{payload: endStep(r, st, events.StepResult{Outcome: events.StepSkipped, Reason: "nothing that it waits for has changed"})}
	case n.external:
		return verdict{reason: HoldExternal, words: func() string { return "somebody who settles it: no agent acts on the node" }}
	case !n.known || n.retired:
		return verdict{reason: HoldRetired, words: func() string { return "the node to be registered, or somebody who settles it" }}
	case !same(st.place.at, st.before) && !(right && ours):
		return verdict{reason: events.HoldStale, words: func() string {
			return fmt.Sprintf("another plan: it is at %s, and this one was made for %s", say(st.place.at), say(st.before))
		}}
	case n.away != 0:
		return l.offline(st)
	}
	// Its own reasons first: those of the tier come and go with what others do.
	if v, held := l.delayed(st); held {
		return v
	}
	if v, held := l.full(t); held {
		return v
	}
	return verdict{payload: beginStep(r, st), begins: true}
}

// Reasons that are no Hold constants of events. They are stable.
const (
	// HoldExternal means that somebody else manages the node.
	HoldExternal = "node-external"
	// HoldRetired means that the node is retired, or not registered.
	HoldRetired = "node-retired"
)

// offline does with a step whose node is away what the tier's policy says.
func (l *look) offline(st *step) verdict {
	r, since := st.rollout, time.Unix(0, st.node.away).UTC()
	reason := func() string { return "the node has not been heard of since " + since.Format(time.RFC3339) }
	switch st.tier.Offline {
	case events.OfflineSkip:
		return verdict{payload: endStep(r, st, events.StepResult{Outcome: events.StepSkipped, Reason: reason()})}
	case events.OfflineFail:
		return verdict{payload: endStep(r, st, events.StepResult{Outcome: events.StepFailed, Reason: reason()})}
	}
	return verdict{reason: events.HoldOffline, words: func() string { return "its node to come back: " + reason() }}
}

// full says whether the tier can take another step now.
func (l *look) full(t *tier) (verdict, bool) {
	busy := t.counts[pending] + t.asking
	if busy >= t.atOnce() {
		return verdict{reason: events.HoldConcurrency, wholeTier: true, words: func() string {
			return fmt.Sprintf("one of the %d steps of tier %s that are under way", busy, t.Name)
		}}, true
	}
	for _, m := range t.semaphores {
		if l.semaphores[m.id] >= m.count {
			return verdict{reason: events.HoldSemaphore, wholeTier: true, words: func() string {
				return fmt.Sprintf("semaphore %s:%d to come free, which %s", m.id, m.count, l.holders(m.id))
			}}, true
		}
	}
	if t.limiter != nil {
		if lacking := 1 + float64(t.asking) - t.limiter.TokensAt(l.now); lacking > tokenSlack {
			wait := time.Duration(math.Ceil(lacking / float64(t.limiter.Limit()) * float64(time.Second)))
			until := l.now.Add(wait)
			return verdict{reason: events.HoldLimit, wholeTier: true, until: until, due: until, words: func() string {
				return fmt.Sprintf("its turn: tier %s begins at most %d steps a minute", t.Name, t.Limit.PerMinute)
			}}, true
		}
	}
	return verdict{}, false
}

// holders says which steps hold a semaphore, of whichever rollouts.
func (s *State) holders(id string) string {
	first, others := "", 0
	for _, r := range s.order {
		for _, t := range r.tiers {
			if !slices.ContainsFunc(t.semaphores, func(m semaphore) bool { return m.id == id }) {
				continue
			}
			for _, st := range r.inOrder {
				switch {
				case st.tier != t || st.phase != pending && !st.asked.begins:
				case first == "":
					first = fmt.Sprintf("%s of rollout %s holds", st.name, r.id)
				default:
					others++
				}
			}
		}
	}
	switch {
	case first == "":
		return "nobody holds any more"
	case others > 0:
		return fmt.Sprintf("%s, and %d more", first, others)
	}
	return first
}

// tokenSlack is what a token may lack: a limiter counts in floating point.
const tokenSlack = 1e-6

// delayed says whether a step has to wait for a time, a freeze or a veto.
func (l *look) delayed(st *step) (verdict, bool) {
	if st.spent > 0 && st.ended > 0 {
		if until := time.Unix(0, st.ended).UTC().Add(st.tier.RetryDelay()); l.now.Before(until) {
			return verdict{reason: events.HoldRetry, until: until, due: until, words: func() string {
				return fmt.Sprintf("its next try, after %d that failed", st.spent)
			}}, true
		}
	}
	var held verdict
	for _, f := range l.frosts() {
		if !f.picks(st) {
			continue
		}
		if held.reason == "" || f.until.IsZero() || !held.until.IsZero() && f.until.After(held.until) {
			held = verdict{reason: events.HoldFrozen, until: f.until, due: f.until, words: f.words}
		}
	}
	if held.reason != "" {
		return held, true
	}
	if st.publication != nil && st.publication.vetoed {
		return verdict{reason: events.HoldVetoed, words: func() string { return fmt.Sprintf("the veto on %s to be lifted", say(st.after)) }}, true
	}
	return verdict{}, false
}

// through looks at whether the present tier is through: it gives the command that goes on, or what that waits for.
func (l *look) through(r *rollout) verdict {
	advance := commands.AdvanceRollout{ID: r.id}
	open := 0
	for _, t := range r.tiers[:r.entered] {
		if t.bad() > t.budget() {
			return verdict{payload: advance}
		}
		open += t.open()
	}
	if open > 0 {
		if l.away == 0 {
			return verdict{}
		}
		advance.Offline = leftOpen(r)
		if len(advance.Offline) < open || open > commands.MaxListItems {
			return verdict{}
		}
	}
	if v, held := l.well(r); held {
		return v
	}
	next, more := r.next()
	switch {
	case !more && open > 0:
		return verdict{} // each of them says that its node is away
	case more && next.Approval && !next.approved:
		return verdict{reason: events.HoldApproval, words: func() string { return "somebody to approve tier " + next.Name }}
	}
	return verdict{payload: advance}
}

// leftOpen lists the steps without an outcome whose nodes are away, and whose tier goes on without them.
func leftOpen(r *rollout) []events.StepName {
	var list []events.StepName
	for _, st := range r.inOrder {
		if st.tier.place < r.entered && !st.phase.ended() && st.node.away != 0 && st.tier.waits() {
			list = append(list, st.name)
		}
	}
	return list
}

// well says whether the present tier has to stay well for longer, by reports that name this rollout alone.
func (l *look) well(r *rollout) (verdict, bool) {
	t := r.tiers[r.entered-1]
	gated, bake := t.Gate == events.GateHealthy, t.BakeTime()
	if !gated && bake == 0 {
		return verdict{}, false
	}
	bad, quiet := 0, 0
	for _, st := range r.inOrder {
		if st.tier != t || st.phase != done || st.after == nil || st.place.rollout != r.id {
			continue
		}
		switch {
		case st.place.said.bad():
			bad++
		case gated && st.place.said != healthy:
			quiet++
		}
	}
	if bad > 0 && t.bad()+bad > t.budget() {
		return verdict{}, false // it fails, and the writer says so
	}
	if quiet > 0 {
		return verdict{reason: events.HoldGate, words: func() string { return fmt.Sprintf("reports of health of tier %s", t.Name) }}, true
	}
	until := time.Unix(0, t.ended).UTC().Add(bake + r.pausedUntil(l.now) - t.pausedThen)
	if l.now.Before(until) {
		return verdict{reason: events.HoldBake, until: until, due: until, words: func() string { return fmt.Sprintf("tier %s to have stayed well for %s", t.Name, t.Bake) }}, true
	}
	return verdict{}, false
}
