//go:build !failpoints

package failpoint

import "time"

// Enabled says whether the program was built to fail.
const Enabled = false

// Pass is a moment that can be made to wait, stop or end.
func Pass(Name) {}

// Fail is a moment that can be made to fail, too. It gives [ErrInjected].
func Fail(Name) error { return nil }

// Planted says whether a bug is planted.
func Planted(Bug) bool { return false }

// Clock gives the clock that a process goes by.
func Clock(now func() time.Time) func() time.Time { return now }
