package dispatch_test

import (
	"testing"
	"time"

	"catenary/es"
	"catenary/es/estest"
)

// TestRepeatsOutliveTheWindow is case B04: one command id comes again and again for ten times as long as the server looks for
// duplicates, each time within its window and after it. There is one event, and each repeat gets the first answer.
func TestRepeatsOutliveTheWindow(t *testing.T) {
	t.Parallel()
	b := start(t, natsStore(t, estest.Server(t, false)))
	c := command(pay{Account: "shop", Amount: 7})
	first := b.send(c)
	if first.Status != es.StatusAccepted || first.Repeated {
		t.Fatalf("the first answer is %+v", first)
	}
	again := time.NewTicker(70 * time.Millisecond) // the stream's window is 100 ms
	defer again.Stop()
	for range 15 {
		<-again.C
		if a := b.send(c); a.Status != es.StatusAccepted || !a.Repeated || a.Sequence != first.Sequence {
			t.Fatalf("a repeat gets %+v, the first got %+v", a, first)
		}
	}
	if events := history(t, b.store); len(events) != 2 { // the writer's start, and one
		t.Errorf("%d events stand, want 2", len(events))
	}
}
