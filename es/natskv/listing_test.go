package natskv_test

import (
	"fmt"
	"testing"
)

// TestEntriesMissNothingWhileWritten lists keys while all of them are written anew, again and again: each listing has every key.
func TestEntriesMissNothingWhileWritten(t *testing.T) {
	t.Parallel()
	b, _ := bucket(t)
	keys := make([]string, 20)
	for i := range keys {
		keys[i] = fmt.Sprint("k", i)
	}
	fill(t, b, len(keys), keys...)
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			default:
				fill(t, b, 10*len(keys), keys...)
			}
		}
	}()
	defer func() { close(stop); <-stopped }()
	for range 100 {
		found := map[string]bool{}
		for e, err := range b.Entries(bounded(t)) {
			if err != nil {
				t.Error(err)
				return
			}
			found[e.Key] = true
		}
		if len(found) != len(keys) {
			t.Errorf("a listing has %d of %d keys", len(found), len(keys))
			return
		}
	}
}
