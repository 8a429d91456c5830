package ndjson

import (
	"bytes"
	"compress/gzip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cockroachdb/errors"
	"github.com/google/go-cmp/cmp"
)

type line struct {
	Number int
	Text   string
	Broken bool
}

func readAll(t *testing.T, s *Source) ([]line, error) {
	t.Helper()
	var got []line
	err := s.Lines(func(number int, text []byte, broken error) error {
		got = append(got, line{number, string(text), broken != nil})
		return nil
	})
	return got, err
}

func packed(t *testing.T, text string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func file(t *testing.T, name string, content []byte) *Source {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := Open(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestSourceLines(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", MaxLineBytes)
	cases := []struct {
		name, text string
		want       []line
	}{
		{"empty", "", nil},
		{"one byte", "x", []line{{1, "x", false}}},
		{"empty lines keep their number", "\n\na\n \nb\n\n", []line{{3, "a", false}, {5, "b", false}}},
		{"no end of line at the end", "a\nb", []line{{1, "a", false}, {2, "b", false}}},
		{"carriage returns", "a\r\nb\r\n", []line{{1, "a", false}, {2, "b", false}}},
		{"byte order mark", "\xef\xbb\xbfa\n\xef\xbb\xbfb\n", []line{{1, "a", false}, {2, "\xef\xbb\xbfb", false}}},
		{"longest", "a\n" + long + "\r\nb", []line{{1, "a", false}, {2, long, false}, {3, "b", false}}},
		{"too long, then on", "a\n" + long + "y\nb", []line{{1, "a", false}, {2, "", true}, {3, "b", false}}},
		{"much too long at the end", "a\n" + strings.Repeat(long, 3), []line{{1, "a", false}, {2, "", true}}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			stdin, err := Open(Standard, strings.NewReader(c.text))
			if err != nil {
				t.Fatal(err)
			}
			for name, s := range map[string]*Source{
				"plain": file(t, "h", []byte(c.text)), "packed": file(t, "h.gz", packed(t, c.text)), "packed under a plain name": file(t, "h", packed(t, c.text)), "stdin": stdin,
			} {
				for range 2 { // it is read more than once
					got, err := readAll(t, s)
					if err != nil {
						t.Fatalf("%s: %v", name, err)
					}
					if diff := cmp.Diff(c.want, got); diff != "" {
						t.Errorf("%s (-want +got):\n%.500s", name, diff)
					}
				}
				if err := s.Close(); err != nil {
					t.Errorf("%s: close: %v", name, err)
				}
			}
		})
	}
}

func TestSourceName(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{"a.ndjson": "a.ndjson", "a.ndjson.gz": "a.ndjson", "a": "a"} {
		if got := file(t, name, nil).Name; got != want {
			t.Errorf("%s: got name %q, want %q", name, got, want)
		}
	}
}

func TestSourceLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	s, err := Open(Standard, strings.NewReader("a\n"))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(s.path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the copy of standard input is still there: %v", err)
	}
}

func TestSourceThatEndsEarly(t *testing.T) {
	t.Parallel()
	whole := packed(t, strings.Repeat("a line\n", 1000))
	if _, err := readAll(t, file(t, "h.gz", whole[:len(whole)-12])); err == nil || !strings.Contains(err.Error(), "at line") {
		t.Errorf("a cut file gave %v, want an error with the line", err)
	}
	if _, err := Open(filepath.Join(t.TempDir(), "none"), nil); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a missing file gave %v", err)
	}
	if _, err := Open(t.TempDir(), nil); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("a folder gave %v", err)
	}
}
