package guard_test

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/errors"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"catenary/es"
	"catenary/es/estest"
	"catenary/internal/guard"
	"catenary/internal/streams"
	"catenary/internal/topology"
)

func TestMain(m *testing.M) { estest.VerifyTestMain(m) }

// patience bounds every wait. It is reached only when something is broken.
const patience = 30 * time.Second

const events = 10

// bench is a bus with an event stream of some events and a bucket.
type bench struct {
	nc  *nats.Conn
	js  jetstream.JetStream
	log estest.Log
	now time.Time
}

func start(t *testing.T) *bench {
	t.Helper()
	b := &bench{nc: estest.Server(t, false).Connect(t), now: time.Unix(1_800_000_000, 0)}
	var err error
	if b.js, err = jetstream.New(b.nc); err != nil {
		t.Fatal(err)
	}
	for _, c := range []jetstream.StreamConfig{topology.Events(options()), topology.Bucket(topology.BucketNodes, options()), topology.Checkpoints(options()), topology.Inbox(options())} {
		if _, err := b.js.CreateStream(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	for range events {
		if _, err := b.js.Publish(t.Context(), topology.EventPrefix+".node.n1", []byte("event")); err != nil {
			t.Fatal(err)
		}
	}
	return b
}

func options() topology.Options {
	return topology.Options{EventStoreBytes: 16 << 20, BucketBytes: 16 << 20}
}

func (b *bench) watch(t *testing.T) *guard.Watch {
	t.Helper()
	w, err := guard.New(guard.Config{Conn: b.nc, Streams: options(), Every: time.Hour, Logger: b.log.Logger(slog.LevelInfo), Now: func() time.Time { return b.now }})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// change changes a stream as somebody does who administers the server.
func (b *bench) change(t *testing.T, name string, how func(*jetstream.StreamConfig)) {
	t.Helper()
	s, err := b.js.Stream(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	c := s.CachedInfo().Config
	how(&c)
	if _, err := b.js.UpdateStream(t.Context(), c); err != nil {
		t.Fatal(err)
	}
}

// TestChanges makes every change that the server lets somebody make and that would drop or change what is in a stream.
func TestChanges(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, stream, field string
		how                 func(*jetstream.StreamConfig)
		stays               bool // the server does not take it back
		drops               bool
	}{
		{name: "a limit of messages that drops", stream: topology.EventStream, field: "MaxMsgs", drops: true, how: func(c *jetstream.StreamConfig) { c.MaxMsgs, c.Discard = 1, jetstream.DiscardOld }},
		{name: "a limit of messages that will", stream: topology.EventStream, field: "Discard", how: func(c *jetstream.StreamConfig) { c.MaxMsgs, c.Discard = 100, jetstream.DiscardOld }},
		{name: "a limit of age", stream: topology.EventStream, field: "MaxAge", how: func(c *jetstream.StreamConfig) { c.MaxAge = time.Hour }},
		{name: "dropping the oldest", stream: topology.EventStream, field: "Discard", how: func(c *jetstream.StreamConfig) { c.Discard = jetstream.DiscardOld }},
		{name: "one value a subject", stream: topology.BucketStream(topology.BucketNodes), field: "Discard", how: func(c *jetstream.StreamConfig) { c.MaxMsgsPerSubject, c.Discard = 5, jetstream.DiscardOld }},
		{name: "no limit of bytes", stream: topology.EventStream, field: "MaxBytes", how: func(c *jetstream.StreamConfig) { c.MaxBytes = -1 }},
		{name: "another subject", stream: topology.EventStream, field: "Subjects", how: func(c *jetstream.StreamConfig) { c.Subjects = append(c.Subjects, "others.>") }},
		{name: "reads from followers", stream: topology.EventStream, field: "AllowDirect", how: func(c *jetstream.StreamConfig) { c.AllowDirect = true }},
		{name: "retelling", stream: topology.EventStream, field: "RePublish", how: func(c *jetstream.StreamConfig) {
			c.RePublish = &jetstream.RePublish{Source: ">", Destination: "told.>"}
		}},
		{name: "messages that expire", stream: topology.EventStream, field: "AllowMsgTTL", stays: true, how: func(c *jetstream.StreamConfig) { c.AllowMsgTTL = true }},
		{name: "checkpoints that expire", stream: topology.CheckpointStream, field: "MaxAge", how: func(c *jetstream.StreamConfig) { c.MaxAge = time.Hour }},
		{name: "small messages", stream: topology.EventStream, field: "MaxMsgSize", how: func(c *jetstream.StreamConfig) { c.MaxMsgSize = 50 }},
		{name: "small values", stream: topology.BucketStream(topology.BucketNodes), field: "MaxMsgSize", how: func(c *jetstream.StreamConfig) { c.MaxMsgSize = 50 }},
		{name: "commands that expire", stream: topology.InboxStream, field: "MaxAge", how: func(c *jetstream.StreamConfig) { c.MaxAge = time.Hour }},
		{name: "sealed", stream: topology.EventStream, field: "Sealed", stays: true, how: func(c *jetstream.StreamConfig) { c.Sealed = true }},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := start(t)
			w := b.watch(t)
			if err := w.Look(t.Context()); err != nil || len(w.State().Alarms) > 0 {
				t.Fatalf("before: %+v, error %v", w.State(), err)
			}
			b.change(t, c.stream, c.how)
			err := w.Look(t.Context())
			if errors.Is(err, es.ErrBrokenChain) != c.drops {
				t.Errorf("got the error %v", err)
			}
			s := w.State()
			at := slices.IndexFunc(s.Alarms, func(a guard.Alarm) bool { return a.Stream == c.stream && a.Field == c.field })
			if at < 0 || s.Alarms[at].Undone == c.stays || s.Alarms[at].Advice() == "" {
				t.Fatalf("got %+v, want %s", s, c.field)
			}
			if open := s.Open(); c.drops && (s.Alarms[0].Undone || s.Alarms[0].Field != "events" || len(open) != 1) {
				t.Errorf("events that are gone are %+v", open)
			}
			said := strings.Count(b.log.String(), "not as it must be")
			if said != len(s.Alarms) {
				t.Errorf("it is said %d times:\n%s", said, b.log.String())
			}
			stream, err := b.js.Stream(t.Context(), c.stream)
			if err != nil {
				t.Fatal(err)
			}
			all := map[string]jetstream.StreamConfig{
				topology.EventStream: topology.Events(options()), topology.CheckpointStream: topology.Checkpoints(options()),
				topology.BucketStream(topology.BucketNodes): topology.Bucket(topology.BucketNodes, options()), topology.InboxStream: topology.Inbox(options()),
			}
			if err := streams.Check("events", all[c.stream], stream.CachedInfo().Config); (err != nil) != c.stays {
				t.Errorf("afterwards: %v", err)
			}
			// What is undone is told for a day; what is not, until it is.
			b.now = b.now.Add(guard.Remembered)
			_ = w.Look(t.Context()) // it says again what is missing
			if open := len(w.State().Alarms) > 0; open != (c.stays || c.drops) {
				t.Errorf("a day later: %+v", w.State())
			}
		})
	}
}

// TestWhatStaysHoldsNothingElse: one change that the server does not take back leaves no other change standing, and is not forgotten over it.
func TestWhatStaysHoldsNothingElse(t *testing.T) {
	t.Parallel()
	b := start(t)
	w := b.watch(t)
	b.change(t, topology.EventStream, func(c *jetstream.StreamConfig) { c.AllowMsgTTL = true })
	if err := w.Look(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.change(t, topology.EventStream, func(c *jetstream.StreamConfig) {
		c.MaxAge, c.MaxMsgs, c.Discard = time.Hour, 20, jetstream.DiscardOld
	})
	if err := w.Look(t.Context()); err != nil {
		t.Fatal(err)
	}
	stream, err := b.js.Stream(t.Context(), topology.EventStream)
	if err != nil {
		t.Fatal(err)
	}
	if found := streams.Dangers("events", topology.Events(options()), stream.CachedInfo().Config); len(found) != 1 || found[0].Field != "AllowMsgTTL" {
		t.Errorf("afterwards: %v", found)
	}
	if open := w.State().Open(); len(open) != 1 || open[0].Field != "AllowMsgTTL" {
		t.Errorf("open are %+v", open)
	}
	if strings.Contains(b.log.String(), "must be again") {
		t.Errorf("it says that all is well:\n%s", b.log.String())
	}
}

// TestWorkStreamGone: a stream that the processes work with is missed when it was there once, and until it is there again.
func TestWorkStreamGone(t *testing.T) {
	t.Parallel()
	b := start(t)
	w := b.watch(t)
	look := func() []guard.Alarm {
		if err := w.Look(t.Context()); err != nil {
			t.Fatal(err)
		}
		return w.State().Open()
	}
	if open := look(); len(open) > 0 {
		t.Errorf("what was never there is missed: %+v", open)
	}
	for name, config := range map[string]jetstream.StreamConfig{
		topology.InboxStream:                        topology.Inbox(options()),
		topology.BucketStream(topology.BucketNodes): topology.Bucket(topology.BucketNodes, options()),
	} {
		if err := b.js.DeleteStream(t.Context(), name); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if open := look(); len(open) != 1 || open[0].String() != "stream "+name+" is gone" || !strings.Contains(open[0].Advice(), "start the writer") {
				t.Errorf("got %+v", open)
			}
		}
		if _, err := b.js.CreateStream(t.Context(), config); err != nil {
			t.Fatal(err)
		}
		if open := look(); len(open) > 0 {
			t.Errorf("it is there again: %+v", open)
		}
	}
	// A view that is built anew has another bucket.
	if _, err := b.js.CreateStream(t.Context(), topology.Bucket(topology.Generation(topology.BucketNodes, 2), options())); err != nil {
		t.Fatal(err)
	}
	look()
	if err := b.js.DeleteStream(t.Context(), topology.BucketStream(topology.BucketNodes)); err != nil {
		t.Fatal(err)
	}
	if open := look(); len(open) > 0 {
		t.Errorf("a bucket that is retired is missed: %+v", open)
	}
}

// TestGone: a stream that somebody has deleted is not made again.
func TestGone(t *testing.T) {
	t.Parallel()
	b := start(t)
	w := b.watch(t)
	if err := b.js.DeleteStream(t.Context(), topology.EventStream); err != nil {
		t.Fatal(err)
	}
	if err := w.Look(t.Context()); !errors.Is(err, es.ErrBrokenChain) {
		t.Errorf("got %v", err)
	}
	if open := w.State().Open(); len(open) != 1 || !strings.Contains(open[0].String(), "gone") || !strings.Contains(open[0].Advice(), "catenary restore") {
		t.Errorf("got %+v", open)
	}
	if _, err := b.js.Stream(t.Context(), topology.EventStream); !errors.Is(err, jetstream.ErrStreamNotFound) {
		t.Errorf("it is there again: %v", err)
	}
}

// TestRestoring: what a restore has at work is left alone.
func TestRestoring(t *testing.T) {
	t.Parallel()
	b := start(t)
	w := b.watch(t)
	b.change(t, topology.EventStream, func(c *jetstream.StreamConfig) {
		c.Metadata = map[string]string{streams.RestoringKey: "10 events"}
		c.AllowDirect = true
	})
	if err := w.Look(t.Context()); err != nil {
		t.Fatal(err)
	}
	if open := w.State().Open(); len(open) != 1 || !strings.Contains(open[0].Problem, "restored") {
		t.Errorf("got %+v", open)
	}
}

// TestRun hears of a change from the server: it does not wait for the next look.
func TestRun(t *testing.T) {
	t.Parallel()
	b := start(t)
	w := b.watch(t)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	limit := time.After(patience)
	for {
		said := b.log.Grown()
		b.change(t, topology.EventStream, func(c *jetstream.StreamConfig) { c.MaxAge = 2 * time.Hour })
		select {
		case <-said:
		case <-limit:
			t.Fatal("nothing was found")
		case <-time.After(time.Second): // the watch had not begun to listen, or has undone it in between
			continue
		}
		break
	}
	if s := w.State(); len(s.Alarms) != 1 || !s.Alarms[0].Undone {
		t.Errorf("got %+v", s)
	}
	b.change(t, topology.EventStream, func(c *jetstream.StreamConfig) { c.MaxMsgs, c.Discard = 3, jetstream.DiscardOld })
	select {
	case err := <-ended:
		if !errors.Is(err, es.ErrBrokenChain) || !strings.Contains(err.Error(), "7 events are missing") {
			t.Errorf("it ended with %v", err)
		}
	case <-time.After(patience):
		t.Error("nobody says that events are gone")
	}
	stop()
}

// TestTell goes on over what is missing, as long as somebody asks.
func TestTell(t *testing.T) {
	t.Parallel()
	b := start(t)
	w := b.watch(t)
	b.change(t, topology.EventStream, func(c *jetstream.StreamConfig) { c.MaxMsgs, c.Discard = 3, jetstream.DiscardOld })
	ctx, stop := context.WithCancel(t.Context())
	said, ended := b.log.Grown(), make(chan error, 1)
	go func() { ended <- w.Tell(ctx) }()
	select {
	case <-said:
	case err := <-ended:
		t.Fatalf("it ended with %v", err)
	case <-time.After(patience):
		t.Fatal("nothing was found")
	}
	if open := w.State().Open(); len(open) != 1 || !strings.Contains(open[0].String(), "all but 7") {
		t.Errorf("got %+v", open)
	}
	// Another change is heard of, so it still looks.
	for open := w.State().Alarms; len(open) < 3; open = w.State().Alarms {
		said := b.log.Grown()
		b.change(t, topology.BucketStream(topology.BucketNodes), func(c *jetstream.StreamConfig) { c.MaxAge = 2 * time.Hour })
		select {
		case <-said:
		case err := <-ended:
			t.Fatalf("it ended with %v", err)
		case <-time.After(patience):
			t.Fatalf("a second change was not found: %+v", w.State())
		}
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
