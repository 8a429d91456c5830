package health_test

import (
	"testing"

	"catenary/es/estest"
)

func TestMain(m *testing.M) { estest.VerifyTestMain(m) }
