package memstore_test

import (
	"testing"

	"catenary/es/estest"
	"catenary/es/memstore"
)

func TestSnapshots(t *testing.T) {
	t.Parallel()
	estest.RunSnapshotsSuite(t, func(*testing.T) estest.Snapshots { return &memstore.Snapshots{} })
}
