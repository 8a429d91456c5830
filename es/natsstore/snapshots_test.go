package natsstore_test

import (
	"bytes"
	"crypto/sha256"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/errors"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"catenary/es"
	"catenary/es/estest"
	"catenary/es/natsstore"
	"catenary/internal/topology"
)

func openSnapshots(t testing.TB, nc *nats.Conn, bytes int64) *natsstore.Snapshots {
	t.Helper()
	if err := natsstore.EnsureSnapshots(t.Context(), nc, topology.Options{BucketBytes: bytes}); err != nil {
		t.Fatal(err)
	}
	s, err := natsstore.OpenSnapshots(t.Context(), nc, natsstore.Config{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestSnapshots(t *testing.T) {
	t.Parallel()
	estest.RunSnapshotsSuite(t, func(t *testing.T) estest.Snapshots {
		return openSnapshots(t, estest.Server(t, false).Connect(t), 0)
	})
}

func content(size int) []byte { return bytes.Repeat([]byte("catenary"), size/8) }

func save(t testing.TB, s *natsstore.Snapshots, sequence uint64, data []byte) {
	t.Helper()
	if err := s.Save(t.Context(), sequence, func(out io.Writer) error { _, err := out.Write(data); return err }); err != nil {
		t.Fatal(err)
	}
}

func objectStream(t testing.TB, nc *nats.Conn) jetstream.Stream {
	t.Helper()
	st, err := js(t, nc).Stream(t.Context(), topology.ObjectsStream(topology.ObjectsSnapshots))
	if err != nil {
		t.Fatal(err)
	}
	return st
}

// The usual tools read what is kept, and objects of theirs are left alone.
func TestSnapshotsAreObjects(t *testing.T) {
	t.Parallel()
	nc := estest.Server(t, false).Connect(t)
	s := openSnapshots(t, nc, 0)
	objects, err := js(t, nc).ObjectStore(t.Context(), topology.ObjectsSnapshots)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := objects.PutString(t.Context(), "a note", "of somebody"); err != nil {
		t.Fatal(err)
	}
	want := content(1 << 20)
	for sequence := uint64(1); sequence <= 12; sequence++ {
		save(t, s, sequence, want)
	}
	list, err := objects.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, o := range list {
		names = append(names, o.Name)
	}
	if got, want := strings.Join(names, ", "), "a note, base-00000000000000000011, base-00000000000000000012"; got != want {
		t.Errorf("the bucket has %s, want %s", got, want)
	}
	got, err := objects.GetBytes(t.Context(), "base-00000000000000000012")
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("nats.go reads %d bytes of %d, %v", len(got), len(want), err)
	}
	if note, err := objects.GetString(t.Context(), "a note"); err != nil || note != "of somebody" {
		t.Errorf("the note says %q, %v", note, err)
	}
	// What somebody deletes by hand is gone, without a trace that hinders.
	if err := objects.Delete(t.Context(), "base-00000000000000000012"); err != nil {
		t.Fatal(err)
	}
	if sequence, base, err := s.Load(t.Context(), 0); err != nil || sequence != 11 {
		t.Errorf("base %d, %v", sequence, err)
	} else if err := base.Close(); err != nil {
		t.Error(err)
	}
}

// Two writers at work do not spoil each other's bases.
func TestSnapshotsOfTwoWriters(t *testing.T) {
	t.Parallel()
	bus := estest.Server(t, false)
	s, other := openSnapshots(t, bus.Connect(t), 0), openSnapshots(t, bus.Connect(t), 0)
	want := content(1 << 20)
	err := s.Save(t.Context(), 5, func(out io.Writer) error {
		for part := range slices.Chunk(want, len(want)/4) {
			if _, err := out.Write(part); err != nil {
				return err
			}
			save(t, other, 4, content(1000))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	sequence, base, err := s.Load(t.Context(), 0)
	if err != nil || sequence != 5 {
		t.Fatalf("base %d, %v", sequence, err)
	}
	got, err := io.ReadAll(base)
	if err := errors.CombineErrors(err, base.Close()); err != nil || !bytes.Equal(got, want) {
		t.Errorf("read %d bytes, %v", len(got), err)
	}
}

// A damaged base takes no good one's place.
func TestDamagedSnapshotPushesNoneOut(t *testing.T) {
	t.Parallel()
	nc := estest.Server(t, false).Connect(t)
	s := openSnapshots(t, nc, 0)
	save(t, s, 1, content(1000))
	save(t, s, 2, content(1000))
	last, err := objectStream(t, nc).GetLastMsgForSubject(t.Context(), topology.ObjectChunkSubject(topology.ObjectsSnapshots, ">"))
	if err != nil {
		t.Fatal(err)
	}
	if err := objectStream(t, nc).DeleteMsg(t.Context(), last.Sequence); err != nil {
		t.Fatal(err)
	}
	save(t, s, 3, content(1000))
	sequence, base, err := s.Load(t.Context(), 2)
	if err != nil || sequence != 1 {
		t.Fatalf("base %d, %v; want the one before the damaged one", sequence, err)
	}
	if err := base.Close(); err != nil {
		t.Error(err)
	}
	save(t, s, 4, content(1000))
	if sequence, _, err := s.Load(t.Context(), 3); !errors.Is(err, es.ErrNotFound) {
		t.Errorf("base %d, %v; two newer ones are whole", sequence, err)
	}
}

// Chunks that a killed process left behind go when they are seen for the second time.
func TestSnapshotsRemoveWhatWasNeverFinished(t *testing.T) {
	t.Parallel()
	nc := estest.Server(t, false).Connect(t)
	s := openSnapshots(t, nc, 0)
	save(t, s, 1, content(1000))
	before, err := objectStream(t, nc).Info(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if _, err := js(t, nc).Publish(t.Context(), topology.ObjectChunkSubject(topology.ObjectsSnapshots, "left"), content(1000)); err != nil {
			t.Fatal(err)
		}
	}
	save(t, s, 2, content(1000))
	save(t, s, 3, content(1000))
	after, err := objectStream(t, nc).Info(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got, want := after.State.Msgs, 2*before.State.Msgs; got != want {
		t.Errorf("the bucket has %d messages, want %d: those of two bases", got, want)
	}
}

// Damage is found when a base is read, at once.
func TestDamagedSnapshots(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		damage func(t *testing.T, st jetstream.Stream, upload string)
		says   string
	}{
		{"a chunk is missing", func(t *testing.T, st jetstream.Stream, _ string) {
			if err := st.DeleteMsg(t.Context(), 2); err != nil {
				t.Fatal(err)
			}
		}, "chunks"},
		{"all chunks are missing", func(t *testing.T, st jetstream.Stream, upload string) {
			if err := st.Purge(t.Context(), jetstream.WithPurgeSubject(upload)); err != nil {
				t.Fatal(err)
			}
		}, "chunks"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			nc := estest.Server(t, false).Connect(t)
			s := openSnapshots(t, nc, 0)
			save(t, s, 1, content(1<<20))
			first, err := objectStream(t, nc).GetMsg(t.Context(), 1)
			if err != nil {
				t.Fatal(err)
			}
			tt.damage(t, objectStream(t, nc), first.Subject)
			wantUnreadable(t, s, tt.says)
		})
	}
	t.Run("a chunk is another", func(t *testing.T) {
		t.Parallel()
		nc := estest.Server(t, false).Connect(t)
		s := openSnapshots(t, nc, 0)
		save(t, s, 1, content(256<<10))
		first, err := objectStream(t, nc).GetMsg(t.Context(), 1)
		if err != nil {
			t.Fatal(err)
		}
		if err := objectStream(t, nc).DeleteMsg(t.Context(), 2); err != nil {
			t.Fatal(err)
		}
		if _, err := js(t, nc).Publish(t.Context(), first.Subject, make([]byte, len(first.Data))); err != nil {
			t.Fatal(err)
		}
		wantUnreadable(t, s, "digest")
	})
}

func wantUnreadable(t *testing.T, s *natsstore.Snapshots, says string) {
	t.Helper()
	_, base, err := s.Load(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(base); err == nil || !strings.Contains(err.Error(), says) {
		t.Errorf("reading: %v, want an error about %s", err, says)
	}
	if err := base.Close(); err != nil {
		t.Error(err)
	}
}

// A bucket without room keeps what it has, and says that it is full.
func TestSnapshotsWithoutRoom(t *testing.T) {
	t.Parallel()
	nc := estest.Server(t, false).Connect(t)
	s := openSnapshots(t, nc, 1<<20)
	want := content(500_000)
	save(t, s, 1, want)
	err := s.Save(t.Context(), 2, func(out io.Writer) error { _, err := out.Write(content(2 << 20)); return err })
	if !errors.Is(err, es.ErrFull) {
		t.Errorf("got %v", err)
	}
	sequence, base, err := s.Load(t.Context(), 0)
	if err != nil || sequence != 1 {
		t.Fatalf("base %d, %v", sequence, err)
	}
	got, err := io.ReadAll(base)
	if err := errors.CombineErrors(err, base.Close()); err != nil || sha256.Sum256(got) != sha256.Sum256(want) {
		t.Errorf("read %d bytes, %v", len(got), err)
	}
	save(t, s, 2, want[:100])
}

func TestSnapshotsAreDiscarded(t *testing.T) {
	t.Parallel()
	s := openSnapshots(t, estest.Server(t, false).Connect(t), 0)
	save(t, s, 1, content(1000))
	if err := s.Discard(t.Context()); err != nil {
		t.Fatal(err)
	}
	if sequence, _, err := s.Load(t.Context(), 0); !errors.Is(err, es.ErrNotFound) {
		t.Errorf("base %d, %v", sequence, err)
	}
}

func TestEnsureSnapshotsRaisesTheLimit(t *testing.T) {
	t.Parallel()
	nc := estest.Server(t, false).Connect(t)
	for _, c := range []struct{ asked, want int64 }{{1 << 20, 1 << 20}, {8 << 20, 8 << 20}, {2 << 20, 8 << 20}} {
		openSnapshots(t, nc, c.asked)
		if found := objectStream(t, nc).CachedInfo().Config.MaxBytes; found != c.want {
			t.Errorf("asked for %d bytes, the limit is %d, want %d", c.asked, found, c.want)
		}
	}
	if _, err := js(t, nc).UpdateStream(t.Context(), jetstream.StreamConfig{
		Name: topology.ObjectsStream(topology.ObjectsSnapshots), Subjects: []string{"other"}, MaxBytes: 8 << 20, PersistMode: jetstream.AsyncPersistMode, Discard: jetstream.DiscardNew,
	}); err != nil {
		t.Fatal(err)
	}
	if err := natsstore.EnsureSnapshots(t.Context(), nc, topology.Options{}); err == nil || !strings.Contains(err.Error(), "can't hold snapshots") {
		t.Errorf("a bucket of another form: got %v", err)
	}
}
