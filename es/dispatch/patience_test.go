package dispatch_test

import (
	"iter"
	"testing"
	"time"

	"catenary/es"
	"catenary/es/dispatch"
	"catenary/es/estest"
)

// Whoever waits while the writer takes in what another has appended is told unknown when its patience ends, whatever the store
// does not answer meanwhile; and its command is done all the same.
func TestPatienceEndsWhileTheWriterTakesOver(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		spoil func(appends *estest.Faulty, reads *shaky, release <-chan struct{})
	}{
		{"the record of its start", func(appends *estest.Faulty, _ *shaky, release <-chan struct{}) {
			appends.Script(estest.Pass, estest.HoldAck(release))
		}},
		{"a read", func(_ *estest.Faulty, reads *shaky, release <-chan struct{}) {
			reads.mu.Lock()
			defer reads.mu.Unlock()
			reads.reads = append(reads.reads, heldUntil(release))
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			truth, release := memory(t), make(chan struct{})
			appends := estest.NewFaulty(truth)
			reads := &shaky{Store: appends}
			b := start(t, reads, func(c *dispatch.Config) { c.Patience = 100 * time.Millisecond })
			start(t, truth) // another writer, which has appended now
			c.spoil(appends, reads, release)
			late := command(pay{Account: "shop", Amount: 1})
			if a := b.send(late); a.Status != es.StatusUnknown {
				t.Errorf("got %+v", a)
			}
			close(release)
			a := b.send(late)
			for begun := time.Now(); a.Status == es.StatusUnknown && time.Since(begun) < 20*time.Second; {
				a = b.send(late)
			}
			if a.Status != es.StatusAccepted || !a.Repeated {
				t.Errorf("again: %+v", a)
			}
		})
	}
}

// heldUntil gives the messages once there is a release.
func heldUntil(release <-chan struct{}) func(iter.Seq2[es.Message, error]) iter.Seq2[es.Message, error] {
	return func(messages iter.Seq2[es.Message, error]) iter.Seq2[es.Message, error] {
		return func(yield func(es.Message, error) bool) {
			<-release
			messages(yield)
		}
	}
}
