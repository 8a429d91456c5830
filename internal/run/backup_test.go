package run

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/cockroachdb/errors"

	"catenary/agent/artifacts"
	"catenary/es"
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
