package estest

import (
	"testing"
	"time"

	"github.com/google/uuid"
)

func TestClockStandsStill(t *testing.T) {
	t.Parallel()
	c := NewClock()
	if !c.Now().Equal(Epoch()) || !c.Now().Equal(c.Now()) {
		t.Errorf("the clock stands at %v", c.Now())
	}
	if got := c.Advance(time.Hour); !got.Equal(Epoch().Add(time.Hour)) || !c.Now().Equal(got) {
		t.Errorf("an hour later the clock stands at %v, now %v", got, c.Now())
	}
	c.Set(Epoch().Add(-time.Hour).In(time.FixedZone("", 3600)))
	if got := c.Now(); got != Epoch().Add(-time.Hour) {
		t.Errorf("set back, the clock stands at %v", got)
	}
}

func TestIDsAreTheSameInEveryRun(t *testing.T) {
	t.Parallel()
	clock := NewClock()
	a, b := NewIDs(clock.Now), NewIDs(clock.Now)
	seen := map[string]bool{}
	last := ""
	for range 1000 {
		id := a.Next()
		if id != b.Next() {
			t.Fatal("two sources differ")
		}
		if seen[id] || id <= last {
			t.Fatalf("%s comes after %s", id, last)
		}
		seen[id], last = true, id
		parsed, err := uuid.Parse(id)
		if err != nil || parsed.Version() != 7 || parsed.Variant() != uuid.RFC4122 {
			t.Fatalf("%s is no UUID of version 7: %v", id, err)
		}
		if sec, nsec := parsed.Time().UnixTime(); !time.Unix(sec, nsec).Equal(clock.Now()) {
			t.Fatalf("%s says it is %v, it is %v", id, time.Unix(sec, nsec), clock.Now())
		}
		clock.Advance(time.Second)
	}
	if first := NewIDs(Epoch).Next(); first != "019b76da-a800-7000-8000-000000000001" {
		t.Errorf("the first id is %s", first)
	}
}
