package dir_test

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cockroachdb/errors"
	"github.com/google/go-cmp/cmp"

	"catenary/agent/driver/dir"
)

func plainTar(t *testing.T, entries ...tar.Header) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, e := range entries {
		e.PAXRecords = nil
		if err := w.WriteHeader(&e); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func zipped(t *testing.T, entries ...zip.FileHeader) []byte {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, e := range entries {
		content := e.Comment
		e.Comment = ""
		f, err := w.CreateHeader(&e)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Write([]byte(content)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func zipFile(name, content string, mode fs.FileMode) zip.FileHeader {
	h := zip.FileHeader{Name: name, Comment: content, Method: zip.Deflate}
	h.SetMode(mode)
	return h
}

func with(h tar.Header, change func(*tar.Header)) tar.Header {
	change(&h)
	return h
}

// TestUnpack holds what may be in an archive, and what may not. Nothing ever lands outside of the directory.
func TestUnpack(t *testing.T) {
	t.Parallel()
	typed := func(flag byte) tar.Header {
		return with(file("odd", ""), func(h *tar.Header) { h.Typeflag, h.Linkname = flag, "/etc/passwd" })
	}
	for _, c := range []struct {
		name    string
		archive []byte
		limits  dir.Limits
		want    map[string]string
		fails   string
	}{
		{
			name: "files and directories", archive: tarGz(t,
				tar.Header{Name: "./", Typeflag: tar.TypeDir, Mode: 0o700}, tar.Header{Name: "a/", Typeflag: tar.TypeDir, Mode: 0o777},
				file("./a/b", "b"), file("deep/er/c", "c"), with(file("run", "x"), func(h *tar.Header) { h.Mode = 0o6711 })),
			want: map[string]string{"a": "drwxr-xr-x", "a/b": "-rw-r--r-- b", "deep": "drwxr-xr-x", "deep/er": "drwxr-xr-x", "deep/er/c": "-rw-r--r-- c", "run": "-rwxr-xr-x x"},
		},
		{name: "a plain tar", archive: plainTar(t, file("a", "")), want: map[string]string{"a": "-rw-r--r-- "}},
		{name: "an empty tar", archive: tarGz(t), want: map[string]string{}},
		{
			name: "a zip", archive: zipped(t, zipFile("a/", "", fs.ModeDir|0o755), zipFile("a/b", "b", 0o600), zipFile("c/run", "x", 0o755)),
			want: map[string]string{"a": "drwxr-xr-x", "a/b": "-rw-r--r-- b", "c": "drwxr-xr-x", "c/run": "-rwxr-xr-x x"},
		},
		{name: "out of it", archive: tarGz(t, file("../x", "")), fails: "leads out"},
		{name: "out of it, further in", archive: tarGz(t, file("a/../../x", "")), fails: "leads out"},
		{name: "in and out and in", archive: tarGz(t, file("a/../b", "")), fails: "leads out"},
		{name: "an absolute name", archive: tarGz(t, file("/etc/x", "")), fails: "leads out"},
		{name: "a backslash", archive: tarGz(t, file(`a\..\x`, "")), fails: "no name"},
		{name: "out of a zip", archive: zipped(t, zipFile("../x", "", 0o600)), fails: "leads out"},
		{name: "a symbolic link", archive: tarGz(t, typed(tar.TypeSymlink)), fails: "a link"},
		{name: "a hard link", archive: tarGz(t, typed(tar.TypeLink)), fails: "a link"},
		{name: "a device", archive: tarGz(t, typed(tar.TypeChar)), fails: "no file"},
		{name: "a block device", archive: tarGz(t, typed(tar.TypeBlock)), fails: "no file"},
		{name: "a pipe", archive: tarGz(t, typed(tar.TypeFifo)), fails: "no file"},
		{name: "a link in a zip", archive: zipped(t, zipFile("l", "/etc/passwd", fs.ModeSymlink|0o777)), fails: "no file"},
		{name: "a device in a zip", archive: zipped(t, zipFile("d", "", fs.ModeDevice|0o600)), fails: "no file"},
		{name: "a file twice", archive: tarGz(t, file("a", "1"), file("./a", "2")), fails: "twice"},
		{name: "a file in place of a directory", archive: tarGz(t, file("a/b", ""), file("a", "")), fails: "twice"},
		{name: "a directory in place of a file", archive: tarGz(t, file("a", ""), file("a/b", "")), fails: "a file and a directory"},
		{name: "the directory as a file", archive: tarGz(t, file(".", "x")), fails: "no name"},
		{name: "too much", archive: tarGz(t, file("a", strings.Repeat("x", 600)), file("b", strings.Repeat("x", 500))), limits: dir.Limits{Bytes: 1000}, fails: "more than 1000 bytes"},
		{name: "just enough", archive: tarGz(t, file("a", "1234")), limits: dir.Limits{Bytes: 4}, want: map[string]string{"a": "-rw-r--r-- 1234"}},
		{name: "a bomb", archive: tarGz(t, file("zeros", strings.Repeat("\x00", 32<<20))), limits: dir.Limits{Bytes: 1 << 20}, fails: "more than 1048576 bytes"},
		{name: "a bomb in a zip", archive: zipped(t, zipFile("zeros", strings.Repeat("\x00", 32<<20), 0o600)), limits: dir.Limits{Bytes: 1 << 20}, fails: "more than 1048576 bytes"},
		{name: "too many", archive: tarGz(t, file("a", ""), file("b", ""), file("c", "")), limits: dir.Limits{Entries: 2}, fails: "more than 2 entries"},
		{name: "too many directories by one name", archive: tarGz(t, file("a/b/c/d", "")), limits: dir.Limits{Entries: 2}, fails: "more than 2 entries"},
		{name: "too deep", archive: tarGz(t, file("a/b/c/d", "")), limits: dir.Limits{Depth: 3}, fails: "deeper than 3"},
		{name: "cut", archive: tarGz(t, file("a", strings.Repeat("text ", 5000)))[:100], fails: "can't be read"},
		{name: "something else", archive: []byte("#!/bin/sh\nrm -rf /\n"), fails: "no tar"},
		{name: "nothing", fails: "no tar"},
		{name: "not really gzip", archive: []byte("\x1f\x8bnot gzip at all"), fails: "is none"},
		{name: "not really zip", archive: []byte("PK\x03\x04not zip at all"), fails: "can't be read"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			outer := t.TempDir()
			archive, into := filepath.Join(outer, "archive"), filepath.Join(outer, "into")
			if err := errors.CombineErrors(os.WriteFile(archive, c.archive, 0o600), os.Mkdir(into, 0o700)); err != nil {
				t.Fatal(err)
			}
			err := dir.Unpack(t.Context(), archive, into, c.limits)
			if c.fails != "" && (!errors.Is(err, dir.ErrArchive) || !strings.Contains(err.Error(), c.fails)) || c.fails == "" && err != nil {
				t.Fatalf("got error %v, want %q", err, c.fails)
			}
			if c.fails == "" {
				if diff := cmp.Diff(c.want, tree(t, into)); diff != "" {
					t.Errorf("unpacked (-want +got):\n%s", diff)
				}
			}
			if outside, err := os.ReadDir(outer); err != nil || len(outside) != 2 {
				t.Errorf("outside there are %v, %v", outside, err)
			}
		})
	}
}

// tree gives mode and content of all below a directory.
func tree(t *testing.T, root string) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == root {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		found[name] = info.Mode().String()
		if d.Type().IsRegular() {
			content, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			found[name] += " " + string(content)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestUnpackEnds(t *testing.T) {
	t.Parallel()
	archive := filepath.Join(t.TempDir(), "archive")
	if err := os.WriteFile(archive, tarGz(t, file("a", "x")), 0o600); err != nil {
		t.Fatal(err)
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if err := dir.Unpack(over, archive, t.TempDir(), dir.Limits{}); !errors.Is(err, context.Canceled) || errors.Is(err, dir.ErrArchive) {
		t.Errorf("got error %v", err)
	}
}
