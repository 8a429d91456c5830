package run

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/cockroachdb/errors"
	"github.com/nats-io/nats.go/jetstream"

	"catenary/agent/artifacts"
	"catenary/es"
	"catenary/es/estest"
	"catenary/internal/topology"
)

// TestComparedArtifact: what is not what its digest says is no backup of it, since it could not be restored.
func TestComparedArtifact(t *testing.T) {
	t.Parallel()
	sum := sha256.Sum256([]byte("published"))
	reading := func(content io.Reader) error {
		_, err := io.ReadAll(&compared{ReadCloser: io.NopCloser(content), digest: artifacts.Algorithm + hex.EncodeToString(sum[:]), sum: sha256.New()})
		return err
	}
	if err := reading(strings.NewReader("published")); err != nil {
		t.Error(err)
	}
	if err := reading(strings.NewReader("publishes")); !errors.Is(err, artifacts.ErrMismatch) {
		t.Errorf("a damaged one: %v", err)
	}
	if err := reading(iotest.ErrReader(artifacts.ErrUnavailable)); !errors.Is(err, es.ErrUnavailable) {
		t.Errorf("one that was cut: %v", err)
	}
}

// TestOrHoles names missing events as the reason why a stream could not be read, and no others.
func TestOrHoles(t *testing.T) {
	t.Parallel()
	nc := estest.Server(t, false).Connect(t)
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	c := topology.Events(topology.Options{EventStoreBytes: 16 << 20})
	stream, err := js.CreateStream(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	for range 5 {
		if _, err := js.Publish(t.Context(), topology.EventPrefix+".node.n1", []byte("event")); err != nil {
			t.Fatal(err)
		}
	}
	late := errors.New("the next event did not come")
	if err := orHoles(t.Context(), nc, late); err != late { //nolint:errorlint // it is the very same
		t.Errorf("of a whole stream: %v", err)
	}
	if err := orHoles(t.Context(), nc, nil); err != nil {
		t.Errorf("of no error: %v", err)
	}
	c = stream.CachedInfo().Config
	c.MaxMsgs, c.Discard = 3, jetstream.DiscardOld
	if _, err := js.UpdateStream(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	if err := orHoles(t.Context(), nc, late); !errors.Is(err, es.ErrBrokenChain) || !strings.Contains(err.Error(), "2 of them are missing") {
		t.Errorf("of a stream with holes: %v", err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := orHoles(ended, nc, late); errors.Is(err, es.ErrBrokenChain) {
		t.Errorf("when it was told to end: %v", err)
	}
}
