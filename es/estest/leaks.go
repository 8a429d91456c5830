package estest

import (
	"fmt"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// leakPatience is how long goroutines may take to end. Those of a server that was stopped take longer on a busy machine than goleak waits.
const leakPatience = 30 * time.Second

// Leaks gives the goroutines that do not end.
func Leaks(options ...goleak.Option) error {
	for began := time.Now(); ; {
		if err := goleak.Find(options...); err == nil || time.Since(began) > leakPatience {
			return err
		}
	}
}

// VerifyTestMain runs a package's tests, and fails when they leave goroutines behind.
func VerifyTestMain(m *testing.M, options ...goleak.Option) {
	code := m.Run()
	if code == 0 {
		if err := Leaks(options...); err != nil {
			_, _ = fmt.Fprintf(os.Stderr, "goroutines were left: %v\n", err) // the exit code says it too
			code = 1
		}
	}
	os.Exit(code)
}
