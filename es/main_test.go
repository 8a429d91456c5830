package es_test

import (
	"os"
	"testing"
	"time"
)

// TestMain runs all tests of the package in a zone that is not UTC: what is stored and read MUST not depend on where the
// program runs.
func TestMain(m *testing.M) {
	time.Local = time.FixedZone("elsewhere", 5*60*60+45*60)
	os.Exit(m.Run())
}
