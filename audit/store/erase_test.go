package store

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"catenary/chain"
)

// inFiles says which files of a folder hold a text.
func inFiles(t *testing.T, dir, text string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, e := range entries {
		data, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		if bytes.Contains(data, []byte(text)) {
			found = append(found, e.Name())
		}
	}
	return found
}

// TestErasesAmongMany erases names among so many that pages of the file are split and merged meanwhile: no page, used or free, keeps a
// copy of one.
func TestErasesAmongMany(t *testing.T) {
	t.Parallel()
	r := newRecorder(t)
	r.assign("n1", "web", "v1")
	dir := t.TempDir()
	s := running(t, Config{Events: r.stream, Path: filepath.Join(dir, "audit.db")})
	caughtUp(t, s, r.stream)
	ctx, cancel := contextOf(t)
	defer cancel()
	const actors = 120 // a page holds some thirty
	id := func(i int) string { return fmt.Sprintf("%x", sha256.Sum256([]byte{byte(i), byte(i >> 8)})) }
	name := func(i int) string { return fmt.Sprintf("Person-%04d-%s", i, strings.Repeat("x", 200)) }
	for i := range actors {
		if err := s.SetActor(ctx, id(i), chain.Actor{Name: name(i)}); err != nil {
			t.Fatal(err)
		}
	}
	for i := range actors {
		if i%3 == 0 {
			continue
		}
		if err := s.SetActor(ctx, id(i), chain.Actor{}); err != nil {
			t.Fatal(err)
		}
	}
	for i := range actors {
		switch found := inFiles(t, dir, name(i)); {
		case i%3 != 0 && len(found) > 0:
			t.Fatalf("%.12s was erased, and stands in %v", name(i), found)
		case i%3 == 0 && len(found) == 0:
			t.Fatalf("%.12s was not erased, and stands nowhere", name(i))
		}
	}
}

// TestErasesWhileAReaderHoldsTheJournal: what a reader holds on to can't be taken from under it. The store says so, goes on taking in, and
// the name goes when the reader is done.
func TestErasesWhileAReaderHoldsTheJournal(t *testing.T) {
	t.Parallel()
	const name = "Annabella Nobody-Else"
	r := newRecorder(t)
	r.assign("n1", "web", "v1")
	dir := t.TempDir()
	path := filepath.Join(dir, "audit.db")
	s := running(t, Config{Events: r.stream, Path: path})
	caughtUp(t, s, r.stream)
	ctx, cancel := contextOf(t)
	defer cancel()
	if err := s.SetActor(ctx, "a1", chain.Actor{Name: name}); err != nil {
		t.Fatal(err)
	}
	db, err := openReaders(path, 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	held, err := db.BeginTx(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	var seen string
	if err := held.QueryRowContext(ctx, "SELECT name FROM actor").Scan(&seen); err != nil || seen != name {
		t.Fatalf("the reader sees %q (%v)", seen, err)
	}
	began := s.Status()
	if err := s.SetActor(ctx, "a1", chain.Actor{}); err != nil || began.Erasing {
		t.Fatalf("erasing gave %v, before it the state was %+v", err, began)
	}
	if !s.Status().Erasing || len(inFiles(t, dir, name)) == 0 {
		t.Errorf("while the reader reads the state is %+v and the name stands in %v, want that it says so", s.Status(), inFiles(t, dir, name))
	}
	r.assign("n1", "web", "v2")
	caughtUp(t, s, r.stream)
	if got := stands(t, s, "n1", "web"); got != "v2" {
		t.Errorf("%q stands, want that events are taken in all the same", got)
	}
	if err := held.QueryRowContext(ctx, "SELECT name FROM actor").Scan(&seen); err != nil || seen != name {
		t.Errorf("the reader's state changed under it: %q (%v)", seen, err)
	}
	if err := held.Rollback(); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	until(ctx, t, "the journal to be emptied", func() bool { return !s.Status().Erasing })
	if found := inFiles(t, dir, name); len(found) > 0 {
		t.Errorf("the name still stands in %v", found)
	}
}

// until looks again and again until something is so.
func until(ctx context.Context, t *testing.T, what string, so func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !so() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("waited in vain for %s", what)
		}
	}
}
