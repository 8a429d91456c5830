package pull

import (
	"testing"

	"catenary/es/estest"
)

func TestMain(m *testing.M) { estest.VerifyTestMain(m) }
