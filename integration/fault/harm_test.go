package main

import (
	"os"
	"path/filepath"
	"testing"
)

// TestCopyTree copies what is there, in the place of what was, and is not held up by what goes meanwhile.
func TestCopyTree(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	from, to := filepath.Join(dir, "from"), filepath.Join(dir, "to")
	for path, text := range map[string]string{"from/a": "a", "from/deep/er/b": "b", "to/old": "old"} {
		path = filepath.Join(dir, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	// A link that leads nowhere is what a file is that goes between the look at the directory and the look at the file.
	if err := os.Symlink("nowhere", filepath.Join(from, "audit.db-journal")); err != nil {
		t.Fatal(err)
	}
	if err := copyTree(from, to); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{"a": "a", "deep/er/b": "b"} {
		if text, err := os.ReadFile(filepath.Join(to, path)); string(text) != want || err != nil {
			t.Errorf("%s holds %q, %v", path, text, err)
		}
	}
	if left, err := os.ReadDir(to); err != nil || len(left) != 2 {
		t.Errorf("copied are %v, %v", left, err)
	}
	file := filepath.Join(dir, "file")
	if err := copyTree(filepath.Join(from, "a"), file); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(file); string(text) != "a" || err != nil {
		t.Errorf("of a file it makes %q, %v", text, err)
	}
	if err := copyTree(filepath.Join(dir, "none"), file); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(file); !os.IsNotExist(err) {
		t.Errorf("what is not there leaves %v", err)
	}
}
