package simulate

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// Incident is something that is done to a run: by people, to nodes, to engines, or to the bus. It says all of it, so a run may be had without it.
type Incident struct {
	At time.Duration
	// What is one of the incidents below; A, B and C choose to what, among what is there by then.
	What    string
	A, B, C int
}

// String gives it for a person.
func (d Incident) String() string { return fmt.Sprintf("%v %s %d %d %d", d.At, d.What, d.A, d.B, d.C) }

// What may be done.
const (
	doPlan      = "plan"
	doTakeBack  = "take back"
	doRestore   = "restore"
	doStart     = "start"
	doApprove   = "approve"
	doPause     = "pause"
	doResume    = "resume"
	doAbort     = "abort"
	doSupersede = "supersede"
	doSettle    = "settle"
	doRetry     = "retry"
	doAssign    = "assign"
	doUnassign  = "unassign"
	doRelabel   = "relabel"
	doRetire    = "retire"
	doFreeze    = "freeze"
	doLift      = "lift"
	doVeto      = "veto"
	doLiftVeto  = "lift veto"
	doVanish    = "vanish"
	doCrash     = "crash"
	doHang      = "hang"
	doReopen    = "reopen"
	doStorm     = "storm"
	doTrap      = "trap"
	doLeave     = "leave"
	doMerge     = "merge"
	doTrack     = "track"
	doTrigger   = "trigger"
)

// frequent gives how often each incident is done, besides what comes first. Where there are tracks much is merged.
func frequent(tracked bool) []string {
	var list []string
	type often struct {
		what string
		of   int
	}
	all := []often{
		{doPlan, 14}, {doTakeBack, 3}, {doRestore, 3}, {doStart, 4}, {doApprove, 12}, {doPause, 6}, {doResume, 8}, {doAbort, 3}, {doSupersede, 2}, {doSettle, 6},
		{doRetry, 6}, {doAssign, 6}, {doUnassign, 2}, {doRelabel, 3}, {doRetire, 1}, {doFreeze, 7}, {doLift, 5}, {doVeto, 6}, {doLiftVeto, 3}, {doVanish, 9},
		{doCrash, 6}, {doHang, 6}, {doReopen, 3}, {doStorm, 6}, {doTrap, 9}, {doLeave, 1},
	}
	if tracked {
		all = append(all, often{doMerge, 35}, often{doTrack, 5}, often{doTrigger, 6})
	}
	for _, w := range all {
		for range w.of {
			list = append(list, w.what)
		}
	}
	return list
}

// incidentsOf gives what is done in a run, in order.
func incidentsOf(seed uint64, tracked bool) []Incident {
	chance := rand.New(rand.NewPCG(seed, 3))
	often := frequent(tracked)
	number := func() int { return int(chance.Int32()) }
	first := doPlan
	if tracked {
		first = doMerge
	}
	list := []Incident{{At: time.Duration(1+chance.IntN(20)) * time.Second, What: first, A: number(), B: number(), C: number()}}
	for range 10 + chance.IntN(16) {
		list = append(list, Incident{
			At: time.Duration(chance.Int64N(int64(faulty/time.Millisecond*9/10))) * time.Millisecond, What: often[chance.IntN(len(often))], A: number(), B: number(), C: number(),
		})
	}
	slices.SortStableFunc(list, func(a, b Incident) int { return cmp.Compare(a.At, b.At) })
	return list
}
