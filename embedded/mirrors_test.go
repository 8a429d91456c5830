package embedded_test

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cockroachdb/errors"
	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go/jetstream"

	"catenary/embedded"
	"catenary/es/estest"
	"catenary/internal/mirrors"
	"catenary/internal/topology"
)

// values reads a whole stream, in order, as text.
func values(t *testing.T, js jetstream.JetStream, bucket string) []string {
	t.Helper()
	stream, err := js.Stream(testContext(t), topology.BucketStream(bucket))
	check(t, err)
	state := stream.CachedInfo().State
	var all []string
	for sequence := state.FirstSeq; sequence <= state.LastSeq && state.Msgs > 0; sequence++ {
		m, err := stream.GetMsg(testContext(t), sequence)
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			all = append(all, fmt.Sprintf("%d: gone", sequence))
			continue
		}
		check(t, err)
		all = append(all, fmt.Sprintf("%d: %s %s %v %s", sequence, m.Subject, m.Data, m.Header, m.Time))
	}
	return all
}

// trueMirror checks that a bucket's mirror holds the same values.
func trueMirror(t *testing.T, b bus, bucket string) {
	t.Helper()
	mirrors, err := b.Mirrors()
	check(t, err)
	defer mirrors.Close()
	ledger := connectLedger(t, b)
	defer ledger.Close()
	if diff := cmp.Diff(values(t, jetstreamOf(t, ledger), bucket), values(t, jetstreamOf(t, mirrors), bucket)); diff != "" {
		t.Errorf("mirror of %s differs (-bucket +mirror):\n%s", bucket, diff)
	}
}

func TestMirrorNeedsItsBucket(t *testing.T) {
	t.Parallel()
	s := start(t, embedded.Config{})
	if err := s.EnsureMirrors(testContext(t)); !errors.Is(err, mirrors.ErrNoBucket) {
		t.Errorf("got error %v, want ErrNoBucket", err)
	}
	stop(t, s)
	if err := s.EnsureMirrors(testContext(t)); !errors.Is(err, embedded.ErrStopped) {
		t.Errorf("got error %v, want ErrStopped", err)
	}
}

// TestMirrorsAreMadeTrue damages a mirror or its origin between two runs. Each case starts from ten values in the bucket and
// its mirror.
func TestMirrorsAreMadeTrue(t *testing.T) {
	t.Parallel()
	const bucket = topology.BucketAssignments
	stream := topology.BucketStream(bucket)
	cases := []struct {
		name string
		// damage works on the running server, offline on the stopped one's directory.
		damage  func(t *testing.T, s *embedded.Server, js, mirrors jetstream.JetStream)
		offline func(t *testing.T, dir, backup string)
		// after works on the server that was started again, before the mirrors are ensured.
		after  func(t *testing.T, js jetstream.JetStream)
		reason string // empty: it stays as it is
	}{
		{name: "nothing happened"},
		{
			name: "it is missing",
			damage: func(t *testing.T, _ *embedded.Server, _, m jetstream.JetStream) {
				check(t, m.DeleteStream(testContext(t), stream))
			},
		},
		{
			name:    "its origin lost its tail",
			offline: restoreOrigin,
			reason:  "it is ahead: at 10, the bucket at 4",
		},
		{
			name:    "its origin lost its tail and has other values there",
			offline: restoreOrigin,
			after:   func(t *testing.T, js jetstream.JetStream) { put(t, js, bucket, "n2.web", 6) },
			reason:  "value 10 is another in the bucket",
		},
		{
			name: "its origin was made anew",
			damage: func(t *testing.T, s *embedded.Server, js, _ jetstream.JetStream) {
				check(t, js.DeleteStream(testContext(t), stream))
				_, err := js.CreateStream(testContext(t), topology.Bucket(bucket, s.Options()))
				check(t, err)
			},
			reason: "it is ahead: at 10, the bucket at 0",
		},
		{
			name: "it is configured otherwise",
			damage: func(t *testing.T, s *embedded.Server, _, m jetstream.JetStream) {
				c := topology.Mirror(bucket, s.Options())
				c.MaxBytes /= 2
				_, err := m.UpdateStream(testContext(t), c)
				check(t, err)
			},
			reason: "its configuration is another",
		},
		{
			name: "it is a forged stream of the same name",
			damage: func(t *testing.T, s *embedded.Server, _, m jetstream.JetStream) {
				check(t, m.DeleteStream(testContext(t), stream))
				_, err := m.CreateStream(testContext(t), topology.Bucket(bucket, s.Options()))
				check(t, err)
				put(t, m, bucket, "n1.web", 10)
			},
			reason: "its configuration is another",
		},
		{
			name: "it has a hole",
			damage: func(t *testing.T, s *embedded.Server, _, m jetstream.JetStream) {
				check(t, m.DeleteStream(testContext(t), stream))
				open := topology.Mirror(bucket, s.Options())
				open.DenyDelete = false
				mirror, err := m.CreateStream(testContext(t), open)
				check(t, err)
				awaitMirror(t, s, bucket, 10)
				check(t, mirror.DeleteMsg(testContext(t), 5))
				_, err = m.UpdateStream(testContext(t), topology.Mirror(bucket, s.Options()))
				check(t, err)
			},
			reason: "it holds 9 values from 1 on, the bucket 10 from 1 on",
		},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir, backup := t.TempDir(), t.TempDir()
			s := start(t, embedded.Config{StoreDir: dir})
			_, js := ledgerOf(t, s)
			check(t, s.EnsureMirrors(testContext(t)))
			put(t, js, bucket, "n1.web", 4)
			stop(t, s)
			check(t, os.CopyFS(backup, os.DirFS(originDir(dir))))

			s = start(t, embedded.Config{StoreDir: dir})
			js = jetstreamOf(t, connectLedger(t, s))
			awaitMirror(t, s, bucket, put(t, js, bucket, "n1.web", 6))
			mirrors, err := s.Mirrors()
			check(t, err)
			if c.damage != nil {
				c.damage(t, s, js, jetstreamOf(t, mirrors))
			}
			stop(t, s)
			if c.offline != nil {
				c.offline(t, dir, backup)
			}

			var log estest.Log
			s = start(t, embedded.Config{StoreDir: dir, Logger: log.Logger(slog.LevelWarn)})
			js = jetstreamOf(t, connectLedger(t, s))
			if c.after != nil {
				c.after(t, js)
			}
			check(t, s.EnsureMirrors(testContext(t)))
			if anew := strings.Contains(log.String(), "made anew"); anew != (c.reason != "") || !strings.Contains(log.String(), c.reason) {
				t.Errorf("want it made anew for %q, logged:\n%s", c.reason, log.String())
			}
			trueMirror(t, s, bucket)
			// It follows, and is left alone from now on.
			awaitMirror(t, s, bucket, put(t, js, bucket, "n1.api", 3))
			trueMirror(t, s, bucket)
			before := log.String()
			check(t, s.EnsureMirrors(testContext(t)))
			if got := strings.TrimPrefix(log.String(), before); strings.Contains(got, "made anew") {
				t.Errorf("made anew again:\n%s", got)
			}
		})
	}
}

func originDir(store string) string {
	return filepath.Join(store, "jetstream", topology.AccountLedger, "streams", topology.BucketStream(topology.BucketAssignments))
}

// restoreOrigin puts the bucket back to what it was with four values, as if a crash had taken its tail.
func restoreOrigin(t *testing.T, dir, backup string) {
	t.Helper()
	check(t, os.RemoveAll(originDir(dir)))
	check(t, os.CopyFS(originDir(dir), os.DirFS(backup)))
}

// The directory of actors keeps one value per key. What was erased there must not live on in its mirror.
func TestMirrorOfOverwrittenValues(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := start(t, embedded.Config{StoreDir: dir})
	_, js := ledgerOf(t, s)
	check(t, s.EnsureMirrors(testContext(t)))
	put(t, js, topology.BucketActors, "a1", 3)
	awaitMirror(t, s, topology.BucketActors, put(t, js, topology.BucketActors, "a2", 2))
	trueMirror(t, s, topology.BucketActors)
	stop(t, s)
	var log estest.Log
	s = start(t, embedded.Config{StoreDir: dir, Logger: log.Logger(slog.LevelWarn)})
	check(t, s.EnsureMirrors(testContext(t)))
	trueMirror(t, s, topology.BucketActors)
	if strings.Contains(log.String(), "made anew") {
		t.Errorf("an equal mirror was made anew:\n%s", log.String())
	}
}

// TestMirrorsWithoutABucketGo: the mirror of a generation whose bucket was removed goes with the next look; those of others stay.
func TestMirrorsWithoutABucketGo(t *testing.T) {
	t.Parallel()
	s := start(t, embedded.Config{})
	_, js := ledgerOf(t, s)
	former := topology.Generation(topology.BucketNodes, 2)
	_, err := js.CreateStream(testContext(t), topology.Bucket(former, s.Options()))
	check(t, err)
	check(t, s.EnsureMirrors(testContext(t)))
	mirrors, err := s.Mirrors()
	check(t, err)
	there := func(bucket string) bool {
		_, err := jetstreamOf(t, mirrors).Stream(testContext(t), topology.BucketStream(bucket))
		if err != nil && !errors.Is(err, jetstream.ErrStreamNotFound) {
			t.Fatal(err)
		}
		return err == nil
	}
	if !there(former) || !there(topology.BucketNodes) {
		t.Fatal("a mirror is missing")
	}
	check(t, js.DeleteStream(testContext(t), topology.BucketStream(former)))
	check(t, s.EnsureMirrors(testContext(t)))
	if there(former) || !there(topology.BucketNodes) {
		t.Errorf("without its bucket a mirror is there: %v; that of another: %v", there(former), there(topology.BucketNodes))
	}
}
