package serving_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/nats-io/nats.go"
	"go.uber.org/goleak"

	"catenary/internal/serving"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestDesk: as many work at once as there are places, the next one waits or is turned away, and the end waits for those that work.
func TestGroup(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := serving.NewGroup(2)
		finish := make(chan struct{})
		ended := 0
		for range 2 {
			if !g.TryGo(func() { <-finish; ended++ }) {
				t.Fatal("a free place was not given")
			}
			synctest.Wait()
		}
		if g.Take() {
			t.Error("a third place was given")
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if g.Await(ctx) {
			t.Error("a third place was given to one that had ended to wait")
		}
		waited := make(chan bool)
		go func() { waited <- g.Await(t.Context()) }()
		synctest.Wait()
		finish <- struct{}{}
		if !<-waited {
			t.Error("the place that became free was not given to who waited")
		}
		g.Leave()
		if !g.Take() {
			t.Error("a place that was left is not given again")
		}
		g.Close()
		if g.Go(func() { t.Error("work began on a closed group") }) {
			t.Error("a closed group says that work began")
		}
		if !g.Take() {
			t.Error("the place of work that did not begin is not free")
		}
		done := make(chan struct{})
		go func() {
			defer close(done)
			g.Wait()
		}()
		synctest.Wait()
		select {
		case <-done:
			t.Error("the end did not wait for what had begun")
		default:
		}
		finish <- struct{}{}
		<-done
		if ended != 2 {
			t.Errorf("%d have ended, want both", ended)
		}
	})
}

func TestRespondToNobody(t *testing.T) {
	t.Parallel()
	if err := serving.Respond(nil, "", nil, nil); !errors.Is(err, nats.ErrMsgNoReply) {
		t.Errorf("it gave %v", err)
	}
}
