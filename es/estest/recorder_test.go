package estest

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
)

// recorder is a test that only notes its failures: for tests of what must fail.
type recorder struct {
	testing.TB
	failures []string
	cleanups []func()
}

func (r *recorder) Helper()          {}
func (r *recorder) Cleanup(f func()) { r.cleanups = append(r.cleanups, f) }
func (r *recorder) Errorf(format string, args ...any) {
	r.failures = append(r.failures, fmt.Sprintf(format, args...))
}

func (r *recorder) Fatalf(format string, args ...any) {
	r.Errorf(format, args...)
	runtime.Goexit()
}

// failuresOf runs a test and gives what it complained about.
func failuresOf(t *testing.T, run func(testing.TB)) string {
	r := &recorder{TB: t}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() {
			for _, f := range r.cleanups {
				f()
			}
		}()
		run(r)
	}()
	<-done
	return strings.Join(r.failures, "\n")
}
