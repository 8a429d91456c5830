package memstore_test

import (
	"testing"

	"github.com/cockroachdb/errors"
	"go.uber.org/goleak"

	"catenary/es"
	"catenary/es/estest"
	"catenary/es/memstore"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestStore(t *testing.T) {
	t.Parallel()
	estest.RunStoreSuite(t, func(t *testing.T, l estest.Limits) es.Store {
		s := memstore.New(memstore.Config{MaxMessageBytes: l.MessageBytes, MaxBytes: l.TotalBytes})
		t.Cleanup(s.Close)
		return s
	})
}

func TestCloseEndsFollowersAndRefusesAppends(t *testing.T) {
	t.Parallel()
	s := memstore.New(memstore.Config{})
	chain := estest.Chain{Label: "a"}
	chain.Append(t, s, 1)
	ended := make(chan error, 1)
	started := make(chan struct{})
	go func() {
		for _, err := range s.Follow(t.Context(), 0) {
			if err != nil {
				ended <- err
				return
			}
			close(started)
		}
		ended <- nil
	}()
	<-started
	s.Close()
	s.Close()
	if err := <-ended; !errors.Is(err, es.ErrUnavailable) {
		t.Errorf("the follower ended with %v", err)
	}
	if err := es.Wait(t.Context(), chain.Hand(t.Context(), s, 1)); !errors.Is(err, es.ErrUnavailable) {
		t.Errorf("append: %v", err)
	}
	if _, err := s.Tail(t.Context()); !errors.Is(err, es.ErrUnavailable) {
		t.Errorf("tail: %v", err)
	}
}
