package integration

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"catenary/internal/topology"
)

// damagedRows is how many rows are imported before the damage, over a third as many assignments.
const damagedRows = 3000

// deliveryRows writes a history of so many rows, three of each assignment.
func deliveryRows(t *testing.T, rows int) (path string) {
	t.Helper()
	var text strings.Builder
	at := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	for i := range rows {
		n := i % (rows / 3)
		fmt.Fprintf(&text, `{"t":%q,"env":"env%d","app":"app%d","kind":"deploy","new":"v%d","by":"ann"}`+"\n",
			at.Add(time.Duration(i)*time.Second).Format(time.RFC3339), n%20, n/20, i)
	}
	path = filepath.Join(t.TempDir(), "deliveries.ndjson")
	if err := os.WriteFile(path, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestA06 kills a chain while it writes, damages the files of a bucket, and starts it again: what is read is what the events say, and
// what was read before.
func TestA06(t *testing.T) {
	t.Parallel()
	store := filepath.Join(t.TempDir(), "store")
	process := up(t, store, "127.0.0.1:0", "interval")
	c := on(t, process)
	c.must(0, "import", "deliveries", deliveryRows(t, damagedRows))
	show := []string{"get", "assignments", "--all", "-o", "json"}
	before := c.must(0, show...).out
	writing := c.start("rebuild", "assignments", "--anew")
	select {
	case <-time.After(20 * time.Millisecond): // in the middle of it, or before, or after: all of that happens to people
	case <-writing.ended:
	}
	process.kill()
	<-writing.ended

	for name, damage := range map[string]func(t *testing.T, stream string){
		"a stretch of zeros": func(t *testing.T, stream string) { overwrite(t, stream, make([]byte, 4096)) },
		"a flipped bit":      func(t *testing.T, stream string) { overwrite(t, stream, nil) },
		"no index, and zeros": func(t *testing.T, stream string) {
			overwrite(t, stream, make([]byte, 4096))
			if err := os.RemoveAll(filepath.Join(stream, "msgs", "index.db")); err != nil {
				t.Fatal(err)
			}
		},
		"all values lost": func(t *testing.T, stream string) {
			if err := os.RemoveAll(filepath.Join(stream, "msgs")); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			mine := copyStore(t, store)
			damage(t, filepath.Join(mine, "jetstream", topology.AccountLedger, "streams", topology.BucketStream(topology.BucketAssignments)))
			process := up(t, mine, "127.0.0.1:0", "interval")
			c := on(t, process)
			// Whatever the server makes of its files, at the latest a rebuild makes it whole.
			c.must(0, "rebuild", "assignments")
			if diff := cmp.Diff(before, c.must(0, show...).out); diff != "" {
				t.Errorf("assignments (-before +after):\n%.2000s", diff)
			}
			if verified := c.must(0, "verify"); !strings.Contains(verified.err, "the record holds") {
				t.Errorf("verify says %s", verified.err)
			}
			process.down(t)
		})
	}
}

// overwrite puts data into the middle of the largest block of a stream's messages; without data it flips a bit there.
func overwrite(t *testing.T, stream string, data []byte) {
	t.Helper()
	blocks, err := filepath.Glob(filepath.Join(stream, "msgs", "*.blk"))
	if err != nil || len(blocks) == 0 {
		t.Fatalf("no block below %s: %v", stream, err)
	}
	var largest string
	var text []byte
	for _, block := range blocks {
		read, err := os.ReadFile(block)
		if err != nil {
			t.Fatal(err)
		}
		if len(read) > len(text) {
			largest, text = block, read
		}
	}
	middle := len(text) / 2
	if data == nil {
		text[middle] ^= 1
	}
	copy(text[middle:], data)
	if err := os.WriteFile(largest, text, 0o600); err != nil {
		t.Fatal(err)
	}
}
