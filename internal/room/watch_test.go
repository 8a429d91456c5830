package room_test

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/errors"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"catenary/es"
	"catenary/es/estest"
	"catenary/es/memstore"
	"catenary/internal/room"
	"catenary/internal/topology"
)

// bench is a bus with a small event stream and two others.
type bench struct {
	nc   *nats.Conn
	js   jetstream.JetStream
	log  estest.Log
	free atomic.Int64
}

const streamBytes = 4 << 20

func start(t *testing.T) *bench {
	t.Helper()
	b := &bench{nc: estest.Server(t, false).Connect(t)}
	b.free.Store(1 << 40)
	var err error
	if b.js, err = jetstream.New(b.nc); err != nil {
		t.Fatal(err)
	}
	options := topology.Options{EventStoreBytes: streamBytes, BucketBytes: streamBytes}
	for _, c := range []jetstream.StreamConfig{topology.Events(options), topology.Bucket(topology.BucketNodes, options), topology.Receipts(options)} {
		if _, err := b.js.CreateStream(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	return b
}

func (b *bench) watch(t *testing.T, dir string) *room.Watch {
	t.Helper()
	w, err := room.New(room.Config{
		Conn: b.nc, Dir: dir, Every: 20 * time.Millisecond, Logger: b.log.Logger(slog.LevelInfo),
		Free: func(string) (int64, error) { return b.free.Load(), nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// put fills a stream up to a share.
func (b *bench) put(t *testing.T, subject, stream string, share float64) {
	t.Helper()
	for {
		s, err := b.js.Stream(t.Context(), stream)
		if err != nil {
			t.Fatal(err)
		}
		if float64(s.CachedInfo().State.Bytes) >= share*float64(s.CachedInfo().Config.MaxBytes) {
			return
		}
		if _, err := b.js.Publish(t.Context(), subject, make([]byte, 32<<10)); err != nil {
			t.Fatal(err)
		}
	}
}

func place(t *testing.T, s room.State, name string) room.Place {
	t.Helper()
	i := slices.IndexFunc(s.Places, func(p room.Place) bool { return p.Name == name })
	if i < 0 {
		t.Fatalf("no place %s in %+v", name, s)
	}
	return s.Places[i]
}

// TestLevels fills the event stream: a warning at 80 %, full at its end, and ample again when its limit was raised. Each is said once.
func TestLevels(t *testing.T) {
	t.Parallel()
	b := start(t)
	w := b.watch(t, "")
	level := func(want room.Level) {
		t.Helper()
		for range 3 {
			s := w.Look(t.Context())
			if p := place(t, s, topology.EventStream); p.Level != want || s.Level != want || p.Kind != room.Stream || p.Limit < streamBytes {
				t.Fatalf("got %+v in %+v, want it %s", p, s, want)
			}
		}
	}
	level(room.Ample)
	b.put(t, topology.EventPrefix+".a.b", topology.EventStream, 0.81)
	level(room.Scarce)
	b.put(t, topology.EventPrefix+".a.b", topology.EventStream, 0.95)
	level(room.Full)
	s, err := b.js.Stream(t.Context(), topology.EventStream)
	if err != nil {
		t.Fatal(err)
	}
	c := s.CachedInfo().Config
	c.MaxBytes *= 4
	if _, err := b.js.UpdateStream(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	level(room.Ample)
	for _, words := range []string{"room is scarce", "there is no room left", "there is room again"} {
		if n := strings.Count(b.log.String(), words); n != 1 {
			t.Errorf("%q is said %d times", words, n)
		}
	}
	if err := w.Refusal(); err != nil {
		t.Errorf("the watch refuses what the server refuses itself: %v", err)
	}
	for _, p := range w.State().Places {
		if p.Name == topology.BucketReceipts {
			t.Errorf("%+v drops its oldest, and is no place", p)
		}
	}
	if p := place(t, w.State(), topology.BucketNodes); p.Kind != room.Bucket || p.Level != room.Ample {
		t.Errorf("got %+v", p)
	}
}

// TestAFullDisk refuses appends while the disk is full, and none after.
func TestAFullDisk(t *testing.T) {
	t.Parallel()
	b := start(t)
	w := b.watch(t, "disk")
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	gate := room.Gate{Store: memstore.New(memstore.Config{}), Watch: w}
	chain := estest.Chain{Label: "a"}
	chain.Append(t, gate, 1)
	await := func(refused bool) {
		t.Helper()
		b.log.Await(t, func() bool { return (w.Refusal() != nil) == refused })
	}
	b.free.Store(room.ReserveBytes)
	await(true)
	if err := es.Wait(t.Context(), chain.Hand(t.Context(), gate, 1)); !errors.Is(err, es.ErrFull) {
		t.Errorf("an append onto a full disk: %v", err)
	}
	if tail, err := gate.Tail(t.Context()); err != nil || tail != 1 {
		t.Errorf("the tail is %d, error %v", tail, err)
	}
	b.free.Store(1 << 40)
	await(false)
	after := estest.Chain{Label: "a"}
	after.Append(t, room.Gate{Store: memstore.New(memstore.Config{}), Watch: w}, 1)
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// TestADiskThatOthersFill warns before it is full, although the streams hold next to nothing on it; each change is said once.
func TestADiskThatOthersFill(t *testing.T) {
	t.Parallel()
	b := start(t)
	w := b.watch(t, "disk")
	for _, c := range []struct {
		free int64
		want room.Level
	}{
		{1 << 40, room.Ample},
		{room.ReserveBytes + 1<<30, room.Ample},
		{room.ReserveBytes + 1<<30 - 1, room.Scarce},
		{room.ReserveBytes + 1<<30, room.Scarce}, // not ample as soon as it is no longer below
		{room.ReserveBytes, room.Full},
		{room.ReserveBytes + 1<<20, room.Scarce},
		{room.ReserveBytes + 5<<28, room.Ample},
	} {
		b.free.Store(c.free)
		if s := w.Look(t.Context()); s.Level != c.want || place(t, s, "disk").Level != c.want {
			t.Errorf("with %d bytes free it is %s, want %s", c.free, s.Level, c.want)
		}
	}
	if n := strings.Count(b.log.String(), "room is scarce"); n != 2 {
		t.Errorf("that room is scarce is said %d times", n)
	}
}

// TestOutOfSight keeps what was seen, and says why it is old.
func TestOutOfSight(t *testing.T) {
	t.Parallel()
	b := start(t)
	w := b.watch(t, "disk")
	seen := w.Look(t.Context())
	b.nc.Close()
	s := w.Look(t.Context())
	if s.Problem == "" || !s.At.Equal(seen.At) || len(s.Places) != len(seen.Places) {
		t.Errorf("got %+v after %+v", s, seen)
	}
}
