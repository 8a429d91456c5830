package artifacts_test

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"time"

	"github.com/cockroachdb/errors"

	"catenary/agent/artifacts"
)

// counting is a source that counts, and waits until it may answer.
type counting struct {
	mu       sync.Mutex
	contents map[string]string
	opened   map[string][]int64
	// cut cuts the first answer for a digest after so many bytes.
	cut int
	// gate is waited for, if there is one; begun hears of each wait.
	gate, begun chan struct{}
}

func newCounting(contents ...string) *counting {
	s := &counting{contents: map[string]string{}, opened: map[string][]int64{}}
	for _, c := range contents {
		s.contents[digestOf(c)] = c
	}
	return s
}

func (s *counting) Open(ctx context.Context, digest string, from int64) (io.ReadCloser, error) {
	if s.gate != nil {
		s.begun <- struct{}{}
		select {
		case <-s.gate:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.opened[digest] = append(s.opened[digest], from)
	content, ok := s.contents[digest]
	if !ok {
		return nil, artifacts.ErrNotFound
	}
	rest := content[min(from, int64(len(content))):]
	if s.cut > 0 && len(s.opened[digest]) == 1 {
		return io.NopCloser(io.MultiReader(strings.NewReader(rest[:s.cut]), iotest.ErrReader(artifacts.ErrUnavailable))), nil
	}
	return io.NopCloser(strings.NewReader(rest)), nil
}

func (s *counting) times(content string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.opened[digestOf(content)])
}

// clock goes on by a second each time it is looked at.
func clock() func() time.Time {
	var mu sync.Mutex
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	return func() time.Time {
		mu.Lock()
		defer mu.Unlock()
		now = now.Add(time.Second)
		return now
	}
}

func openCache(t *testing.T, c artifacts.CacheConfig) *artifacts.Cache {
	t.Helper()
	if c.Dir == "" {
		c.Dir = t.TempDir()
	}
	c.Now = clock()
	cache, err := artifacts.OpenCache(c)
	if err != nil {
		t.Fatal(err)
	}
	return cache
}

func get(t *testing.T, s artifacts.Source, content string) error {
	t.Helper()
	r, err := s.Open(t.Context(), digestOf(content), 0)
	if err != nil {
		return err
	}
	found, err := io.ReadAll(r)
	if err == nil && string(found) != content {
		t.Errorf("got %q, want %q", found, content)
	}
	return errors.CombineErrors(err, r.Close())
}

func TestCacheKeeps(t *testing.T) {
	t.Parallel()
	source := newCounting("one")
	dir := t.TempDir()
	for range 2 {
		// The second time it is another process's, over what the first has left.
		cache := openCache(t, artifacts.CacheConfig{Places: artifacts.Places{source}, Dir: dir})
		for range 2 {
			if err := get(t, cache, "one"); err != nil {
				t.Fatal(err)
			}
		}
	}
	if n := source.times("one"); n != 1 {
		t.Errorf("it was fetched %d times, want once", n)
	}
	cache := openCache(t, artifacts.CacheConfig{Places: artifacts.Places{source}, Dir: dir})
	if err := get(t, cache, "unknown"); !errors.Is(err, artifacts.ErrNotFound) {
		t.Errorf("got error %v", err)
	}
	r, err := cache.Open(t.Context(), digestOf("one"), 2)
	if err != nil {
		t.Fatal(err)
	}
	if rest, err := io.ReadAll(r); err != nil || string(rest) != "e" {
		t.Errorf("from 2 on it is %q, %v", rest, err)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
}

// TestCacheNeverGivesWhatIsDamaged: a byte on the node's disk is another. The artifact is fetched again.
func TestCacheNeverGivesWhatIsDamaged(t *testing.T) {
	t.Parallel()
	source := newCounting("whole")
	dir := t.TempDir()
	cache := openCache(t, artifacts.CacheConfig{Places: artifacts.Places{source}, Dir: dir})
	if err := get(t, cache, "whole"); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, strings.TrimPrefix(digestOf("whole"), artifacts.Algorithm)), []byte("whale"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := get(t, cache, "whole"); err != nil || source.times("whole") != 2 {
		t.Errorf("it was fetched %d times: %v", source.times("whole"), err)
	}
	source.contents[digestOf("asked for")] = "something else"
	var mismatch *artifacts.Mismatch
	if err := get(t, cache, "asked for"); !errors.As(err, &mismatch) || mismatch.Expected != digestOf("asked for") || mismatch.Found != digestOf("something else") {
		t.Errorf("got error %v", err)
	}
}

func TestCacheGoesOnAfterACut(t *testing.T) {
	t.Parallel()
	source := newCounting("a long content")
	source.cut = 4
	if err := get(t, openCache(t, artifacts.CacheConfig{Places: artifacts.Places{source}}), "a long content"); err != nil {
		t.Fatal(err)
	}
	if from := source.opened[digestOf("a long content")]; len(from) != 2 || from[1] != 4 {
		t.Errorf("it was opened from %v, want from 0 and 4", from)
	}
}

// TestCacheSharesDownloads: ten modules want the same artifact at once. It comes once, also though who began it leaves.
func TestCacheSharesDownloads(t *testing.T) {
	t.Parallel()
	source := newCounting("shared")
	source.gate, source.begun = make(chan struct{}), make(chan struct{}, 10)
	cache := openCache(t, artifacts.CacheConfig{Places: artifacts.Places{source}})
	leaving, leave := context.WithCancel(t.Context())
	left := make(chan error, 1)
	go func() {
		_, err := cache.Open(leaving, digestOf("shared"), 0)
		left <- err
	}()
	<-source.begun
	var modules sync.WaitGroup
	for range 10 {
		modules.Go(func() {
			if err := get(t, cache, "shared"); err != nil {
				t.Error(err)
			}
		})
	}
	leave()
	if err := <-left; !errors.Is(err, context.Canceled) {
		t.Errorf("who has left gets %v", err)
	}
	close(source.gate)
	modules.Wait()
	if n := source.times("shared"); n != 1 {
		t.Errorf("it was fetched %d times, want once", n)
	}
}

func TestCacheIsBounded(t *testing.T) {
	t.Parallel()
	source := newCounting("aaaa", "bbbb", "cccc", "dddd", "much too large for it")
	dir := t.TempDir()
	applied := []string{}
	cache := openCache(t, artifacts.CacheConfig{Places: artifacts.Places{source}, Dir: dir, Bytes: 9, Applied: func() ([]string, error) { return applied, nil }})
	kept := func() string {
		var found []string
		for _, c := range []string{"aaaa", "bbbb", "cccc", "dddd", "much too large for it"} {
			if _, err := os.Stat(filepath.Join(dir, strings.TrimPrefix(digestOf(c), artifacts.Algorithm))); err == nil {
				found = append(found, c[:1])
			}
		}
		return strings.Join(found, "")
	}
	for i, step := range []struct {
		get, applied, kept string
	}{
		{get: "aaaa", kept: "a"},
		{get: "bbbb", kept: "ab"},
		{get: "aaaa", kept: "ab"},
		{get: "cccc", kept: "ac"},
		{get: "dddd", applied: "aaaa", kept: "ad"},
		{get: "bbbb", applied: "aaaa", kept: "ab"},
		{get: "much too large for it", applied: "aaaa", kept: "am"},
		{get: "cccc", applied: "aaaa", kept: "ac"},
	} {
		applied = []string{digestOf(step.applied)}
		if err := get(t, cache, step.get); err != nil {
			t.Fatal(err)
		}
		if found := kept(); found != step.kept {
			t.Errorf("step %d: after %s it holds %s, want %s", i, step.get, found, step.kept)
		}
	}
}
