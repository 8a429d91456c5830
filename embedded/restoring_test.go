package embedded_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/cockroachdb/errors"

	"catenary/embedded"
)

// TestNobodyStartsOverARestore: neither the server of a chain nor one of a cluster, until it has ended.
func TestNobodyStartsOverARestore(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "store")
	config := filepath.Join(t.TempDir(), "server.conf")
	check(t, os.WriteFile(config, fmt.Appendf(nil, "listen: 127.0.0.1:-1\naccounts { LEDGER: { } }\njetstream { store_dir: %q }\n", dir), 0o600))
	check(t, embedded.BeginRestore(dir))
	if marked, err := embedded.Restoring(dir); err != nil || !marked {
		t.Errorf("it is marked %v, error %v", marked, err)
	}
	if _, err := embedded.Start(testContext(t), embedded.Config{StoreDir: dir}); !errors.Is(err, embedded.ErrStore) {
		t.Errorf("started over it: %v", err)
	}
	if err := embedded.Serve(testContext(t), embedded.ServeConfig{File: config}); !errors.Is(err, embedded.ErrStore) {
		t.Errorf("served over it: %v", err)
	}
	check(t, embedded.EndRestore(dir))
	if marked, err := embedded.Restoring(dir); err != nil || marked {
		t.Errorf("afterwards it is marked %v, error %v", marked, err)
	}
	s, err := embedded.Start(testContext(t), embedded.Config{StoreDir: dir})
	check(t, err)
	check(t, s.Shutdown(testContext(t)))
}
