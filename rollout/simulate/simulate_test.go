package simulate_test

import (
	"flag"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"catenary/rollout/simulate"
)

var (
	seeds = flag.Uint64("seeds", 300, "how many seeds to run")
	from  = flag.Uint64("from", 1, "the first seed")
	keep  = flag.String("keep", "", "the places of the deeds that are done, as in 0,3,5; all of them if empty")
)

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
	began := time.Now()
	events := 0
	for seed := *from; seed < *from+*seeds; seed++ {
		c := simulate.Config{Seed: seed}
		r, err := simulate.Do(c)
		if err != nil {
			t.Fatalf("%v\n%s", err, command(c))
		}
		events += len(r.History.Events)
		if found := r.Violations(); len(found) > 0 {
			smaller, err := simulate.Shrink(c, found[0].Rule)
			t.Fatalf("%v\n%d more; %s\nsmaller: %s (%v)", found[0], len(found)-1, command(c), command(smaller), err)
		}
	}
	t.Logf("%d histories of %d events in %v", *seeds, events, time.Since(began))
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
		t.Fatal(err)
	}
	for i, d := range r.Deeds {
		t.Log(i, d)
	}
	for _, e := range r.History.Events {
		t.Logf("%d %s %s %s %s %s %.300s", e.Sequence, e.Recorded.Format("15:04:05.000"), e.Command.Actor, e.Command.ID, e.Ref, e.Type, fmt.Sprintf("%+v", e.Data))
	}
	for _, v := range r.Violations() {
		t.Error(v)
	}
}
