package simulate_test

import (
	"flag"
	"fmt"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"catenary/events"
	"catenary/rollout/simulate"
	"catenary/rollout/stage"
)

var (
	seeds = flag.Uint64("seeds", usualSeeds, "how many seeds to run")
	from  = flag.Uint64("from", 1, "the first seed")
	keep  = flag.String("keep", "", "the places of the incidents that are done, as in 0,3,5; all of them if empty")
)

// heapGrowth is how much garbage may gather before it is collected, in percent of what is held: a history holds little and throws much away, and
// the collector would take a third of the time.
const heapGrowth = 800

func TestMain(m *testing.M) {
	debug.SetGCPercent(heapGrowth)
	os.Exit(m.Run())
}

// command gives the command that makes the history of a run again.
func command(c simulate.Config) string {
	text := fmt.Sprintf("go test ./rollout/simulate -run TestReplay -v -seeds 1 -from %d", c.Seed)
	if c.Keep != nil {
		var places []string
		for _, k := range c.Keep {
			places = append(places, strconv.Itoa(k))
		}
		text += " -keep " + strings.Join(places, ",")
	}
	return text
}

// TestSeeds runs many histories: nothing that must not be may be in any of them.
func TestSeeds(t *testing.T) {
	t.Parallel()
	const lanes = 4
	for lane := range uint64(lanes) {
		t.Run(fmt.Sprintf("lane %d", lane), func(t *testing.T) {
			t.Parallel()
			began, n, number, steps, tools := time.Now(), 0, 0, 0, stage.NewTools()
			for seed, wrong := *from+lane, 0; seed < *from+*seeds && wrong < mostWrong; seed += lanes {
				r, ok := right(t, simulate.Config{Seed: seed, Tools: tools})
				if n++; !ok {
					wrong++
				}
				number += len(r.History.Events)
				for _, e := range r.History.Events {
					if _, begun := e.Data.(events.RolloutStepBegun); begun {
						steps++
					}
				}
			}
			t.Logf("%d histories of %d events, %d steps, in %v", n, number, steps, time.Since(began))
		})
	}
}

// mostWrong is how many histories may be wrong before no more are made: a fault that is in many of them is seen in the first.
const mostWrong = 5

// right makes a history in which nothing may be that must not be, and says whether that is so.
func right(t *testing.T, c simulate.Config) (simulate.Run, bool) {
	t.Helper()
	r, err := simulate.Do(c)
	if err != nil {
		t.Errorf("%v\n%s", err, command(c))
		return r, false
	}
	found := r.Violations()
	if len(found) == 0 {
		return r, true
	}
	smaller, err := simulate.Shrink(c, found[0].Rule)
	t.Errorf("%v\n%d more; %s\nsmaller: %s (%v)", found[0], len(found)-1, command(c), command(smaller), err)
	return r, false
}

// TestEngineDiesAtEveryEvent lets the engine that walks die whenever it has heard of something. The next one knows nothing but the events, and
// has to ask for the same and give the same reasons.
func TestEngineDiesAtEveryEvent(t *testing.T) {
	t.Parallel()
	const runs = 40
	tools := stage.NewTools()
	for seed := *from; seed < *from+runs; seed++ {
		if _, ok := right(t, simulate.Config{Seed: seed, Anew: true, Tools: tools}); !ok {
			return
		}
	}
}

// TestSameSeedSameHistory makes a history twice.
func TestSameSeedSameHistory(t *testing.T) {
	t.Parallel()
	const seed = 1276
	one, _ := right(t, simulate.Config{Seed: seed})
	other, _ := right(t, simulate.Config{Seed: seed})
	if diff := cmp.Diff(one.History, other.History); diff != "" {
		t.Errorf("the second history differs (-first +second):\n%s", diff)
	}
	if len(one.History.Events) == 0 || len(one.History.Told) == 0 {
		t.Error("nothing has happened")
	}
}

func TestReplay(t *testing.T) {
	t.Parallel()
	c := simulate.Config{Seed: *from}
	if *keep != "" {
		for _, text := range strings.Split(*keep, ",") {
			k, err := strconv.Atoi(text)
			if err != nil {
				t.Fatal(err)
			}
			c.Keep = append(c.Keep, k)
		}
	}
	r, err := simulate.Do(c)
	if err != nil {
		t.Error(err)
	}
	for i, d := range r.Incidents {
		t.Log(i, d)
	}
	for _, e := range r.History.Events {
		t.Logf("%d %s %s %s %s %s %.300s", e.Sequence, e.Recorded.Format("15:04:05.000"), e.Command.Actor, e.Command.ID, e.Ref, e.Type, fmt.Sprintf("%+v", e.Data))
	}
	for _, v := range r.Violations() {
		t.Error(v)
	}
}
