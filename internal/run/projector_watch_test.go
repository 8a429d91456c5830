package run

import (
	"strings"
	"testing"

	"catenary/es/project"
	"catenary/internal/health"
)

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
