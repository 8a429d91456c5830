package run

import (
	"testing"
	"time"

	"go.uber.org/goleak"
)

// waitLimit bounds every wait. It is reached only when something is broken.
const waitLimit = 30 * time.Second

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
