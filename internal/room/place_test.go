package room

import (
	"strings"
	"testing"
)

// TestPlaceSaysHowFullItIs: of a disk that others fill, what is stored there says nothing.
func TestPlaceSaysHowFullItIs(t *testing.T) {
	t.Parallel()
	if said := (Place{Kind: Stream, Name: "S", Used: 30, Limit: 40}).String(); !strings.HasSuffix(said, "S: 30 of 40 bytes (75 %)") {
		t.Errorf("it says %q", said)
	}
	if said := (Place{Kind: Disk, Name: "/d", Used: 153}).String(); strings.Contains(said, "of 0 bytes") || !strings.Contains(said, "nothing is left") {
		t.Errorf("it says %q", said)
	}
}
