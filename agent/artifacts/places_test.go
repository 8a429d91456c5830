package artifacts_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/errors"

	"catenary/agent/artifacts"
)

// TestPlaces gets the same artifact from each kind of place, whole and from the middle on.
func TestPlaces(t *testing.T) {
	t.Parallel()
	const content = "the content of an artifact"
	digits := strings.TrimPrefix(digestOf(content), artifacts.Algorithm)
	layout := t.TempDir()
	blobs := filepath.Join(layout, "blobs", "sha256")
	if err := os.MkdirAll(blobs, 0o700); err != nil {
		t.Fatal(err)
	}
	for path, text := range map[string]string{filepath.Join(layout, "oci-layout"): `{"imageLayoutVersion":"1.0.0"}`, filepath.Join(blobs, digits): content} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	ranges := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/"+digits {
			http.NotFound(w, r)
			return
		}
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader([]byte(content)))
	}))
	defer ranges.Close()
	whole := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("d") != digestOf(content) {
			http.Error(w, "gone", http.StatusGone)
			return
		}
		_, _ = io.WriteString(w, content)
	}))
	defer whole.Close()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	for name, place := range map[string]string{
		"a directory": "file:" + blobs, "a directory as a URL": "file://" + blobs, "an OCI layout": "oci:" + layout,
		"a server with ranges": ranges.URL + "/{sha256}", "a server without": whole.URL + "/?d={digest}",
	} {
		source, err := artifacts.ParsePlace(place, client)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for _, from := range []int64{0, 4, int64(len(content)), int64(len(content)) + 3} {
			r, err := source.Open(t.Context(), digestOf(content), from)
			if err != nil {
				t.Fatalf("%s from %d: %v", name, from, err)
			}
			if found, err := io.ReadAll(r); err != nil || string(found) != content[min(from, int64(len(content))):] {
				t.Errorf("%s from %d: %q, %v", name, from, found, err)
			}
			if err := r.Close(); err != nil {
				t.Error(err)
			}
		}
		if _, err := source.Open(t.Context(), digestOf("another"), 0); !errors.Is(err, artifacts.ErrNotFound) {
			t.Errorf("%s: got error %v for what is not there", name, err)
		}
	}
	for _, wrong := range []string{"", "web", "file:" + blobs + "/none", "oci:" + blobs, "https://example.org/artifact", "ftp://example.org/{digest}"} {
		if _, err := artifacts.ParsePlace(wrong, client); !errors.Is(err, artifacts.ErrPlace) {
			t.Errorf("%q: got error %v", wrong, err)
		}
	}
}

// TestWebCut: the server goes away in the middle. What came is kept, and the rest is asked for.
func TestWebCut(t *testing.T) {
	t.Parallel()
	content := strings.Repeat("0123456789", 10_000)
	var asked []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.Header.Get("Range"))
		if len(asked) == 1 {
			w.Header().Set("Content-Length", "100000")
			_, _ = io.WriteString(w, content[:40_000])
			panic(http.ErrAbortHandler)
		}
		http.ServeContent(w, r, "", time.Time{}, strings.NewReader(content))
	}))
	defer server.Close()
	source := artifacts.Web{URL: server.URL + "/{digest}", Client: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}}
	path := filepath.Join(t.TempDir(), "artifact")
	if err := artifacts.Fetch(t.Context(), source, digestOf(content), path); !errors.Is(err, artifacts.ErrUnavailable) {
		t.Fatalf("got error %v", err)
	}
	part, err := os.Stat(path)
	if err != nil || part.Size() == 0 {
		t.Fatalf("nothing of it is kept: %v", err)
	}
	if err := artifacts.Fetch(t.Context(), source, digestOf(content), path); err != nil {
		t.Fatal(err)
	}
	if want := fmt.Sprintf("bytes=%d-", part.Size()); len(asked) != 2 || asked[1] != want {
		t.Errorf("asked for %q, want %q at last", asked, want)
	}
	busy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) }))
	defer busy.Close()
	source.URL = busy.URL + "/{digest}"
	if _, err := source.Open(t.Context(), digestOf(content), 0); !errors.Is(err, artifacts.ErrUnavailable) {
		t.Errorf("got error %v", err)
	}
}

// away can't be reached.
type away struct{}

func (away) Open(context.Context, string, int64) (io.ReadCloser, error) {
	return nil, artifacts.ErrUnavailable
}

// TestPlacesInOrder: what one place does not give, the next one does.
func TestPlacesInOrder(t *testing.T) {
	t.Parallel()
	has, hasNot, lies := newCounting("one"), newCounting(), newCounting()
	lies.contents[digestOf("one")] = "a longer one"
	for name, c := range map[string]struct {
		places artifacts.Places
		want   error
	}{
		"none":                {nil, artifacts.ErrNotFound},
		"nobody has it":       {artifacts.Places{hasNot, hasNot}, artifacts.ErrNotFound},
		"one is away":         {artifacts.Places{hasNot, lies, away{}}, artifacts.ErrUnavailable},
		"one gives another":   {artifacts.Places{hasNot, lies, hasNot}, artifacts.ErrMismatch},
		"the second has it":   {artifacts.Places{hasNot, has}, nil},
		"the first is away":   {artifacts.Places{away{}, has}, nil},
		"the first is wrong":  {artifacts.Places{lies, has}, nil},
		"the second is wrong": {artifacts.Places{has, lies}, nil},
	} {
		path := filepath.Join(t.TempDir(), "artifact")
		if err := c.places.Fetch(t.Context(), digestOf("one"), path); !errors.Is(err, c.want) || (err == nil) != (c.want == nil) {
			t.Errorf("%s: got error %v", name, err)
			continue
		}
		if content, err := os.ReadFile(path); c.want == nil && (err != nil || string(content) != "one") {
			t.Errorf("%s: got %q, %v", name, content, err)
		}
	}
}

// TestWebSilent: a server that takes a request and says nothing more is given up for the next place, at its begin and in its middle.
func TestWebSilent(t *testing.T) {
	t.Parallel()
	content := strings.Repeat("0123456789", 10_000)
	for name, begins := range map[string]bool{"at its begin": false, "in the middle": true} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if begins {
				w.Header().Set("Content-Length", "100000")
				_, _ = io.WriteString(w, content[:40_000])
				_ = http.NewResponseController(w).Flush()
			}
			<-r.Context().Done()
		}))
		has := newCounting(content)
		web := artifacts.Web{URL: server.URL + "/{digest}", Client: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}, Patience: 100 * time.Millisecond}
		path := filepath.Join(t.TempDir(), "artifact")
		if err := artifacts.Fetch(t.Context(), web, digestOf(content), path); !errors.Is(err, artifacts.ErrUnavailable) || !strings.Contains(err.Error(), "said nothing") {
			t.Errorf("%s: got error %v", name, err)
		}
		if err := (artifacts.Places{web, has}).Fetch(t.Context(), digestOf(content), path); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		server.Close()
	}
}
