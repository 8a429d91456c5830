package run

import (
	"testing"
	"time"

	"catenary/internal/health"
	"catenary/internal/room"
)

// TestAStoreThatDoesNotAnswer: one look that fails is no reason to send nobody here any more, and a store that stays away is.
func TestAStoreThatDoesNotAnswer(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	away := room.State{At: at, Problem: "timeout"}
	for after, want := range map[time.Duration]health.State{5 * time.Second: health.Warn, 20 * time.Second: health.Fail} {
		if f := judgeRoom(away, at.Add(after)); f.State != want || f.Code != health.Away || f.Next == "" {
			t.Errorf("%s after it has answered last: %+v, want %s", after, f, want)
		}
	}
	if f := judgeRoom(room.State{At: at}, at.Add(time.Hour)); f.State != health.OK {
		t.Errorf("while it answers: %+v", f)
	}
	if f := judgeRoom(room.State{Problem: "timeout"}, at); f.State != health.Warn {
		t.Errorf("before the first look: %+v", f)
	}
}
