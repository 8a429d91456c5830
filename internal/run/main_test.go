package run

import (
	"testing"
	"time"

	"catenary/es/estest"
)

// waitLimit bounds every wait. It is reached only when something is broken.
const waitLimit = 30 * time.Second

func TestMain(m *testing.M) { estest.VerifyTestMain(m) }
