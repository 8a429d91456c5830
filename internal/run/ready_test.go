package run

import "testing"

// TestReadyWhenAllServe calls it ready with the last service, once, and not before.
func TestReadyWhenAllServe(t *testing.T) {
	t.Parallel()
	called := 0
	serves := whenAll(3, func() { called++ })
	for i, want := range []int{0, 0, 1, 1} {
		if serves(); called != want {
			t.Errorf("after %d services: called ready %d times, want %d", i+1, called, want)
		}
	}
	whenAll(1, nil)()
}
