package main

import "testing"

func TestCounted(t *testing.T) {
	t.Parallel()
	for want, found := range map[string]string{
		"0 checks": counted(0, "check"), "1 process": counted(1, "process"), "2 processes": counted(2, "process"), "29 checks": counted(29, "check"),
	} {
		if found != want {
			t.Errorf("%q, want %q", found, want)
		}
	}
}
