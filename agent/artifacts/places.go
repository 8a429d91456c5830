package artifacts

import (
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/cockroachdb/errors"
)

// ErrPlace marks a place that can't hold artifacts.
var ErrPlace = errors.New("not a place of artifacts")

// ParsePlace reads where artifacts are:
//
//	file:DIR     a directory of files named by the 64 digits of their digests
//	oci:DIR      an OCI image layout on disk, whose blobs are artifacts
//	https://…    a web server; {digest} stands for the digest and {sha256} for its 64 digits
//
// Whatever the place, an artifact is asked for by its digest, and compared with it. It gives errors marked [ErrPlace].
func ParsePlace(text string, client *http.Client) (Source, error) {
	kind, rest, _ := strings.Cut(text, ":")
	switch kind {
	case "file", "oci":
		dir := strings.TrimPrefix(rest, "//")
		if kind == "oci" {
			if _, err := os.Stat(filepath.Join(dir, "oci-layout")); err != nil {
				return nil, errors.Mark(errors.Wrapf(err, "%s is no OCI image layout", dir), ErrPlace)
			}
			dir = filepath.Join(dir, "blobs", "sha256")
		}
		if info, err := os.Stat(dir); err != nil || !info.IsDir() {
			return nil, errors.Mark(errors.Newf("%s is no directory", dir), ErrPlace)
		}
		return Dir(dir), nil
	case "http", "https":
		if !strings.Contains(text, digestMark) && !strings.Contains(text, digitsMark) {
			return nil, errors.Mark(errors.Newf("%s says neither %s nor %s: an artifact is asked for by its digest", text, digestMark, digitsMark), ErrPlace)
		}
		return Web{URL: text, Client: client}, nil
	}
	return nil, errors.Mark(errors.Newf("%q is none of file:DIR, oci:DIR and https://…", text), ErrPlace)
}

// Marks of a URL.
const (
	digestMark = "{digest}"
	digitsMark = "{sha256}"
)

// Web is a source that is a web server.
type Web struct {
	// URL is that of an artifact, with a mark in the place of its digest.
	URL    string
	Client *http.Client
}

var _ Source = Web{}

// Open implements [Source]. A server that knows no ranges is read from the beginning.
func (w Web) Open(ctx context.Context, digest string, from int64) (io.ReadCloser, error) {
	digits, err := ParseDigest(digest)
	if err != nil {
		return nil, err
	}
	url := strings.NewReplacer(digestMark, digest, digitsMark, digits).Replace(w.URL)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return nil, errors.Mark(errors.Wrapf(err, "get %s", url), ErrPlace)
	}
	if from > 0 {
		request.Header.Set("Range", "bytes="+strconv.FormatInt(from, 10)+"-")
	}
	// Compression would make a range one of something else.
	request.Header.Set("Accept-Encoding", "identity")
	answer, err := w.Client.Do(request)
	if err != nil {
		return nil, errors.Mark(errors.Wrapf(err, "get %s", url), ErrUnavailable)
	}
	body := webBody{answer.Body, url}
	switch answer.StatusCode {
	case http.StatusPartialContent:
		if !strings.HasPrefix(answer.Header.Get("Content-Range"), "bytes "+strconv.FormatInt(from, 10)+"-") {
			return nil, errors.CombineErrors(errors.Mark(errors.Newf("get %s: asked from %d on, the range is %q", url, from, answer.Header.Get("Content-Range")), ErrUnavailable), body.Close())
		}
		return body, nil
	case http.StatusOK:
		if _, err := io.CopyN(io.Discard, body, from); err != nil && !errors.Is(err, io.EOF) {
			return nil, errors.CombineErrors(err, body.Close())
		}
		return body, nil
	case http.StatusRequestedRangeNotSatisfiable:
		// There is nothing after what is there; whether that is all of it its digest says.
		return io.NopCloser(strings.NewReader("")), body.Close()
	case http.StatusNotFound, http.StatusGone:
		return nil, errors.CombineErrors(errors.Mark(errors.Newf("get %s: %s", url, answer.Status), ErrNotFound), body.Close())
	}
	return nil, errors.CombineErrors(errors.Mark(errors.Newf("get %s: %s", url, answer.Status), ErrUnavailable), body.Close())
}

// webBody says of a cut that what is left may be asked for again.
type webBody struct {
	io.ReadCloser
	url string
}

// Read implements [io.Reader].
func (b webBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = errors.Mark(errors.Wrapf(err, "get %s", b.url), ErrUnavailable)
	}
	return n, err
}

// First is several sources, of which the first that has an artifact gives it.
type First []Source

var _ Source = First{}

// Open implements [Source]. When none has it, and one can't be reached, it may be there.
func (f First) Open(ctx context.Context, digest string, from int64) (io.ReadCloser, error) {
	err := errors.Mark(errors.Newf("there is no place to get artifact %s from", digest), ErrNotFound)
	var missed error
	for i, source := range f {
		content, openErr := source.Open(ctx, digest, from)
		if openErr == nil {
			return content, nil
		}
		if !errors.IsAny(openErr, ErrNotFound, ErrUnavailable) {
			return nil, openErr
		}
		if errors.Is(openErr, ErrUnavailable) && missed == nil {
			missed = openErr
		}
		if i == 0 {
			err = openErr
		}
	}
	if missed != nil {
		return nil, missed
	}
	return nil, err
}
