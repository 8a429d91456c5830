package run

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/errors"
)

func TestLogOfAnErrorIsItsMessage(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	Logger(&out, slog.LevelInfo, time.TimeOnly, false).Error("it stops", "reason", errors.Wrap(errors.New("no disk"), "write"))
	if got := out.String(); !strings.HasSuffix(got, " ERR it stops reason=\"write: no disk\"\n") {
		t.Errorf("got %q", got)
	}
}
