package run

import (
	"strings"
	"testing"

	"catenary/es/project"
	"catenary/internal/guard"
	"catenary/internal/health"
)

// TestJudgeGuard names all that is wrong: what is told first may be what can't be mended.
func TestJudgeGuard(t *testing.T) {
	t.Parallel()
	f := judgeGuard(guard.State{Alarms: []guard.Alarm{
		{Stream: "A", Field: "Sealed", Found: "true", Expected: "false"}, {Stream: "B", Field: "MaxAge", Undone: true},
		{Stream: "C", Field: "Sealed", Found: "true", Expected: "false"}, {Stream: "D", Field: "AllowMsgTTL", Found: "true", Expected: "false"},
	}})
	if f.State != health.Fail || strings.Count(f.Reason, "; ") != 2 || !strings.Contains(f.Reason, "stream D has AllowMsgTTL") || strings.Contains(f.Reason, "stream B") || strings.Count(f.Next, "nats stream edit") != 1 {
		t.Errorf("got %+v", f)
	}
}

// TestJudgeStandstill: a stream that can't be read at the moment is no damaged one, and nobody is sent for a backup.
func TestJudgeStandstill(t *testing.T) {
	t.Parallel()
	if f := judgeStandstill(project.Status{Reason: "the stream's tail: deadline exceeded", Away: true}); f.State != health.Fail || f.Code != health.Away || strings.Contains(f.Next, "backup") {
		t.Errorf("away: %+v", f)
	}
	if f := judgeStandstill(project.Status{Reason: "event 5 is missing"}); f.State != health.Fail || f.Code != health.Damaged || !strings.Contains(f.Next, "backup") {
		t.Errorf("damaged: %+v", f)
	}
}
