package artifacts_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/cockroachdb/errors"

	"catenary/agent/artifacts"
)

func digestOf(content string) string {
	return fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(content)))
}

// source gives contents by digest, and cuts the first one short.
type source struct {
	contents map[string]string
	cut      int
	asked    []int64
}

var errCut = errors.New("the line is cut")

func (s *source) Open(_ context.Context, digest string, from int64) (io.ReadCloser, error) {
	content, ok := s.contents[digest]
	if !ok {
		return nil, artifacts.ErrNotFound
	}
	s.asked = append(s.asked, from)
	content = content[min(from, int64(len(content))):]
	if s.cut > 0 && len(s.asked) == 1 {
		return io.NopCloser(io.MultiReader(strings.NewReader(content[:s.cut]), iotest.ErrReader(errors.Mark(errCut, artifacts.ErrUnavailable)))), nil
	}
	return io.NopCloser(strings.NewReader(content)), nil
}

func TestFetch(t *testing.T) {
	t.Parallel()
	const content = "the content of an artifact"
	digest := digestOf(content)
	for _, c := range []struct {
		name   string
		source source
		there  string
		digest string
		fails  error
		asked  []int64
	}{
		{name: "whole", source: source{contents: map[string]string{digest: content}}, asked: []int64{0}},
		{name: "there already", source: source{}, there: content},
		{name: "a part is there", source: source{contents: map[string]string{digest: content}}, there: content[:10], asked: []int64{10}},
		{name: "a part of another one is there", source: source{contents: map[string]string{digest: content}}, there: "something else", asked: []int64{14, 0}},
		{name: "more than all is there", source: source{contents: map[string]string{digest: content}}, there: content + "!", asked: []int64{27, 0}},
		{name: "another content", source: source{contents: map[string]string{digest: "forged"}}, fails: artifacts.ErrMismatch, asked: []int64{0}},
		{name: "unknown", source: source{}, fails: artifacts.ErrNotFound},
		{name: "no digest", digest: "web@1.20", fails: artifacts.ErrDigest},
		{name: "a path", digest: "sha256:../../../etc/passwd", fails: artifacts.ErrDigest},
		{name: "upper case", digest: strings.ToUpper(digest), fails: artifacts.ErrDigest},
		{name: "cut", source: source{contents: map[string]string{digest: content}, cut: 5}, fails: artifacts.ErrUnavailable, asked: []int64{0}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "artifact")
			if c.there != "" {
				if err := os.WriteFile(path, []byte(c.there), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if c.digest == "" {
				c.digest = digest
			}
			if err := artifacts.Fetch(t.Context(), &c.source, c.digest, path); !errors.Is(err, c.fails) {
				t.Fatalf("got error %v, want %v", err, c.fails)
			}
			if fmt.Sprint(c.source.asked) != fmt.Sprint(c.asked) {
				t.Errorf("asked from %v, want %v", c.source.asked, c.asked)
			}
			got, err := os.ReadFile(path)
			switch {
			case c.fails == nil && string(got) != content:
				t.Errorf("the file holds %q, %v", got, err)
			case errors.Is(c.fails, artifacts.ErrMismatch) && !errors.Is(err, fs.ErrNotExist):
				t.Errorf("what does not match is left behind: %q, %v", got, err)
			}
		})
	}
	t.Run("goes on after a cut", func(t *testing.T) {
		t.Parallel()
		s := source{contents: map[string]string{digest: content}, cut: 5}
		path := filepath.Join(t.TempDir(), "artifact")
		if err := artifacts.Fetch(t.Context(), &s, digest, path); !errors.Is(err, errCut) {
			t.Fatalf("got error %v", err)
		}
		if err := artifacts.Fetch(t.Context(), &s, digest, path); err != nil || s.asked[1] != 5 {
			t.Fatalf("went on from %v: %v", s.asked, err)
		}
	})
}

func TestDir(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	const content = "in a directory"
	digest := digestOf(content)
	if err := os.WriteFile(filepath.Join(dir, strings.TrimPrefix(digest, "sha256:")), []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "artifact")
	if err := artifacts.Fetch(t.Context(), artifacts.Dir(dir), digest, path); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, []byte(content)) {
		t.Errorf("fetched %q, %v", got, err)
	}
	if err := artifacts.Fetch(t.Context(), artifacts.Dir(dir), digestOf("nothing"), path); !errors.Is(err, artifacts.ErrNotFound) {
		t.Errorf("got error %v", err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := artifacts.Fetch(ended, artifacts.Dir(dir), digest, path+".other"); !errors.Is(err, context.Canceled) {
		t.Errorf("got error %v", err)
	}
}
