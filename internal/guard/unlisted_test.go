package guard

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/cockroachdb/errors"
	"github.com/nats-io/nats.go/jetstream"

	"catenary/es"
	"catenary/internal/topology"
)

// shortList is a server of a cluster that leaves the event stream out of its list, as it does while that has no leader, and answers for it alone
// what it is made to.
type shortList struct {
	jetstream.JetStream
	config *jetstream.StreamConfig
	fails  error
}

func (s shortList) ListStreams(context.Context, ...jetstream.StreamListOpt) jetstream.StreamInfoLister {
	return emptyList{}
}

func (s shortList) Stream(context.Context, string) (jetstream.Stream, error) {
	if s.fails != nil {
		return nil, s.fails
	}
	return listed{config: *s.config}, nil
}

type emptyList struct{ jetstream.StreamInfoLister }

func (emptyList) Info() <-chan *jetstream.StreamInfo {
	none := make(chan *jetstream.StreamInfo)
	close(none)
	return none
}

func (emptyList) Err() error { return nil }

type listed struct {
	jetstream.Stream
	config jetstream.StreamConfig
}

func (l listed) CachedInfo() *jetstream.StreamInfo { return &jetstream.StreamInfo{Config: l.config} }

// TestUnlisted: a stream that is not in the list is gone only when the server says so of it.
func TestUnlisted(t *testing.T) {
	t.Parallel()
	events := topology.Events(topology.Options{})
	for name, c := range map[string]struct {
		server  shortList
		gone    bool
		problem bool
	}{
		"it has a leader again":   {server: shortList{config: &events}},
		"it has no leader yet":    {server: shortList{fails: context.DeadlineExceeded}, problem: true},
		"the servers have none":   {server: shortList{fails: &jetstream.APIError{ErrorCode: 10008, Code: 503}}, problem: true},
		"somebody has deleted it": {server: shortList{fails: jetstream.ErrStreamNotFound}, gone: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := &Watch{cfg: Config{Now: time.Now, Logger: slog.New(slog.DiscardHandler)}, js: c.server}
			err := w.Look(t.Context())
			s := w.State()
			if errors.Is(err, es.ErrBrokenChain) != c.gone || (s.Problem != "") != c.problem || (len(s.Alarms) > 0) != c.gone {
				t.Errorf("the error %v, and %+v", err, s)
			}
		})
	}
}
