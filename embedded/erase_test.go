package embedded_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cockroachdb/errors"
	"github.com/nats-io/nats.go/jetstream"

	"catenary/embedded"
	"catenary/internal/topology"
)

// TestEraseActor: what the mirror held is gone from it, and from its files, once it is erased; what was erased before is no error.
func TestEraseActor(t *testing.T) {
	t.Parallel()
	store := t.TempDir()
	s := start(t, embedded.Config{StoreDir: store})
	_, ledger := ledgerOf(t, s)
	check(t, s.EnsureMirrors(testContext(t)))
	const name = "Zebulon Quagmire"
	ack, err := ledger.Publish(testContext(t), topology.BucketSubject(topology.BucketActors, "a-1"), []byte(name))
	check(t, err)
	// It waits until the mirror has got it.
	for range 2 {
		check(t, s.EraseActor(testContext(t), ack.Sequence))
	}
	mirrors, err := s.Mirrors()
	check(t, err)
	defer mirrors.Close()
	mirror, err := jetstreamOf(t, mirrors).Stream(testContext(t), topology.BucketStream(topology.BucketActors))
	check(t, err)
	if _, err := mirror.GetMsg(testContext(t), ack.Sequence); !errors.Is(err, jetstream.ErrMsgNotFound) {
		t.Errorf("the mirror still gives it: %v", err)
	}
	stop(t, s)
	files, err := filepath.Glob(filepath.Join(store, embedded.MirrorPath(topology.BucketActors), "msgs", "*"))
	check(t, err)
	for _, file := range files {
		data, err := os.ReadFile(file)
		check(t, err)
		if strings.Contains(string(data), name) {
			t.Errorf("%s still holds the name", file)
		}
	}
	if err := s.EraseActor(testContext(t), 1); !errors.Is(err, embedded.ErrStopped) {
		t.Errorf("after the stop it gives %v, want ErrStopped", err)
	}
}
